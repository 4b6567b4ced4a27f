"""The status of a run, step by step, from its records alone."""

from collections.abc import Sequence

from habilis.core.narrowing import json_object
from habilis.flows.contract import State, StepStatus
from habilis.flows.runs import flow_info
from habilis.journal import Record, RunInfo, Store
from habilis.journal.index import Index, PathRecords, name_of
from habilis.journal.lookup import value_of


async def flow_status(store: Store, run: str, *, user: str | None = None) -> list[StepStatus]:
    """The steps of a run in the order in which they started. Raises `RunNotFound`."""
    return await read_steps(store, await flow_info(store, run, user))


async def read_steps(store: Store, info: RunInfo) -> list[StepStatus]:
    """The steps inside the run of a flow or of an agent, in the order in which they started."""
    run = info.run
    records = await store.load(run)
    index = Index(records)
    entries = sorted(
        ((path, entry) for path, entry in index.inside('') if '/' in path), key=lambda item: _first_seq(item[1])
    )
    breaks = [record.seq for record in records if not record.path and record.kind != 'opened']
    return [
        StepStatus(
            path=path,
            name=name_of(path).partition('(')[0],
            state=_state(path, entry, index, info),
            seconds=_seconds(entry, breaks),
            error=await _error(store, run, entry.end),
        )
        for path, entry in entries
    ]


def _records(entry: PathRecords) -> list[Record]:
    return [record for record in (entry.opened, entry.started, entry.asked, entry.end) if record is not None]


def _first_seq(entry: PathRecords) -> int:
    return min((record.seq for record in _records(entry)), default=0)


def _state(path: str, entry: PathRecords, index: Index, info: RunInfo) -> State:
    if entry.end is not None:
        return 'failed' if entry.end.kind == 'failed' else 'done'
    if _is_waiting(entry) or any(_is_waiting(inner) for _, inner in index.inside(path)):
        return 'waiting'
    if entry.answered is not None and entry.started is None:
        return 'done'
    return 'running' if info.status == 'running' else 'not run'


def _is_waiting(entry: PathRecords) -> bool:
    asked, answered = entry.asked, entry.answered
    return asked is not None and entry.end is None and (answered is None or answered.seq < asked.seq)


def _seconds(entry: PathRecords, breaks: Sequence[int]) -> float | None:
    """The duration of a step; None if the run was stopped and resumed in between."""
    start = entry.started or entry.opened
    if start is None or entry.end is None or any(start.seq < seq < entry.end.seq for seq in breaks):
        return None
    return max(0.0, entry.end.at - start.at)


async def _error(store: Store, run: str, end: Record | None) -> str:
    if end is None or end.kind != 'failed':
        return ''
    fields = json_object(await value_of(store, run, end))
    return f'{fields["type"]}: {fields["text"]}'
