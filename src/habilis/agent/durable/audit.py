"""The tool calls of a step, read from the records of a run."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from habilis.agent.context.prompt import PYTHON
from habilis.agent.durable.cells import CellOutcome
from habilis.agent.durable.records import APPROVE
from habilis.core import codec
from habilis.core.codec import CodecError, Json
from habilis.core.dataclass_codec import pack_or_repr
from habilis.core.errors import ToolArgumentsError, ToolDenied
from habilis.core.previews import RESULT_LENGTH, shorten
from habilis.journal import fingerprint
from habilis.journal.failures import decode_error
from habilis.journal.index import PathRecords, name_of
from habilis.journal.runs import RunView
from habilis.journal.scope import ARGUMENTS
from habilis.models.contract import FunctionCall, Reply
from habilis.sandbox.contract import CallDecision, Side, ToolCall
from habilis.tools.contract import PREVIEW


def call_as_json(call: ToolCall) -> dict[str, Json]:
    """A call as a row of `runs calls --json` and of exported runs."""
    return {
        'tool': call.name,
        'at': call.at,
        'arguments': None if call.arguments is None else pack_or_repr(call.arguments),
        'decision': call.decision,
        'ok': call.ok,
        'result': call.result,
        'error': call.error or None,
        'seconds': call.seconds or None,
        'side': call.side,
    }


async def read_calls(
    view: RunView,
    entries: Sequence[tuple[str, PathRecords]],
    reply: Reply | None,
    cells: Sequence[CellOutcome],
    known: Sequence[ToolCall],
) -> list[ToolCall]:
    """The tool calls of a step: those of its result or its cells, then those that only have a record of their own.

    Args:
        view: the run.
        entries: the journal entries of the step; the first is the request to the model.
        reply: the model's reply.
        cells: the cells that have ended.
        known: all calls of the step, from the result of the run; empty if it has none.
    """
    records = _CallRecords(view, [item for item in entries[1:] if _is_call(item[0])])
    calls = records.locate(list(known) or [call for cell in cells for call in cell.calls])
    if not known and reply is not None:
        calls += [await records.read_model_call(call) for call in reply.calls if call.name != PYTHON.name]
    return [*calls, *await records.read_rest()]


class _CallRecords:
    """The journal entries of tool calls in a step. Each is taken by one call."""

    def __init__(self, view: RunView, entries: Sequence[tuple[str, PathRecords]]) -> None:
        self._view = view
        self._free = {path: entry for path, entry in entries if not _tool_of(path).startswith(APPROVE)}
        self._taken: dict[str, PathRecords] = {}
        self._questions = {path: entry for path, entry in entries if _tool_of(path).startswith(APPROVE)}

    def locate(self, calls: Sequence[ToolCall]) -> list[ToolCall]:
        """The calls with time and path of their entries: equal arguments first, then any entry of the tool."""
        paths = [self._take(call.name, call.arguments) for call in calls]
        paths = [path or self._take(call.name, None) for call, path in zip(calls, paths, strict=True)]
        for call in calls:
            self._drop_question(call)
        return [
            replace(call, at=_time_of(self._taken[path]) if path else None, path=path or '')
            for call, path in zip(calls, paths, strict=True)
        ]

    async def read_model_call(self, call: FunctionCall) -> ToolCall:
        """A call that the model made itself, in a run without a result."""
        arguments = _parse_arguments(call.arguments)
        path = self._take(call.name, arguments or {}) or self._take(call.name, None)
        if path is None:
            return ToolCall(name=call.name, arguments=arguments, decision='unfinished', side='model')
        return await self._read(path, self._taken[path], arguments, side='model')

    async def read_rest(self) -> list[ToolCall]:
        """The calls that were not taken: of cells that have not ended, and those that a person has to decide about."""
        known = {path.rpartition('/')[2] for path in (*self._free, *self._taken)}
        calls = [await self._read(path, entry, None) for path, entry in self._free.items()]
        for path, entry in self._questions.items():
            if path.rpartition('/')[2].removeprefix(APPROVE) not in known:
                calls.append(await self._read_question(path, entry))
        return calls

    def _take(self, name: str, arguments: Mapping[str, object] | None) -> str | None:
        """Take the entry of a call with these arguments; with any, if they are None. Returns its path."""
        label = None if arguments is None else f'{name}({fingerprint(name, arguments)})'
        for path in self._free:
            if _tool_of(path) == name and label in {None, name_of(path)}:
                self._taken[path] = self._free.pop(path)
                return path
        return None

    def _drop_question(self, call: ToolCall) -> None:
        """Forget the question about a call that is known otherwise."""
        label = f'{APPROVE}{call.name}({fingerprint(call.name, call.arguments or {})})'
        asked = next((path for path in self._questions if name_of(path) == label), None)
        if asked is not None:
            del self._questions[asked]

    async def _read(
        self, path: str, entry: PathRecords, arguments: Mapping[str, object] | None, *, side: Side = 'code'
    ) -> ToolCall:
        """A call from its own record."""
        end, tool = entry.end, _tool_of(path)
        arguments = await self._arguments(entry) if arguments is None else arguments
        at = _time_of(entry)
        seconds = end.at - at if end is not None and at is not None else 0.0
        call = ToolCall(name=tool, at=at, arguments=arguments, seconds=seconds, side=side, path=path)
        if end is None:
            return replace(call, decision='unfinished')
        value = await self._view.value_or_none(end)
        if end.kind == 'failed':
            error = decode_error(value)
            text = f'{type(error).__name__}: {error}'
            return replace(call, error=text, decision=_decision_of(error))
        fields = value if isinstance(value, dict) else {}
        if arguments is None:  # written by an earlier version
            call = replace(call, arguments=_as_arguments(fields.get('given')))
        return replace(call, ok=True, result=shorten(_unpack(fields.get('p')), RESULT_LENGTH))

    async def _arguments(self, entry: PathRecords) -> Mapping[str, object] | None:
        """The arguments, as recorded when the call started."""
        first = entry.started or entry.opened
        value = None if first is None else await self._view.value_or_none(first)
        return _as_arguments(value.get(ARGUMENTS)) if isinstance(value, dict) else None

    async def _read_question(self, path: str, entry: PathRecords) -> ToolCall:
        """A call that waits for approval, was refused, or was approved and has not started yet."""
        asked = None if entry.asked is None else await self._view.value_or_none(entry.asked)
        arguments = _as_arguments(asked.get('arguments')) if isinstance(asked, dict) else None
        tool = _tool_of(path).removeprefix(APPROVE)
        answer = None if entry.answered is None else await self._view.value_or_none(entry.answered)
        approved = answer is True or (isinstance(answer, dict) and answer.get('approved') is True)
        decision = 'waiting' if entry.answered is None else 'unfinished' if approved else 'refused'
        return ToolCall(name=tool, at=_time_of(entry), arguments=arguments, decision=decision, path=path)


def _is_call(path: str) -> bool:
    return '(' in name_of(path) and not _tool_of(path).startswith(PREVIEW)


def _tool_of(path: str) -> str:
    return path.rpartition('/')[2].partition('(')[0]


def _time_of(entry: PathRecords) -> float | None:
    """When the call started, if that was recorded; else when it ended."""
    records = (entry.started, entry.opened, entry.asked, entry.end)
    return next((record.at for record in records if record is not None), None)


def _decision_of(error: Exception) -> CallDecision:
    if isinstance(error, ToolArgumentsError):
        return 'invalid'
    return 'denied' if isinstance(error, ToolDenied) else 'allowed'


def _unpack(value: Json) -> object:
    """The decoded value; the JSON itself if it cannot be decoded."""
    try:
        return codec.unpack(value)
    except CodecError:
        return value


def _as_arguments(value: Json) -> Mapping[str, object] | None:
    arguments = _unpack(value)
    return cast('Mapping[str, object]', arguments) if isinstance(arguments, dict) else None


def _parse_arguments(text: str) -> Mapping[str, object] | None:
    """The arguments that a model wrote as JSON; None if they are not valid."""
    try:
        arguments: object = json.loads(text or '{}', strict=False)
    except (ValueError, RecursionError):
        return None
    return cast('Mapping[str, object]', arguments) if isinstance(arguments, dict) else None
