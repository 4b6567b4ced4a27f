"""`habilis runs list`."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from habilis.agent.durable.trajectory import step_count
from habilis.cli.printing import format_age, print_table
from habilis.cli.runs.journal import JournalAccess, with_journal
from habilis.cli.streams import say
from habilis.core.codec import Json
from habilis.core.errors import CorruptRecord
from habilis.journal import runs
from habilis.journal.runs import ListedRun, RunView, State


@dataclass(frozen=True, kw_only=True)
class RunFilter:
    """Which runs to list."""

    state: State | None
    session: str | None
    limit: int


def list_runs(wanted: RunFilter, *, as_json: bool, journal: str | None, user: str | None) -> int:
    """Print the runs, newest first."""

    async def work(access: JournalAccess) -> int:
        found = await runs.list_runs(access.store, user=access.user, session=wanted.session, state=wanted.state)
        shown = found[: wanted.limit]
        counts = [await _count_steps(access, each) for each in shown]
        if as_json:
            print(json.dumps([_to_json(each, steps) for each, steps in zip(shown, counts, strict=True)]))
            return 0
        if not found:
            filtered = wanted.state is not None or wanted.session is not None
            say('no matching runs' if filtered else 'no runs yet; start one: habilis run "What is the 100th prime?"')
            return 0
        print_table(('RUN', 'STATUS', 'STEPS', 'AGE', 'KIND', 'TITLE'), _rows(shown, counts))
        if len(found) > len(shown):
            say(f'{len(found) - len(shown)} more; use --limit {len(found)} to list all')
        return 0

    return with_journal(journal, user, work)


def _rows(shown: Sequence[ListedRun], counts: Sequence[int | None]) -> list[tuple[str, ...]]:
    now = time.time()
    return [
        (
            each.info.run,
            each.state,
            '?' if steps is None else str(steps),
            format_age(now - each.info.created),
            f'{each.info.kind} {each.info.name}' if each.info.kind != each.info.name else each.info.name,
            each.info.title,
        )
        for each, steps in zip(shown, counts, strict=True)
    ]


def _to_json(each: ListedRun, steps: int | None) -> dict[str, Json]:
    return {**asdict(each.info), 'status': each.state, 'steps': steps}


async def _count_steps(access: JournalAccess, each: ListedRun) -> int | None:
    """Number of steps; None if the run is damaged."""
    try:
        return step_count(RunView(access.store, each, await access.store.load(each.info.run), None))
    except CorruptRecord:
        return None
