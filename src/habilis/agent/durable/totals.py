"""What a run took so far, from its records alone and without decoding them: lists of runs show it."""

from dataclasses import dataclass

from habilis.agent.durable.records import ASK, CELL, REPLY_CODEC
from habilis.agent.durable.trajectory import step_count
from habilis.core.errors import NotDurable
from habilis.journal.index import name_of
from habilis.journal.runs import RunView
from habilis.models.contract import Usage


@dataclass(frozen=True, kw_only=True)
class RunTotals:
    """What a run took, with the agents inside it."""

    steps: int
    usage: Usage
    seconds: float
    """Of models and code."""


async def read_totals(view: RunView) -> RunTotals:
    """What a run took so far. Damaged records count nothing."""
    usage, code_seconds = Usage(), 0.0
    for path, entry in view.steps():
        name = name_of(path)
        if entry.end is None or entry.end.kind != 'done' or name not in {ASK, CELL}:
            continue
        value = await view.value_or_none(entry.end)
        if name == ASK:
            try:
                usage += REPLY_CODEC.read(value).usage
            except NotDurable:
                continue
        elif isinstance(value, dict) and isinstance(cell := value.get('cell'), dict):
            seconds = cell.get('seconds')
            code_seconds += seconds if isinstance(seconds, (int, float)) else 0.0
    return RunTotals(steps=step_count(view), usage=usage, seconds=usage.seconds + code_seconds)
