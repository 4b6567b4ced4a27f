"""How many threads to compute with: one for each physical core that this process may use."""

import os
import platform
from pathlib import Path

_TOPOLOGY = Path('/sys/devices/system/cpu')
_QUOTA = Path('/sys/fs/cgroup/cpu.max')


def cores(*, topology: Path = _TOPOLOGY, quota: Path = _QUOTA) -> int:
    """Physical cores, or fewer where a container has less. Two threads of one core only wait for each other."""
    allowed = os.sched_getaffinity(0) if hasattr(os, 'sched_getaffinity') else set(range(os.cpu_count() or 1))
    siblings = {_siblings(topology, cpu) for cpu in allowed}
    if '' not in siblings:
        count = len(siblings)
    else:  # not told here: an Intel or AMD processor most often has two threads a core
        count = (len(allowed) + 1) // 2 if platform.machine().lower() in ('x86_64', 'amd64') else len(allowed)
    return max(1, min(count, _share(quota) or count))


def _siblings(topology: Path, cpu: int) -> str:
    try:
        return (topology / f'cpu{cpu}' / 'topology' / 'thread_siblings_list').read_text('ascii').strip()
    except OSError:
        return ''


def _share(quota: Path) -> int | None:
    """Whole processors that a container may use; None if it may use all."""
    try:
        limit, period = quota.read_text('ascii').split()[:2]
        return max(1, int(limit) // int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return None
