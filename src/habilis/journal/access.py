"""What everybody does who looks into a store: find a run of a user, read a value, hold a run for a moment."""

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from habilis.core import codec
from habilis.core.codec import Json
from habilis.core.errors import RunBusy, RunNotFound
from habilis.journal import leases
from habilis.journal.contract import Lease, Record, RunInfo, Store
from habilis.journal.refusals import no_run

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


async def info_of(store: Store, run: str, user: str | None) -> RunInfo:
    """The info of a run. Raises `RunNotFound`, also for another user's."""
    info = await store.info(run)
    if user is not None and info.user != user:
        raise no_run(run)
    return info


async def value_of(store: Store, run: str, record: Record) -> Json:
    """What a record holds, from its blob if it is there. Raises `CorruptRecord`."""
    if not record.blob:
        return record.value
    return codec.parse((await store.blob(run, record.blob)).decode())


async def claim(store: Store, run: str, *, owner: str, seconds: float = leases.SECONDS) -> Lease:
    """Become the writer of a run, at once if the one before is known to be dead. Raises `RunBusy`."""
    held = await store.lease(run)
    over = held.epoch if leases.is_dead(held.owner) else None
    return await store.claim(run, owner=owner, seconds=seconds, over=over)


async def is_worked_on(store: Store, run: str) -> bool:
    """Whether a process that may be alive holds the run."""
    lease = await store.lease(run)
    return lease.until > time.time() and not leases.is_dead(lease.owner)


async def clear_unbegun(store: Store, run: str) -> bool:
    """Forget a run whose process died before it wrote anything: there is nothing to go on with. False for others."""
    try:
        made = (await store.info(run)).created
        if not (await store.lease(run)).epoch and time.time() - made < leases.SECONDS:
            return False  # it is just being made
        lease = await claim(store, run, owner=leases.new_owner())
        if await store.load(run):  # nobody else can write from here on
            await store.release(run, epoch=lease.epoch)
            return False
        await store.delete(run)
    except (RunBusy, RunNotFound):
        return False
    return True


@asynccontextmanager
async def held(store: Store, run: str) -> 'AsyncGenerator[Lease]':
    """Be the writer of a run for a moment."""
    lease = await claim(store, run, owner=leases.new_owner())
    try:
        yield lease
    finally:
        await store.release(run, epoch=lease.epoch)
