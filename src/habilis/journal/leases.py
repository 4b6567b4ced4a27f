"""Leases: who may write to a run, and whether the one who might has died."""

import os
import secrets
import socket
from functools import cache
from pathlib import Path

from habilis.journal.contract import Lease

SECONDS = 30.0
"""How long a lease lasts without a sign of life. It is renewed three times in that time."""


def granted(
    held: Lease, *, now: float, claimed: float, owner: str, seconds: float, over: int | None = None
) -> Lease | None:
    """The lease for one who claims it; None while somebody else holds it.

    Args:
        held: the newest lease.
        now: on the same clock as `claimed`.
        claimed: when `held` was claimed or renewed. A clock that was set back must not make it last for ever: a lease
            from the future is taken as ended, and the epoch keeps its owner out once somebody else has come.
        owner: who claims.
        seconds: for how long.
        over: an epoch whose owner is known to be dead.
    """
    alive = claimed <= now < held.until
    if held.owner == owner and held.until:  # also one who comes late, if nobody else came in the meantime
        return Lease(epoch=held.epoch, owner=owner, until=now + seconds)
    if alive and held.epoch != over:
        return None
    return Lease(epoch=held.epoch + 1, owner=owner, until=now + seconds)


# Owners ---------------------------------------------------------------------------------------------------------------


def new_owner() -> str:
    """A name for one writer in this process, by which others on this machine can see whether it lives."""
    pid = os.getpid()
    return f'{_machine()}/{pid}/{_started(pid) or 0}/{secrets.token_hex(4)}'


def is_dead(owner: str) -> bool:
    """Whether the process of this owner is certainly gone. Of another machine nothing is certain."""
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
    except (OSError, OverflowError):  # it lives and is not ours, or is no number of a process
        return False
    return False


def describe(owner: str) -> str:
    """For people."""
    machine, _, rest = owner.partition('/')
    return f'process {rest.split("/")[0]} on {machine.split("~")[0]}' if rest else 'another process'


@cache
def _machine() -> str:
    """This machine since it was started: process numbers mean nothing on another, or after the next start.

    Containers share the boot id and the process numbers differ in each, so the namespace of numbers is part of it.
    """
    host = socket.gethostname().replace('/', '-').replace('~', '-')
    try:
        boot = Path('/proc/sys/kernel/random/boot_id').read_text(encoding='ascii').strip()
        numbers = str(Path('/proc/self/ns/pid').readlink())
    except OSError:
        boot = numbers = ''
    return f'{host}~{boot}~{numbers}'


def _started(pid: int) -> int | None:
    """When a process was started, in ticks since the machine was; None where that is not known."""
    try:
        stat = Path(f'/proc/{pid}/stat').read_text(encoding='utf-8', errors='replace')
    except OSError:
        return None
    fields = stat.rpartition(')')[2].split()
    if fields and fields[0] in {'Z', 'X'}:  # dead, and not yet collected by its parent
        return -1
    return int(fields[19]) if len(fields) > 19 else None
