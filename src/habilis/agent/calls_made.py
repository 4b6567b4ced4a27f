"""The tool calls of a step, from the records of a run: for audit."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from habilis.agent.acting import Acted
from habilis.agent.prompt import PYTHON
from habilis.agent.records import to_plain
from habilis.core import codec
from habilis.core.codec import CodecError, Json
from habilis.journal import Record, fingerprint
from habilis.journal.failures import decode_error
from habilis.journal.index import Entry, name_of
from habilis.journal.runs import RunView
from habilis.models.contract import Reply
from habilis.tools import CallRecord
from habilis.tools.contract import PREVIEW

APPROVE = 'approve '
"""Begins the name of a question about a call."""

SHOWN = 200
"""Letters of a result, as `CallRecord` has them."""


@dataclass(frozen=True, kw_only=True)
class Called:
    """One call of a tool."""

    tool: str
    at: float | None = None
    """When it was over, or began; None if only the end of its cell is known."""

    arguments: Mapping[str, object] | None = None
    """None if they were not recorded: the process died, or the tool failed, before its cell ended."""

    decision: str = 'allowed'
    """As `CallRecord.decision`; `waiting` while a person is asked, `unfinished` if it never ended."""

    ok: bool = False
    result: str = ''
    error: str = ''
    seconds: float | None = None
    side: str = 'code'
    path: str = ''
    """Of its record; empty for a call that did not come so far."""

    def as_json(self) -> dict[str, Json]:
        """All of it, for rows."""
        return {
            'tool': self.tool,
            'at': self.at,
            'arguments': None if self.arguments is None else codec.pack(to_plain(self.arguments)),
            'decision': self.decision,
            'ok': self.ok,
            'result': self.result,
            'error': self.error or None,
            'seconds': self.seconds,
            'side': self.side,
        }


async def calls_of(
    reading: RunView,
    parts: Sequence[tuple[str, Entry]],
    reply: Reply | None,
    cells: Sequence[Acted],
    known: Sequence[CallRecord],
) -> list[Called]:
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

    def calls(self, records: Sequence[CallRecord]) -> list[Called]:
        """Calls that are known by what was said when they ended."""
        paths = [self._take(record.name, record.arguments) for record in records]
        for number, record in enumerate(records):
            paths[number] = paths[number] or self._take(record.name, None)
        return [self._told(record, path) for record, path in zip(records, paths, strict=True)]

    def _told(self, record: CallRecord, path: str | None) -> Called:
        entry = None if path is None else self._taken[path]
        return Called(
            tool=record.name,
            at=_at(entry),
            arguments=record.arguments,
            decision=record.decision,
            ok=record.ok,
            result=record.result,
            error=record.error or '',
            seconds=record.seconds,
            side=record.side,
            path=path or '',
        )

    async def by_model(self, reading: RunView, name: str, written: str) -> Called:
        """A call that the model made itself, of a run that has no result yet."""
        arguments = _arguments(written)
        path = self._take(name, arguments or {}) or self._take(name, None)
        if path is None:
            return Called(tool=name, arguments=arguments, decision='unfinished', side='model')
        return await _recorded(reading, path, self._taken[path], arguments, side='model')

    def _take(self, name: str, arguments: Mapping[str, object] | None) -> str | None:
        """The record of a call with these arguments; without them, of any."""
        label = None if arguments is None else f'{name}({fingerprint(name, arguments)})'
        for path in self._calls:
            if _tool(path) == name and label in {None, name_of(path)}:
                self._taken[path] = self._calls.pop(path)
                return path
        return None


async def _unlisted(reading: RunView, path: str, entry: Entry, found: _Found) -> Called:
    """A call of a cell that has not ended."""
    if path in found.questions:
        asked = await reading.value_or_none(cast('Record', entry.asked))
        fields = asked if isinstance(asked, dict) else {}
        tool = _tool(path).removeprefix(APPROVE)
        return Called(
            tool=tool, at=_at(entry), arguments=_unpacked(fields.get('arguments')), decision='waiting', path=path
        )
    return await _recorded(reading, path, entry, None)


async def _recorded(
    reading: RunView, path: str, entry: Entry, arguments: Mapping[str, object] | None, *, side: str = 'code'
) -> Called:
    """What the record of a call says."""
    end, tool = entry.end, _tool(path)
    if end is None:
        return Called(tool=tool, at=_at(entry), arguments=arguments, decision='unfinished', side=side, path=path)
    value = await reading.value_or_none(end)
    fields = value if isinstance(value, dict) else {}
    if end.kind == 'failed':
        error = decode_error(value)
        text = f'{type(error).__name__}: {error}'
        return Called(tool=tool, at=end.at, arguments=arguments, error=text, side=side, path=path)
    given = _unpacked(fields.get('given')) if arguments is None else arguments
    result = repr(_plain(fields.get('p')))
    shown = result if len(result) <= SHOWN else f'{result[: SHOWN - 1]}…'
    return Called(tool=tool, at=end.at, arguments=given, ok=True, result=shown, side=side, path=path)


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
