"""Number of threads for llama.cpp: one per physical core that this process may use, and that others leave idle.

The threads of llama.cpp spin while they wait for each other, hundreds of times per token. Where a core has other work
to do as well, a second thread makes all of them slower, not faster.
"""

import os
import platform
from pathlib import Path

_TOPOLOGY = Path('/sys/devices/system/cpu')
_QUOTA = Path('/sys/fs/cgroup/cpu.max')
_LOAD = Path('/proc/loadavg')


def core_count(*, topology: Path = _TOPOLOGY, quota: Path = _QUOTA) -> int:
    """Number of physical cores, limited by the CPU quota of a container. Hyper-threads do not help llama.cpp."""
    allowed = os.sched_getaffinity(0) if hasattr(os, 'sched_getaffinity') else set(range(os.cpu_count() or 1))
    siblings = {_siblings(topology, cpu) for cpu in allowed}
    if '' not in siblings:
        count = len(siblings)
    else:  # unknown: an Intel or AMD processor usually has two threads per core
        count = (len(allowed) + 1) // 2 if platform.machine().lower() in ('x86_64', 'amd64') else len(allowed)
    return max(1, min(count, _quota_cores(quota) or count))


def idle_cores(*, load: Path = _LOAD) -> int:
    """Processors without work at this moment, including the one of the calling thread. All of them if unknown."""
    processors = os.cpu_count() or 1
    try:
        running = int(load.read_text('ascii').split()[3].partition('/')[0])  # counts the calling thread
    except (OSError, ValueError, IndexError):
        return processors
    return max(1, processors - (running - 1))


def _siblings(topology: Path, cpu: int) -> str:
    try:
        return (topology / f'cpu{cpu}' / 'topology' / 'thread_siblings_list').read_text('ascii').strip()
    except OSError:
        return ''


def _quota_cores(quota: Path) -> int | None:
    """CPU quota of the container in whole processors; None: unlimited."""
    try:
        limit, period = quota.read_text('ascii').split()[:2]
        return max(1, int(limit) // int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return None
