"""`habilis runs rm` and `prune`."""

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass

import typer

from habilis.agent.hooks.sanitize import one_line
from habilis.cli.options import confirm_deletion
from habilis.cli.pictures import run_pictures
from habilis.cli.printing import print_json, print_table
from habilis.cli.runs.journal import JournalAccess, in_journal
from habilis.cli.runs.list import list_row
from habilis.cli.streams import say
from habilis.core.errors import JournalError
from habilis.journal import RunInfo
from habilis.journal.runs import State, delete_run, prunable

MAX_NAMED = 3
"""Max runs named in a message; if there are more, it has only their number."""

MAX_TITLE_CHARS = 40
_UNIT_SECONDS = {'d': 86400.0, 'h': 3600.0, 'm': 60.0}
_MAX_AGE_SECONDS = 1e10


@in_journal
async def delete_runs(access: JournalAccess, runs: Sequence[str], *, yes: bool, as_json: bool) -> int:
    """Delete runs after confirmation; none if one of them does not exist."""
    known = list(dict.fromkeys([await access.resolve(run) for run in runs]))
    return await confirm_and_delete(access, [await access.store.info(run) for run in known], yes=yes, as_json=as_json)


async def confirm_and_delete(access: JournalAccess, runs: Sequence[RunInfo], *, yes: bool, as_json: bool) -> int:
    """Delete runs, after asking unless `yes`. Returns the exit code; prints the ids with `as_json`."""
    what = _names(runs) if len(runs) <= MAX_NAMED else _count(len(runs))
    if not confirm_deletion(f'Delete {what} permanently?', yes=yes):
        return 1
    deleted: list[RunInfo] = []
    for info in runs:
        try:
            await delete_run(access.store, info.run, user=access.user)
            shutil.rmtree(run_pictures(info.run), ignore_errors=True)
            deleted.append(info)
        except JournalError as error:
            say(str(error))
    names = f': {_names(deleted)}' if 1 <= len(deleted) <= MAX_NAMED else ''
    if as_json:
        print_json([info.run for info in deleted])
    else:
        say(f'deleted {_count(len(deleted))}{names}')
    return 0 if len(deleted) == len(runs) else 1


def _names(runs: Sequence[RunInfo]) -> str:
    """Ids and titles, because the user may have typed only the start of an id."""
    return ', '.join(f'{one_line(info.run, 100)} ({one_line(info.title, MAX_TITLE_CHARS)})' for info in runs)


def _count(number: int) -> str:
    """`1 run`, `2 runs`."""
    return f'{number} {"run" if number == 1 else "runs"}'


@dataclass(frozen=True, kw_only=True)
class PruneOptions:
    """Which runs to delete."""

    seconds: float
    """Minimum time since the last record."""

    states: Sequence[State] = ()
    keep: int = 0


def parse_age(text: str) -> float:
    """Seconds of an age such as `30d`, `12h` or `90m`."""
    found = re.fullmatch(r'(\d{1,9}(?:\.\d{1,9})?)([dhm])', text.strip().lower())
    if found is None:
        msg = f'{text!r} is not an age: expected days, hours or minutes, such as 30d, 12h or 90m'
        raise typer.BadParameter(msg, param_hint='--older-than')
    return min(float(found[1]) * _UNIT_SECONDS[found[2]], _MAX_AGE_SECONDS)


@in_journal
async def prune_runs(access: JournalAccess, options: PruneOptions, *, dry_run: bool, yes: bool, as_json: bool) -> int:
    """List the old runs and delete them after confirmation."""
    found = await prunable(
        access.store, seconds=options.seconds, user=access.user, states=options.states, keep=options.keep
    )
    if as_json and (dry_run or not found):
        print_json([each.info.run for each in found])
        return 0
    if not found:
        say('no runs are that old; nothing deleted')
        return 0
    if not as_json:
        print_table(('RUN', 'STATUS', 'AGE', 'TITLE'), [list_row(each, each.info.updated) for each in found])
    if dry_run:
        say(f'would delete {_count(len(found))}')
        return 0
    return await confirm_and_delete(access, [each.info for each in found], yes=yes, as_json=as_json)
