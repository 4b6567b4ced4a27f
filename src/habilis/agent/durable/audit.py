"""The tool calls of a step, from the records of a run: for audit."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from habilis.agent.context.prompt import PYTHON
from habilis.agent.durable.codecs import to_plain
from habilis.agent.loop.code_turn import CellOutcome
from habilis.core import codec
from habilis.core.codec import CodecError, Json
from habilis.journal import Record, fingerprint
from habilis.journal.failures import decode_error
from habilis.journal.index import Entry, name_of
from habilis.journal.runs import RunView
from habilis.models.contract import Reply
from habilis.sandbox.contract import Side, ToolCall
from habilis.sandbox.previews import RESULT_LENGTH, shorten
from habilis.tools.contract import PREVIEW

APPROVE = 'approve '
"""Begins the name of a question about a call."""


def call_as_json(call: ToolCall) -> dict[str, Json]:
    """A call as a row of `runs calls --json` and of exported runs."""
    return {
        'tool': call.name,
        'at': call.at,
        'arguments': None if call.arguments is None else codec.pack(to_plain(call.arguments)),
        'decision': call.decision,
        'ok': call.ok,
        'result': call.result,
        'error': call.error or None,
        'seconds': call.seconds or None,
        'side': call.side,
    }


async def calls_of(
    reading: RunView,
    parts: Sequence[tuple[str, Entry]],
    reply: Reply | None,
    cells: Sequence[CellOutcome],
    known: Sequence[ToolCall],
) -> list[ToolCall]:
    """The calls of a step.

    Args:
        reading: the run.
        parts: the paths of the step.
        reply: of the model.
        cells: that have ended, with their calls.
        known: all calls of the step, if the run has its result.
    """
    found = _Found([item for item in parts[1:] if '(' in name_of(item[0]) and not _tool(item[0]).startswith(PREVIEW)])
    records = list(known) or [call for cell in cells for call in cell.calls]
    calls = found.calls(records)
    by_model = [] if known or reply is None else [call for call in reply.calls if call.name != PYTHON.name]
    calls += [await found.by_model(reading, call.name, call.arguments) for call in by_model]
    return [*calls, *[await _unlisted(reading, path, entry, found) for path, entry in found.left()]]


class _Found:
    """The records of calls that are not told of yet."""

    def __init__(self, items: Sequence[tuple[str, Entry]]) -> None:
        self._calls = {path: entry for path, entry in items if not _tool(path).startswith(APPROVE)}
        self._taken: dict[str, Entry] = {}
        self.questions = {path: entry for path, entry in items if _tool(path).startswith(APPROVE)}

    def left(self) -> list[tuple[str, Entry]]:
        """Those that nobody has asked for, and questions about calls that did not come so far."""
        about = {(_tool(path)) for path in self._calls}
        asked = [
            (path, entry)
            for path, entry in self.questions.items()
            if entry.answered is None and _tool(path).removeprefix(APPROVE) not in about
        ]
        return [*self._calls.items(), *asked]

    def calls(self, records: Sequence[ToolCall]) -> list[ToolCall]:
        """Calls that are known by what was said when they ended."""
        paths = [self._take(record.name, record.arguments) for record in records]
        for number, record in enumerate(records):
            paths[number] = paths[number] or self._take(record.name, None)
        return [self._told(record, path) for record, path in zip(records, paths, strict=True)]

    def _told(self, record: ToolCall, path: str | None) -> ToolCall:
        return replace(record, at=_at(None if path is None else self._taken[path]), path=path or '')

    async def by_model(self, reading: RunView, name: str, written: str) -> ToolCall:
        """A call that the model made itself, of a run that has no result yet."""
        arguments = _arguments(written)
        path = self._take(name, arguments or {}) or self._take(name, None)
        if path is None:
            return ToolCall(name=name, arguments=arguments, decision='unfinished', side='model')
        return await _recorded(reading, path, self._taken[path], arguments, side='model')

    def _take(self, name: str, arguments: Mapping[str, object] | None) -> str | None:
        """The record of a call with these arguments; without them, of any."""
        label = None if arguments is None else f'{name}({fingerprint(name, arguments)})'
        for path in self._calls:
            if _tool(path) == name and label in {None, name_of(path)}:
                self._taken[path] = self._calls.pop(path)
                return path
        return None


async def _unlisted(reading: RunView, path: str, entry: Entry, found: _Found) -> ToolCall:
    """A call of a cell that has not ended."""
    if path in found.questions:
        asked = await reading.value_or_none(cast('Record', entry.asked))
        fields = asked if isinstance(asked, dict) else {}
        tool = _tool(path).removeprefix(APPROVE)
        return ToolCall(
            name=tool, at=_at(entry), arguments=_unpacked(fields.get('arguments')), decision='waiting', path=path
        )
    return await _recorded(reading, path, entry, None)


async def _recorded(
    reading: RunView, path: str, entry: Entry, arguments: Mapping[str, object] | None, *, side: Side = 'code'
) -> ToolCall:
    """What the record of a call says."""
    end, tool = entry.end, _tool(path)
    if end is None:
        return ToolCall(name=tool, at=_at(entry), arguments=arguments, decision='unfinished', side=side, path=path)
    value = await reading.value_or_none(end)
    fields = value if isinstance(value, dict) else {}
    if end.kind == 'failed':
        error = decode_error(value)
        text = f'{type(error).__name__}: {error}'
        return ToolCall(name=tool, at=end.at, arguments=arguments, error=text, side=side, path=path)
    given = _unpacked(fields.get('given')) if arguments is None else arguments
    result = shorten(_plain(fields.get('p')), RESULT_LENGTH)
    return ToolCall(name=tool, at=end.at, arguments=given, ok=True, result=result, side=side, path=path)


def _tool(path: str) -> str:
    return path.rpartition('/')[2].partition('(')[0]


def _at(entry: Entry | None) -> float | None:
    records = () if entry is None else (entry.end, entry.started, entry.asked)
    return next((record.at for record in records if record is not None), None)


def _plain(value: Json) -> object:
    try:
        return codec.unpack(value)
    except CodecError:
        return value


def _unpacked(value: Json) -> Mapping[str, object] | None:
    plain = _plain(value)
    return cast('Mapping[str, object]', plain) if isinstance(plain, dict) else None


def _arguments(written: str) -> Mapping[str, object] | None:
    try:
        read: object = json.loads(written or '{}', strict=False)
    except (ValueError, RecursionError):
        return None
    return cast('Mapping[str, object]', read) if isinstance(read, dict) else None
