"""Leases: claim and hold runs, and find out whether the owner of a lease has died."""

import os
import secrets
import socket
import time
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from habilis.journal.contract import Lease, Store

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
        over: an epoch whose owner is known to be dead.
    """
    is_valid = claimed <= now < held.until
    if held.owner == owner and held.until:  # also after it expired, if no other owner has claimed the run
        return Lease(epoch=held.epoch, owner=owner, until=now + seconds)
    if is_valid and held.epoch != over:
        return None
    return Lease(epoch=held.epoch + 1, owner=owner, until=now + seconds)


# Runs of a store ------------------------------------------------------------------------------------------------------


async def claim_run(store: Store, run: str, *, owner: str, seconds: float = SECONDS) -> Lease:
    """Become the writer of a run, at once if its last owner is known to be dead. Raises `RunBusy`."""
    held = await store.lease(run)
    over = held.epoch if is_dead(held.owner) else None
    return await store.claim(run, owner=owner, seconds=seconds, over=over)


@asynccontextmanager
async def hold_run(store: Store, run: str) -> 'AsyncGenerator[Lease]':
    """Be the writer of a run while the block runs. Raises `RunBusy`."""
    lease = await claim_run(store, run, owner=new_owner())
    try:
        yield lease
    finally:
        await store.release(run, epoch=lease.epoch)


async def has_live_owner(store: Store, run: str) -> bool:
    """Whether a process that may be alive holds the run."""
    lease = await store.lease(run)
    return lease.until > time.time() and not is_dead(lease.owner)


# Owners ---------------------------------------------------------------------------------------------------------------


def new_owner() -> str:
    """An id for a writer in this process, from which processes of this machine can tell whether it is alive."""
    pid = os.getpid()
    return f'{_machine()}/{pid}/{_started(pid) or 0}/{secrets.token_hex(4)}'


def is_dead(owner: str) -> bool:
    """Whether the process of this owner has certainly ended. False if it is on another machine."""
    parts = owner.split('/')
    if len(parts) != 4 or parts[0] != _machine() or not (parts[1].isascii() and parts[1].isdigit()):
        return False
    pid, started = int(parts[1]), parts[2]
    now = _started(pid)
    if now is not None:
        return started != '0' and str(now) != started
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # it belongs to another user, or is not a valid process id
        return False
    return False


def describe_owner(owner: str) -> str:
    """The owner, for messages."""
    machine, _, rest = owner.partition('/')
    return f'process {rest.split("/")[0]} on {machine.split("~")[0]}' if rest else 'another process'


@cache
def _machine() -> str:
    """An id of this machine since its last boot, because process ids are only valid there and until then.

    It includes the namespace of process ids, because containers share the boot id but have process ids of their own.
    """
    host = socket.gethostname().replace('/', '-').replace('~', '-')
    try:
        boot = Path('/proc/sys/kernel/random/boot_id').read_text(encoding='ascii').strip()
        numbers = str(Path('/proc/self/ns/pid').readlink())
    except OSError:
        boot = numbers = ''
    return f'{host}~{boot}~{numbers}'


def _started(pid: int) -> int | None:
    """When a process was started, in ticks since the last boot; -1 if it has ended, None if that is not known."""
    try:
        stat = Path(f'/proc/{pid}/stat').read_text(encoding='utf-8', errors='replace')
    except OSError:
        return None
    fields = stat.rpartition(')')[2].split()
    if fields and fields[0] in {'Z', 'X'}:  # ended, and not yet waited for by its parent
        return -1
    return int(fields[19]) if len(fields) > 19 else None
