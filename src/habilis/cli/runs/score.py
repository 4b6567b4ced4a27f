"""`habilis runs score`."""

import math

import typer

from habilis.cli.runs.journal import JournalAccess, with_journal
from habilis.cli.streams import say
from habilis.journal import runs


def score_run(run: str, score: float, *, journal: str | None, user: str | None) -> int:
    """Record a score for a run."""
    if not math.isfinite(score):
        msg = 'expected a finite number, such as 0.5'
        raise typer.BadParameter(msg, param_hint='SCORE')

    async def work(access: JournalAccess) -> int:
        known = await access.resolve(run)
        await runs.score_run(access.store, known, score, user=access.user)
        say(f'scored {known}: {score:g}')
        return 0

    return with_journal(journal, user, work)
