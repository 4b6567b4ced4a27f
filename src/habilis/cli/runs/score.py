"""`habilis runs score`."""

import math

import typer

from habilis.cli.runs.journal import JournalAccess, in_journal
from habilis.cli.streams import say
from habilis.journal import runs


@in_journal
async def score_run(access: JournalAccess, run: str, score: float) -> int:
    """Record a score for a run."""
    if not math.isfinite(score):
        msg = 'expected a finite number, such as 0.5'
        raise typer.BadParameter(msg, param_hint='SCORE')
    known = await access.resolve(run)
    await runs.score_run(access.store, known, score, user=access.user)
    say(f'scored {known}: {score:g}')
    return 0
