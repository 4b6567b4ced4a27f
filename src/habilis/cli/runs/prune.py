"""`habilis runs prune`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import typer

from habilis.cli.printing import print_table
from habilis.cli.runs.delete import confirm_and_delete, count_runs
from habilis.cli.runs.journal import JournalAccess, in_journal
from habilis.cli.runs.list import list_row
from habilis.cli.streams import say
from habilis.journal.runs import State, prunable

_UNIT_SECONDS = {'d': 86400.0, 'h': 3600.0, 'm': 60.0}
_MAX_AGE_SECONDS = 1e10


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
async def prune_runs(access: JournalAccess, options: PruneOptions, *, dry_run: bool, yes: bool) -> int:
    """List the old runs and delete them after confirmation."""
    found = await prunable(
        access.store, seconds=options.seconds, user=access.user, states=options.states, keep=options.keep
    )
    if not found:
        say('no runs are that old; nothing deleted')
        return 0
    print_table(('RUN', 'STATUS', 'AGE', 'TITLE'), [list_row(each, each.info.updated) for each in found])
    if dry_run:
        say(f'would delete {count_runs(len(found))}')
        return 0
    return await confirm_and_delete(access, [each.info for each in found], yes=yes)
