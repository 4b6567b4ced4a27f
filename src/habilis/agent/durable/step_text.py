"""A recorded step as text, to compare it with that of another run."""

import json

from habilis.agent.durable.cells import CELL_CODEC
from habilis.agent.durable.records import ASK, CELL, COMPACTION, REPLY_CODEC, code_of
from habilis.core.codec import Json
from habilis.core.errors import NotDurable
from habilis.journal import Record
from habilis.journal.index import PathRecords, name_of
from habilis.journal.runs import RunView

_TIME_FIELDS = frozenset({'seconds', 'at'})


async def step_text(reading: RunView, path: str, entry: PathRecords | None) -> str | None:
    """Input and result of a step, without the times and costs that differ in every run; None without an entry."""
    if entry is None:
        return None
    if entry.end is None:
        records = [record for record in (entry.opened, entry.asked, entry.answered) if record is not None]
        return '\n'.join(['(not finished)', *[await _record_text(reading, record) for record in records]])
    value = await reading.value_or_none(entry.end)
    task = '' if entry.opened is None else _task_text(await reading.value_or_none(entry.opened))
    if entry.end.kind == 'failed':
        fields = value if isinstance(value, dict) else {}
        return f'{task}failed: {fields.get("type")}: {fields.get("text")}'
    try:
        if name_of(path) in {ASK, COMPACTION}:
            reply = REPLY_CODEC.read(value)
            return '\n'.join([reply.text, *(f'{call.name}({call.arguments})' for call in reply.calls)])
        if name_of(path) == CELL:
            outcome = CELL_CODEC.read(value).outcome
            return f'{outcome.code or code_of(entry)}\n\n{outcome.observation}'.rstrip()
    except (NotDurable, TypeError):  # a flow step of the same name
        pass
    return f'{task}{_value_text(_without_times(value))}'


def _task_text(opened: Json) -> str:
    """The task, if the step is the run of an agent."""
    task = opened.get('task') if isinstance(opened, dict) else None
    return f'task: {task}\n\n' if isinstance(task, str) else ''


async def _record_text(reading: RunView, record: Record) -> str:
    return f'{record.kind}: {_value_text(_without_times(await reading.value_or_none(record)))}'


def _without_times(value: Json) -> Json:
    """The value without times. Of an agent's result only the answer: its steps are compared separately."""
    if isinstance(value, dict):
        if 'r' in value and 'o' in value:
            return value['o']
        return {name: _without_times(item) for name, item in value.items() if name not in _TIME_FIELDS}
    return [_without_times(item) for item in value] if isinstance(value, list) else value


def _value_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
