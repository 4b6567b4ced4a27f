"""New runs of old ones, and notes about runs."""

import math

import typer

from habilis.agent.trajectory import Story, stories
from habilis.cli.runs.desk import Desk, at_desk
from habilis.cli.task.showing import say
from habilis.core.errors import JournalError
from habilis.journal.runs import RunView, fork, score_run


def fork_run(run: str, at: str | None, before: int | None, *, where: str | None, user: str | None) -> str:
    """The name of the new run."""
    made: list[str] = []

    async def work(desk: Desk) -> int:
        cut = before
        if cut is None:
            reading = await desk.read(run)
            cut = _place(reading, await stories(reading), at or '')
        copy = await fork(desk.store, run, cut, user=desk.user)
        made.append(copy.run)
        return 0

    at_desk(where, user, work)
    return made[0]


def _place(reading: RunView, told: list[Story], at: str) -> str | int:
    """The path of a step; a step that follows the last one is the end of the record."""
    if not at.isdecimal():
        return at
    if reading.info.kind != 'agent':
        msg = f'{reading.run} is the run of a flow: name the path of a step, as `habilis runs events` shows it'
        raise JournalError(msg)
    turns = told[0].turns if told else ()
    number = int(at)
    if 1 <= number <= len(turns):
        return turns[number - 1].path
    if number == len(turns) + 1 and turns and not turns[-1].error:
        result = reading.index.find(told[0].path)
        return result.end.seq if result is not None and result.end is not None else len(reading.records) + 1
    msg = f'{reading.run} has {len(turns)} {"step" if len(turns) == 1 else "steps"}; there is no step {at} to fork at'
    raise JournalError(msg)


def note_score(run: str, score: float, *, where: str | None, user: str | None) -> int:
    """`habilis runs score`."""
    if not math.isfinite(score):
        msg = 'a score is a number, such as 0.5'
        raise typer.BadParameter(msg, param_hint='X')

    async def work(desk: Desk) -> int:
        await score_run(desk.store, run, score, user=desk.user)
        say(f'{run} is scored {score:g}')
        return 0

    return at_desk(where, user, work)
