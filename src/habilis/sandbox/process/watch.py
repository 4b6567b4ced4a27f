"""Watches the memory of all processes of a guest together, which no limit of a single process counts."""

import contextlib
import os
import threading
import weakref

from habilis.core.limits import Limits
from habilis.sandbox.pipe_guest import PipeGuest
from habilis.sandbox.workers import after_fork

SECONDS = 0.2
MAX_PROCESSES = 150
_PAGE = os.sysconf('SC_PAGE_SIZE') if hasattr(os, 'sysconf') else 4096


class _Watch:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._limits: weakref.WeakKeyDictionary[PipeGuest, Limits] = weakref.WeakKeyDictionary()
        self._thread: threading.Thread | None = None

    def add(self, guest: PipeGuest, limits: Limits) -> None:
        """Watch a guest until it is freed."""
        with self._lock:
            self._limits[guest] = limits
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name='habilis-watch', daemon=True)
                self._thread.start()

    def _run(self) -> None:
        pause = threading.Event()
        while not pause.wait(SECONDS):
            with self._lock:
                watched = [(guest, limits) for guest, limits in self._limits.items() if guest.running]
                if not self._limits:
                    self._thread = None
                    return
            for guest, limits in watched:
                _check(guest, limits)
            del watched


def _check(guest: PipeGuest, limits: Limits) -> None:
    processes = _descendants(guest.pid)
    if len(processes) > MAX_PROCESSES:
        guest.kill('broken', f'the code has started more than {MAX_PROCESSES} processes')
    limit = limits.memory_mb << 20
    if sum(map(_resident, processes)) > limit and sum(map(_own_memory, processes)) > limit:
        guest.kill('memory', 'the processes of the sandbox use more memory together than its limit')


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    unseen = [pid]
    while unseen and len(found) <= MAX_PROCESSES:
        parent = unseen.pop()
        with contextlib.suppress(OSError):
            for thread in os.listdir(f'/proc/{parent}/task'):
                with open(f'/proc/{parent}/task/{thread}/children') as file:
                    children = [int(child) for child in file.read().split()]
                found += children
                unseen += children
    return found


def _resident(pid: int) -> int:
    with contextlib.suppress(OSError), open(f'/proc/{pid}/statm') as file:
        return int(file.read().split()[1]) * _PAGE
    return 0


def _own_memory(pid: int) -> int:
    """Memory in bytes, of which shared parts are divided among those who share them."""
    with contextlib.suppress(OSError), open(f'/proc/{pid}/smaps_rollup') as file:
        lines = [line.split() for line in file if line.startswith(('Pss_Anon:', 'Pss_Shmem:'))]
        return sum(int(words[1]) << 10 for words in lines)
    return 0


_watch = _Watch()
after_fork(_watch.__init__)
watch = _watch.add
