"""`habilis runs delete`."""

import sys
from collections.abc import Sequence

import typer

from habilis.agent.hooks.sanitize import one_line
from habilis.cli.runs.journal import JournalAccess, with_journal
from habilis.cli.streams import say
from habilis.core.errors import JournalError
from habilis.journal.lookup import info_of
from habilis.journal.runs import delete_run


def delete_runs(runs: Sequence[str], *, yes: bool, journal: str | None, user: str | None) -> int:
    """Delete runs after confirmation; none if one of them does not exist."""

    async def work(access: JournalAccess) -> int:
        for run in runs:
            await info_of(access.store, run, access.user)
        return await confirm_and_delete(access, runs, yes=yes)

    return with_journal(journal, user, work)


async def confirm_and_delete(access: JournalAccess, runs: Sequence[str], *, yes: bool) -> int:
    """Delete runs, after asking unless `yes`. Returns the exit code."""
    if not yes and not _confirm(runs):
        say('nothing deleted')
        return 1
    deleted = 0
    for run in runs:
        try:
            await delete_run(access.store, run, user=access.user)
            deleted += 1
        except JournalError as error:
            say(str(error))
    say(f'deleted {count_runs(deleted)}')
    return 0 if deleted == len(runs) else 1


def _confirm(runs: Sequence[str]) -> bool:
    what = one_line(runs[0], 100) if len(runs) == 1 else count_runs(len(runs))
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        msg = f'this deletes {what} permanently and there is no terminal to confirm; use --yes'
        raise typer.BadParameter(msg, param_hint='--yes')
    return typer.confirm(f'Delete {what} permanently?', err=True)


def count_runs(number: int) -> str:
    """`1 run`, `2 runs`."""
    return f'{number} {"run" if number == 1 else "runs"}'
