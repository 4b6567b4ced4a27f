"""Lists: of runs, of records, of tool calls."""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from habilis.agent.calls_made import Called
from habilis.agent.hooks.harmless import one_line
from habilis.agent.trajectory import step_count, stories
from habilis.cli.runs.desk import Desk, place_of
from habilis.cli.runs.printing import age, moment, print_table
from habilis.cli.task.showing import say
from habilis.core.codec import Json, dump
from habilis.core.errors import CorruptRecord
from habilis.core.logs import redact
from habilis.journal import Record
from habilis.journal.lookup import info_of
from habilis.journal.runs import ListedRun, RunView, State, TolerantStore, list_runs, read_run, state_of

OFTEN = 0.3
"""Seconds between two looks at a run that goes on."""

SHORT = 100
LIVELY: frozenset[State] = frozenset({'queued', 'running'})


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which runs to list."""

    state: State | None
    session: str | None
    limit: int
    as_json: bool


async def show_list(desk: Desk, wanted: Wanted) -> int:
    """`habilis runs list`."""
    found = await list_runs(desk.store, user=desk.user, session=wanted.session, state=wanted.state)
    shown = found[: wanted.limit]
    counts = [await _steps(desk, each) for each in shown]
    if wanted.as_json:
        print(json.dumps([_listed(each, steps) for each, steps in zip(shown, counts, strict=True)]))
        return 0
    if not found:
        filtered = wanted.state is not None or wanted.session is not None
        say('no such runs' if filtered else 'no runs yet; make one: habilis run "What is the 100th prime?"')
        return 0
    now = time.time()
    rows = [
        (
            each.info.run,
            each.state,
            '?' if steps is None else str(steps),
            age(now - each.info.created),
            f'{each.info.kind} {each.info.name}' if each.info.kind != each.info.name else each.info.name,
            each.info.title,
        )
        for each, steps in zip(shown, counts, strict=True)
    ]
    print_table(('RUN', 'STATUS', 'STEPS', 'AGE', 'KIND', 'TITLE'), rows)
    if len(found) > len(shown):
        say(f'{len(found) - len(shown)} more; --limit {len(found)} shows all')
    return 0


def _listed(each: ListedRun, steps: int | None) -> dict[str, Json]:
    info = asdict(each.info)
    return {**info, 'status': each.state, 'steps': steps}


async def _steps(desk: Desk, each: ListedRun) -> int | None:
    """None if the run is damaged."""
    try:
        return step_count(RunView(desk.store, each, await desk.store.load(each.info.run), None))
    except CorruptRecord:
        return None


# Records --------------------------------------------------------------------------------------------------------------


async def show_events(desk: Desk, run: str, *, follow: bool, as_json: bool) -> int:
    """`habilis runs events`."""
    store = TolerantStore(desk.store)
    seen, lively = 0, True
    while lively:
        info = await info_of(desk.store, run, desk.user)
        lively = follow and await state_of(desk.store, info) in LIVELY
        for record in await store.load(run, after=seen):
            print(dump(_record(record)) if as_json else _line(record), flush=True)
            seen = record.seq
        if run in store.damage:
            raise store.damage[run]
        if lively:
            await asyncio.sleep(OFTEN)
    return 0


def _record(record: Record) -> dict[str, Json]:
    return {**asdict(record), 'attached': dict(record.attached)}


def _line(record: Record) -> str:
    value = f'(blob {record.blob[:12]}…)' if record.blob else '' if record.value is None else dump(record.value)
    more = f' +{",".join(record.attached)}' if record.attached else ''
    path = one_line(record.path, 2 * SHORT) or '/'
    return f'{record.seq:>5}  {moment(record.at)}  {record.kind:<8}  {path}  {one_line(value + more, SHORT)}'.rstrip()


# Calls ----------------------------------------------------------------------------------------------------------------


async def show_calls(desk: Desk, run: str, *, as_json: bool) -> int:
    """`habilis runs calls`."""
    reading = await read_run(desk.store, run, user=desk.user)
    found = [(turn.number, call) for story in await stories(reading) for turn in story.turns for call in turn.calls]
    if as_json:
        print(json.dumps([{'run': run, 'step': number, **call.as_json()} for number, call in found]))
    elif found:
        print_table(('TIME', 'STEP', 'TOOL', 'ARGUMENTS', 'DECISION', 'RESULT', 'SECONDS'), _rows(found))
    elif not reading.damage:
        say(f'{run} has called no tools')
    return told_damage(reading)


def _rows(found: Sequence[tuple[int, Called]]) -> list[tuple[str, ...]]:
    return [
        (
            moment(call.at),
            str(number),
            call.tool,
            '?' if call.arguments is None else ', '.join(f'{name}={value!r}' for name, value in call.arguments.items()),
            call.decision,
            call.error or call.result,
            '' if call.seconds is None else f'{call.seconds:.3f}',
        )
        for number, call in found
    ]


def told_damage(reading: RunView) -> int:
    """Say what is damaged; the exit code."""
    for error in reading.damage:
        say(str(error))
    return 1 if reading.damage else 0


async def show_place(desk: Desk) -> int:
    """`habilis runs path`."""
    print(place_of(desk.store) or redact(desk.settings.journal or ''))
    return 0
