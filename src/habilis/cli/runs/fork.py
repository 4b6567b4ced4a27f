"""`habilis runs fork`."""

from habilis.agent.durable.trajectory import Trajectory, read_trajectories
from habilis.cli.run.report import count_steps
from habilis.cli.runs.journal import JournalAccess, with_journal
from habilis.core.errors import JournalError
from habilis.journal.runs import RunView, fork


def fork_run(run: str, at: str | None, before: int | None, *, journal: str | None, user: str | None) -> str:
    """Copy a run up to a step or a record. Returns the id of the copy."""
    copies: list[str] = []

    async def work(access: JournalAccess) -> int:
        cut: str | int | None = before
        known = await access.resolve(run)
        if cut is None:
            reading = await access.read(known)
            cut = _fork_point(reading, await read_trajectories(reading), at or '')
        copies.append((await fork(access.store, known, cut, user=access.user)).run)
        return 0

    with_journal(journal, user, work)
    return copies[0]


def _fork_point(reading: RunView, agents: list[Trajectory], at: str) -> str | int:
    """The path of a step; for the step after the last one, the end of the record."""
    if not at.isdecimal():
        return at
    if reading.info.kind != 'agent':
        msg = f'{reading.run} is the run of a flow: give the path of a step, as shown by `habilis runs events`'
        raise JournalError(msg)
    turns = agents[0].turns if agents else ()
    number = int(at)
    if 1 <= number <= len(turns):
        return turns[number - 1].path
    if number == len(turns) + 1 and turns and not turns[-1].error:
        result = reading.index.find(agents[0].path)
        return result.end.seq if result is not None and result.end is not None else len(reading.records) + 1
    msg = f'{reading.run} has no step {at} to fork at: it has {count_steps(len(turns))}'
    raise JournalError(msg)
