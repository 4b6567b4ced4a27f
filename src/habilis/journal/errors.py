"""Errors that all stores raise with the same messages."""

from collections.abc import Sequence

from habilis.core.errors import JournalError, LeaseLost, RunBusy, RunNotFound, StoreUnavailable
from habilis.core.owners import describe_owner
from habilis.journal.contract import Record

_RESUME_LATER = 'What was saved is safe: resume the run when the journal is available again'


def run_not_found(run: str) -> RunNotFound:
    """The store has no run with this id."""
    return RunNotFound(f'no such run: {run!r}; `habilis runs list` lists all runs')


def check_new_run(run: str, records: Sequence[Record]) -> None:
    """Raise `JournalError` if no store can create a run with this id and these first records."""
    if not run:
        msg = 'the id of a run must not be empty; `new_run_id()` generates one'
        raise JournalError(msg)
    if any(record.seq != seq for seq, record in enumerate(records, 1)):
        msg = f'the first records of {run} must be numbered from 1: {[record.seq for record in records]}'
        raise JournalError(msg)


def check_run_name(run: str) -> None:
    """Raise `JournalError` for an id that a person could not read or type. Stores themselves accept any."""
    if not run.isprintable():
        msg = f'{run!r} is not a valid run id: it contains characters that cannot be printed'
        raise JournalError(msg)


def run_busy(run: str, owner: str) -> RunBusy:
    """Another owner holds the lease."""
    return RunBusy(f'{run} is being executed by {describe_owner(owner)}; stop that process, or wait until it has ended')


def lease_lost(run: str) -> LeaseLost:
    """Another owner has claimed the run since."""
    return LeaseLost(f'{run} was taken over by another process; this process can no longer write to it')


def store_unavailable(where: str, why: object, *, passing: bool = False, what: str = 'journal') -> StoreUnavailable:
    """The store cannot be used. `passing`: the problem may pass by itself, like a lost connection."""
    advice = _RESUME_LATER if what == 'journal' else ''
    return StoreUnavailable(f'the {what} at {where} is unavailable: {why}', passing=passing, advice=advice)
