"""`habilis runs list` and `path`."""

import json
import time
from dataclasses import asdict, dataclass

from habilis.agent.durable.trajectory import step_count
from habilis.cli.printing import format_age, print_table
from habilis.cli.runs.journal import JournalAccess, in_journal, path_of, with_journal
from habilis.cli.streams import say
from habilis.core.codec import Json
from habilis.core.errors import CorruptRecord
from habilis.core.secrets import redact
from habilis.journal import runs
from habilis.journal.runs import ListedRun, RunView, State


@dataclass(frozen=True, kw_only=True)
class RunFilter:
    """Which runs to list."""

    state: State | None
    session: str | None
    limit: int


@in_journal
async def list_runs(access: JournalAccess, wanted: RunFilter, *, as_json: bool) -> int:
    """Print the runs, newest first."""
    found = await runs.list_runs(access.store, user=access.user, session=wanted.session, state=wanted.state)
    shown = found[: wanted.limit]
    if as_json:
        counts = [await _count_steps(access, each) for each in shown]
        print(json.dumps([_to_json(each, steps) for each, steps in zip(shown, counts, strict=True)]))
        return 0
    if not found:
        filtered = wanted.state is not None or wanted.session is not None
        say('no matching runs' if filtered else 'no runs yet; start one: habilis run "What is the 100th prime?"')
        return 0
    print_table(('RUN', 'STATUS', 'AGE', 'TITLE'), [list_row(each, each.info.created) for each in shown])
    if len(found) > len(shown):
        say(f'{len(found) - len(shown)} more; use --limit {len(found)} to list all')
    return 0


def list_row(each: ListedRun, since: float) -> tuple[str, ...]:
    """A run as a row of a table: id, status, age and title. The title of a flow has the flow and its arguments."""
    info = each.info
    title = info.title if info.kind == 'agent' else f'{info.name.rpartition(":")[2]}({info.title})'
    return info.run, each.state, format_age(time.time() - since), title


def _to_json(each: ListedRun, steps: int | None) -> dict[str, Json]:
    return {**asdict(each.info), 'status': each.state, 'steps': steps}


async def _count_steps(access: JournalAccess, each: ListedRun) -> int | None:
    """Number of steps; None if the run is damaged."""
    try:
        return step_count(RunView(access.store, each, await access.store.load(each.info.run), None))
    except CorruptRecord:
        return None


def print_path(journal: str | None, user: str | None) -> int:
    """Print the file, folder or URL of the journal, without its password."""

    async def work(access: JournalAccess) -> int:
        print(path_of(access.store) or redact(access.settings.journal or ''))
        return 0

    return with_journal(journal, user, work, create=True)
