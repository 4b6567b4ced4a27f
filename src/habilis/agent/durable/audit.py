"""Tool calls as their own records have them. A call is known by its path; cells and results refer to it by that."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from habilis.agent.durable.approvals import recorded_answer
from habilis.agent.durable.records import APPROVE, ASKED, CALL_ID
from habilis.core import codec
from habilis.core.codec import CodecError, Json
from habilis.core.dataclass_codec import DataclassCodec, pack_or_repr
from habilis.core.errors import ToolArgumentsError, ToolDenied
from habilis.core.integers import error_text
from habilis.core.narrowing import fields_in, is_dict, json_object
from habilis.core.previews import RESULT_LENGTH, shorten
from habilis.journal import Record
from habilis.journal.failures import decode_error
from habilis.journal.index import Index, PathRecords, name_of, parent_of
from habilis.journal.scope import ARGUMENTS
from habilis.sandbox.contract import CallDecision, ToolCall
from habilis.tools.contract import PREVIEW

ReadValue = Callable[[Record], Awaitable[Json]]
"""Reads the value of a record."""

_CALL = DataclassCodec(ToolCall)
_FACTS = ('id', 'ok', 'error', 'hidden', 'log', 'seconds', 'decision', 'side')
"""Fields that may differ from what the records of a call say, such as the log of a call that failed."""


def call_as_json(call: ToolCall) -> dict[str, Json]:
    """A call as a row of `runs calls --json` and of exported runs."""
    return {
        'tool': call.tool,
        'at': call.at,
        'arguments': None if call.arguments is None else pack_or_repr(call.arguments),
        'decision': call.decision,
        'ok': call.ok,
        'result': call.result,
        'error': call.error or None,
        'seconds': call.seconds or None,
        'side': call.side,
    }


class CallRecords:
    """The records of the tool calls of one agent."""

    def __init__(self, index: Index, value: ReadValue, agent: str) -> None:
        """`value` reads the value of a record; `agent` is the path of the agent."""
        self._index = index
        self._value = value
        self._agent = agent

    # References -------------------------------------------------------------------------------------------------------

    async def refer(self, call: ToolCall) -> Json:
        """A call for another record: its path, and what its own records do not say. All of it if it has none."""
        entry = self._index.find(call.path) if call.path else None
        if entry is None:
            return _CALL.encode(call)
        recorded = await CallRecords(self._index, _inline, self._agent)._read(call.path, entry)
        facts = {name: getattr(call, name) for name in _FACTS if getattr(call, name) != getattr(recorded, name)}
        return {'path': call.path, **json_object(pack_or_repr(facts))} if facts else call.path

    async def resolve(self, reference: Json) -> ToolCall:
        """The call that `refer` was given. Raises `NotDurable`."""
        facts: dict[str, Json] = reference if isinstance(reference, dict) else {'path': reference}
        path = facts.get('path')
        entry = self._index.find(path) if isinstance(path, str) else None
        if entry is None or not isinstance(path, str):
            return _CALL.decode({'tool': _tool_of(str(path)), 'arguments': None, **facts})
        recorded = await self._read(path, entry)
        if len(facts) == 1:
            return recorded
        return _CALL.decode({**json_object(_CALL.encode(recorded)), **facts})

    # Reading ----------------------------------------------------------------------------------------------------------

    async def read_others(
        self, entries: Iterable[tuple[str, PathRecords]], known: Sequence[ToolCall]
    ) -> list[ToolCall]:
        """The calls of these entries that are not `known`: of the model, of cells that have not ended, and those that
        a person has to decide about."""
        calls = {path: entry for path, entry in entries if _is_call(path)}
        asked = {await self._question_of(entry) for entry in calls.values()}
        paths = calls.keys() - asked - {call.path for call in known}
        return [await self._read(path, entry) for path, entry in calls.items() if path in paths]

    async def _question_of(self, entry: PathRecords) -> str:
        """The path of the question that a person has answered about a call; empty if there was none."""
        return str((await self._opening(entry)).get(ASKED, ''))

    async def _opening(self, entry: PathRecords) -> dict[str, Json]:
        first = entry.started or entry.opened
        value = None if first is None else await self._value(first)
        return value if isinstance(value, dict) else {}

    async def _read(self, path: str, entry: PathRecords) -> ToolCall:
        """A call from its own records."""
        if _tool_of(path).startswith(APPROVE):
            return await self._read_question(path, entry)
        opening, end = await self._opening(entry), entry.end
        number = opening.get(CALL_ID)
        at, seconds = times_of(entry)
        call = ToolCall(
            id=number if isinstance(number, int) else 0,
            tool=_tool_of(path),
            arguments=_as_arguments(opening.get(ARGUMENTS)),
            decision='approved' if ASKED in opening else 'allowed',
            side='model' if parent_of(path) == self._agent else 'code',
            seconds=seconds,
            at=at,
            path=path,
        )
        if end is None:
            return replace(call, decision='unfinished')
        value = await self._value(end)
        if end.kind == 'failed':
            error = decode_error(value)
            return replace(call, error=error_text(error), decision=_decision_of(error, call.decision))
        fields = value if isinstance(value, dict) else {}
        logged = fields.get('log')
        log = tuple(str(line) for line in logged) if isinstance(logged, list) else ()
        return replace(call, ok=True, log=log, result=shorten(unpacked(fields.get('p')), RESULT_LENGTH))

    async def _read_question(self, path: str, entry: PathRecords) -> ToolCall:
        """A call that waits for approval, was refused, or was approved and has not started yet."""
        asked = None if entry.asked is None else await self._value(entry.asked)
        fields = asked if isinstance(asked, dict) else {}
        answer = None if entry.answered is None else await self._value(entry.answered)
        approved = recorded_answer(answer).approved
        number = fields.get(CALL_ID)
        return ToolCall(
            id=number if isinstance(number, int) else 0,
            tool=_tool_of(path).removeprefix(APPROVE),
            arguments=_as_arguments(fields.get(ARGUMENTS)),
            decision='waiting' if entry.answered is None else 'unfinished' if approved else 'refused',
            side='model' if parent_of(path) == self._agent else 'code',
            at=times_of(entry)[0],
            path=path,
        )


async def _inline(record: Record) -> Json:
    """The value of a record without reading a blob: what is in one counts as not recorded, and is written again."""
    return record.value


def times_of(entry: PathRecords) -> tuple[float | None, float]:
    """When a call started, and how many seconds it took; 0 if it has not ended."""
    records = (entry.started, entry.opened, entry.asked, entry.end)
    at = next((record.at for record in records if record is not None), None)
    return at, 0.0 if at is None or entry.end is None else max(0.0, entry.end.at - at)


def in_order(calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
    """Calls in the order in which they were made; last those whose place is not known."""
    return tuple(sorted(calls, key=lambda call: (call.id == 0, call.id, call.at or 0.0)))


def _is_call(path: str) -> bool:
    return '(' in name_of(path) and not _tool_of(path).startswith(PREVIEW)


def _tool_of(path: str) -> str:
    return path.rpartition('/')[2].partition('(')[0]


def _decision_of(error: Exception, before: CallDecision) -> CallDecision:
    if isinstance(error, ToolArgumentsError):
        return 'invalid'
    return 'denied' if isinstance(error, ToolDenied) else before


def unpacked(value: Json) -> object:
    """The decoded value; the JSON itself if it cannot be decoded."""
    try:
        return codec.unpack(value)
    except CodecError:
        return value


def _as_arguments(value: Json) -> Mapping[str, object] | None:
    arguments = unpacked(value)
    return fields_in(arguments) if is_dict(arguments) else None
