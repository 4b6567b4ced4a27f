"""Owners of leases, containers and the like: name this process, and find out whether that of another owner is alive."""

import os
import secrets
import socket
from functools import cache
from pathlib import Path
from typing import Literal

OwnerState = Literal['alive', 'dead', 'unknown']


def new_owner() -> str:
    """An id for a writer in this process, from which processes of this machine can tell whether it is alive."""
    return f'{_this_process()}/{secrets.token_hex(4)}'


def owner_state(owner: str) -> OwnerState:
    """Whether the process of this owner is certainly alive or dead. `unknown` if it is on another machine."""
    parts = owner.split('/')
    if len(parts) != 4 or not _is_here(parts[0]) or not (parts[1].isascii() and parts[1].isdigit()):
        return 'unknown'
    pid, started = int(parts[1]), parts[2]
    now = _started(pid)
    if now is not None:
        return 'unknown' if started == '0' else 'alive' if str(now) == started else 'dead'
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return 'dead'
    except (OSError, OverflowError):  # it belongs to another user, or is not a valid process id
        return 'unknown'
    return 'unknown'  # a later process may have the same id


def describe_owner(owner: str) -> str:
    """The owner, for messages."""
    machine, _, rest = owner.partition('/')
    return f'process {rest.split("/")[0]} on {machine.split("~")[0]}' if rest else 'another process'


def _is_here(machine: str) -> bool:
    host, _, boot = _machine().partition('~')  # the name of the host may change while it runs
    return machine.partition('~')[2] == boot if boot.strip('~') else machine.partition('~')[0] == host


@cache
def _this_process() -> str:
    pid = os.getpid()
    return f'{_machine()}/{pid}/{_started(pid) or 0}'


if hasattr(os, 'register_at_fork'):
    os.register_at_fork(after_in_child=_this_process.cache_clear)


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
