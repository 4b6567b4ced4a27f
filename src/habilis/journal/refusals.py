"""What every store says in the same words."""

from habilis.core.errors import JournalError, LeaseLost, RunBusy, RunNotFound, StoreUnavailable
from habilis.journal.leases import describe


def no_run(run: str) -> RunNotFound:
    """There is none of that name."""
    return RunNotFound(f'there is no run {run!r} here; `habilis runs list` shows those there are')


LATER = 'What was saved is safe; resume the run when it is back'
"""About a store that was in use."""


def no_name() -> JournalError:
    """A run is to be made that has an empty name."""
    return JournalError('a run needs a name; `new_run_id()` makes one')


def check_name(run: str) -> None:
    """Refuse a name that a person could not read in a list, or type. Stores themselves take any."""
    if not run.isprintable():
        msg = f'{run!r} cannot be the name of a run: it has characters in it that cannot be printed; choose another'
        raise JournalError(msg)


def busy(run: str, owner: str) -> RunBusy:
    """Somebody else holds the lease."""
    return RunBusy(f'{run} is being worked on by {describe(owner)}; stop that one first, or wait until it has ended')


def lost(run: str) -> LeaseLost:
    """Somebody else has claimed the run since."""
    return LeaseLost(f'{run} was taken over by another process; this one no longer writes to it')


def unavailable(where: str, why: object, *, passing: bool = False) -> StoreUnavailable:
    """The store cannot do its work; `passing`: a lost connection, not a full disk."""
    msg = f'the journal at {where} cannot be used: {why}. {LATER}'
    return StoreUnavailable(msg, passing=passing)
