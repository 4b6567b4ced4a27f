"""`habilis runs fork`."""

from habilis.agent.durable.edits import fork_edited
from habilis.agent.durable.trajectory import Trajectory, read_trajectories
from habilis.cli.run.report import count_steps
from habilis.cli.runs.journal import JournalAccess, with_journal
from habilis.core.codec import Json, parse
from habilis.core.errors import JournalError
from habilis.journal.runs import RunView, first_record, fork


def find_fork_point(
    run: str, at: str | None, before: int | None, *, journal: str | None, user: str | None
) -> tuple[str, str | int]:
    """The id of a run, and the path or the record before which to fork it: by default its last step.

    Raises `JournalError` if there is none.
    """
    found: list[tuple[str, str | int]] = []

    async def work(access: JournalAccess) -> int:
        reading = await access.read(run)
        point = before if before is not None else _fork_point(reading, await read_trajectories(reading), at)
        if isinstance(point, str):
            first_record(reading, point)
        found.append((reading.run, point))
        return 0

    with_journal(journal, user, work)
    return found[0]


def fork_run(run: str, point: str | int, edit: str | None, *, journal: str | None, user: str | None) -> str:
    """Copy what a run did before a step or a record; with `edit`, up to that step with a change. The id of the copy."""
    copies: list[str] = []

    async def work(access: JournalAccess) -> int:
        if edit is None:
            copy = await fork(access.store, run, point, user=access.user)
        else:
            new = _result(edit) if '(' in str(point) else edit
            copy = await fork_edited(access.store, run, str(point), new, user=access.user)
        copies.append(copy.run)
        return 0

    with_journal(journal, user, work)
    return copies[0]


def _result(text: str) -> Json:
    """The result of a call: JSON, or else text."""
    try:
        return parse(text)
    except ValueError:
        return text


def _fork_point(reading: RunView, agents: list[Trajectory], at: str | None) -> str | int:
    """The path of a step; for the step after the last one, the end of the record."""
    if at is not None and not at.isdecimal():
        return at
    if reading.info.kind != 'agent':
        msg = f'{reading.run} is the run of a flow: give the path of a step, as shown by `habilis runs events`'
        raise JournalError(msg)
    turns = agents[0].turns if agents else ()
    number = len(turns) if at is None else int(at)
    if 1 <= number <= len(turns):
        return turns[number - 1].path
    if number == len(turns) + 1 and turns and not turns[-1].error:
        result = reading.index.find(agents[0].path)
        return result.end.seq if result is not None and result.end is not None else len(reading.records) + 1
    msg = f'{reading.run} has no step {number} to fork at: it has {count_steps(len(turns))}'
    raise JournalError(msg)
