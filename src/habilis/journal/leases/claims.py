"""Leases: claim, hold and release runs."""

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from habilis.core import owners
from habilis.core.errors import RunBusy, RunNotFound, StoreUnavailable
from habilis.core.owners import owner_state
from habilis.journal.contract import Lease, Store
from habilis.journal.errors import run_busy
from habilis.journal.leases.renewal import release_later

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

SECONDS = 30.0
"""How long a lease lasts unless it is renewed. It is renewed three times in that period."""


def next_lease(
    held: Lease, *, now: float, claimed: float, owner: str, seconds: float, over: int | None = None
) -> Lease | None:
    """The lease for an owner that claims a run; None while another owner holds it.

    Args:
        held: the latest lease.
        now: the time, on the same clock as `claimed`.
        claimed: when `held` was claimed or renewed. A clock that was set back must not make it last for ever: a lease
            from the future counts as expired, and the epoch excludes its owner once another one has claimed the run.
        owner: the owner that claims the run.
        seconds: the duration of the lease.
        over: the epoch of a lease that was released, or whose owner is known to be dead. If there is another one now,
            somebody else has claimed the run meanwhile.
    """
    if held.owner == owner and held.until:  # also after it expired, if no other owner has claimed the run
        return Lease(epoch=held.epoch, owner=owner, until=now + seconds)
    if held.epoch != over and (over is not None or claimed <= now < held.until):
        return None
    return Lease(epoch=held.epoch + 1, owner=owner, until=now + seconds)


# Runs of a store ------------------------------------------------------------------------------------------------------


async def claim_run(
    store: Store, run: str, *, owner: str, seconds: float = SECONDS, held: Lease | None = None
) -> Lease:
    """Become the writer of a run. Raises `RunBusy`.

    An owner on this machine holds the run until its process has ended or it releases the run, whatever the clock says.
    """
    held = held or await store.lease(run)
    state = owner_state(held.owner)
    if held.until and state == 'alive' and held.owner != owner:
        raise run_busy(run, held.owner)
    over = held.epoch if state == 'dead' or not held.until else None
    try:
        return await store.claim(run, owner=owner, seconds=seconds, over=over)
    except (RunBusy, RunNotFound):
        raise
    except BaseException:  # cancelled, or the reply was lost: it may have been claimed all the same
        release_later(store, run, owner)
        raise


async def release_run(store: Store, run: str, lease: Lease) -> None:
    """End a lease; as soon as the store can be reached, if it cannot be reached now."""
    try:
        await store.release(run, epoch=lease.epoch)
    except RunNotFound:
        pass
    except BaseException as error:
        release_later(store, run, lease.owner)
        if not isinstance(error, StoreUnavailable):
            raise


@asynccontextmanager
async def hold_run(store: Store, run: str) -> 'AsyncGenerator[Lease]':
    """Be the writer of a run while the block runs. Raises `RunBusy`."""
    lease = await claim_run(store, run, owner=owners.new_owner())
    try:
        yield lease
    finally:
        await release_run(store, run, lease)


async def has_live_owner(store: Store, run: str) -> bool:
    """Whether a process that may be alive holds the run."""
    return is_held(await store.lease(run))


def is_held(lease: Lease) -> bool:
    """Whether a process that may be alive has this lease."""
    state = owner_state(lease.owner) if lease.until else 'dead'
    return lease.until > time.time() if state == 'unknown' else state == 'alive'
