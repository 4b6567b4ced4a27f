"""Forgetting runs, after asking."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import typer

from habilis.agent.hooks.harmless import one_line
from habilis.cli.runs.desk import Desk, at_desk
from habilis.cli.runs.printing import age, print_table
from habilis.cli.task.showing import say
from habilis.core.errors import JournalError
from habilis.journal.lookup import info_of
from habilis.journal.runs import ListedRun, State, delete_run, prunable


@dataclass(frozen=True, kw_only=True)
class Old:
    """Which runs are old."""

    seconds: float
    states: Sequence[State] = ()
    keep: int = 0


def delete_runs(runs: Sequence[str], *, yes: bool, where: str | None, user: str | None) -> int:
    """`habilis runs delete`: all, or none if one of them is not there."""

    async def work(desk: Desk) -> int:
        for run in runs:
            await info_of(desk.store, run, desk.user)
        return await _delete(desk, runs, yes=yes)

    return at_desk(where, user, work)


def prune_runs(old: Old, *, dry_run: bool, yes: bool, where: str | None, user: str | None) -> int:
    """`habilis runs prune`."""

    async def work(desk: Desk) -> int:
        found = await prunable(desk.store, seconds=old.seconds, user=desk.user, states=old.states, keep=old.keep)
        if not found:
            say('no run is so old; nothing is deleted')
            return 0
        print_table(('RUN', 'STATUS', 'AGE', 'TITLE'), [_row(each) for each in found])
        if dry_run:
            say(f'{_count(len(found))} would be deleted')
            return 0
        return await _delete(desk, [each.info.run for each in found], yes=yes)

    return at_desk(where, user, work)


def _row(each: ListedRun) -> tuple[str, ...]:
    return each.info.run, each.state, age(time.time() - each.info.updated), each.info.title


async def _delete(desk: Desk, runs: Sequence[str], *, yes: bool) -> int:
    if not yes and not _agreed(runs):
        say('nothing was deleted')
        return 1
    deleted = 0
    for run in runs:
        try:
            await delete_run(desk.store, run, user=desk.user)
            deleted += 1
        except JournalError as error:
            say(str(error))
    say(f'{_count(deleted)} deleted')
    return 0 if deleted == len(runs) else 1


def _agreed(runs: Sequence[str]) -> bool:
    what = one_line(runs[0], 100) if len(runs) == 1 else _count(len(runs))
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        msg = f'this would delete {what} for good, and there is no terminal to ask at; --yes agrees to it'
        raise typer.BadParameter(msg, param_hint='--yes')
    return typer.confirm(f'Delete {what} for good?', err=True)


def _count(number: int) -> str:
    return f'{number} run' if number == 1 else f'{number} runs'
