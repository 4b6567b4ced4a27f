"""Control groups (version 2) of guests, where the host may make them: limits that the kernel keeps for all processes of
a guest together. Without them, rlimits and the watch remain.

A group needs a parent that this user may write to, with the controllers on. A group with processes cannot pass its
controllers on, so that is the root, or the parent of the group of this process. systemd makes it writable for the
programs of a user, and for services with `Delegate=yes`.
"""

import contextlib
import functools
import itertools
import os
from dataclasses import dataclass
from pathlib import Path

from habilis.core.limits import Limits

NEEDED = frozenset({'memory', 'pids'})
PREFIX = 'habilis-'
MAX_PROCESSES = 160
"""More than the rlimit of a guest, which gives clearer errors."""

_PERIOD = 100_000
_numbers = itertools.count()


@dataclass(frozen=True)
class Groups:
    """The folder in which groups can be made, and what they can limit."""

    parent: Path
    controllers: frozenset[str]

    @property
    def limit_cpu(self) -> bool:
        """Whether the share of a core can be limited."""
        return 'cpu' in self.controllers

    def make(self, limits: Limits) -> 'Group':
        """A group for a new guest."""
        for old in [_ended.pop() for _ in range(len(_ended))]:
            old.close()
        group = Group(self.parent / f'{PREFIX}{os.getpid()}-{next(_numbers)}')
        group.limit(limits, self.controllers)
        return group


class Group:
    """The group of one guest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def limit(self, limits: Limits, controllers: frozenset[str]) -> None:
        """Set the limits. Files of `/tmp` and `/dev/shm` count as memory and have limits of their own."""
        values: dict[str, int | str] = {'memory.max': 3 * limits.memory_mb << 20, 'memory.swap.max': 0}
        values['pids.max'] = MAX_PROCESSES
        if 'cpu' in controllers:
            values['cpu.max'] = f'{int(limits.cpu * _PERIOD)} {_PERIOD}'
        for name, value in values.items():
            if name.partition('.')[0] in controllers and (self.folder / name).exists():  # swap may be off
                (self.folder / name).write_text(str(value))

    def has_run_out_of_memory(self) -> bool:
        """Whether the kernel has killed a process of the guest to free memory."""
        with contextlib.suppress(OSError):
            counts = dict(line.split() for line in (self.folder / 'memory.events').read_text().splitlines())
            return int(counts.get('oom_kill', 0)) > 0
        return False

    def close(self) -> None:
        """Remove the group after the end of its processes, or leave that to a later one."""
        try:
            self.folder.rmdir()
        except OSError:  # its last processes are ending, or a fork needs one of them
            _ended.append(self)


_ended: list[Group] = []


@functools.cache
def find_groups() -> Groups | None:
    """Where groups can be made; None if they cannot. Removes those of hosts that have ended."""
    with contextlib.suppress(OSError, StopIteration):
        mounts = Path('/proc/self/mountinfo').read_text().splitlines()
        root = Path(next(line.split()[4] for line in mounts if ' - cgroup2 ' in line))
        own = next(line[3:] for line in Path('/proc/self/cgroup').read_text().splitlines() if line.startswith('0::'))
        group = root / own.lstrip('/')
        parent = root if group == root else group.parent
        controllers = frozenset((parent / 'cgroup.subtree_control').read_text().split())
        if controllers >= NEEDED and os.access(parent, os.W_OK) and os.access(parent / 'cgroup.procs', os.W_OK):
            _remove_abandoned(parent)
            return Groups(parent, controllers)
    return None


def _remove_abandoned(parent: Path) -> None:
    for group in parent.glob(f'{PREFIX}*'):
        if not Path('/proc', group.name.split('-')[1]).exists():
            with contextlib.suppress(OSError):
                group.rmdir()
