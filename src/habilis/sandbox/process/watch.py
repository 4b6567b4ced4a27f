"""Watches what all processes of a guest use together, which no limit of a single process counts.

A guest is looked at five times a second while it runs a cell. What a cell has left running can grow later, too; but a
thousand idle guests must cost nothing. So the others are looked at when the machine has less memory available than
before, and otherwise rarely.
"""

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Collection, Sequence

from habilis.core.limits import Limits
from habilis.sandbox.host.pipe_guest import PipeGuest
from habilis.sandbox.host.workers import after_fork

SECONDS = 0.2
IDLE_SECONDS = 30.0
"""How often guests are looked at between their cells if the memory of the machine does not change."""

LESS = 64 << 20
"""How much less memory, in bytes, makes the watch look at all of them."""

PAUSE = 10
"""It then pauses for so many times as long as that has taken."""

MAX_PROCESSES = 150
MAX_SOCKETS = 1024
"""The kernel keeps up to 400 kB for each of them, and no process is charged for it."""

TOO_MUCH = 'the processes of the sandbox use too much memory together'


class IdleTurns:
    """Decides when the guests between their cells are looked at."""

    def __init__(self) -> None:
        self._most_available = 0
        self._earliest = self._latest = 0.0

    def is_due(self, now: float, available: int) -> bool:
        """Whether it is time now, with so much memory available on the machine."""
        self._most_available = max(self._most_available, available)
        has_less = available < self._most_available - LESS
        if now < self._earliest or not (has_less or now >= self._latest):
            return False
        self._most_available = available
        return True

    def end(self, begun: float, now: float) -> None:
        """They were looked at, which has taken until now."""
        self._earliest = now + PAUSE * (now - begun)
        self._latest = now + IDLE_SECONDS


class _Watch:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._limits: weakref.WeakKeyDictionary[PipeGuest, tuple[Limits, bool]] = weakref.WeakKeyDictionary()
        self._threads: weakref.WeakKeyDictionary[PipeGuest, int] = weakref.WeakKeyDictionary()
        """How many each guest had before it ran code."""
        self._thread: threading.Thread | None = None

    def add(self, guest: PipeGuest, limits: Limits, *, own_network: bool = True) -> None:
        """Watch a guest until it is freed. Its sockets can be counted in a network of its own."""
        with self._lock:
            self._limits[guest] = limits, own_network
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name='habilis-watch', daemon=True)
                self._thread.start()

    def note_threads(self, guest: PipeGuest) -> None:
        """Note how many threads a guest has that is ready and has run no code."""
        self._threads[guest] = _count_threads(guest.pid, self._firsts())

    def is_idle(self, guest: PipeGuest) -> bool:
        """Whether no code of a guest runs beside its requests: it has left no process and no thread behind.

        Of a fork of a guest that had run code this is not known, and the answer is False.
        """
        threads = self._threads.get(guest, 0)
        return _count_threads(guest.pid, self._firsts()) <= threads

    def _firsts(self) -> set[int]:
        with self._lock:
            return {guest.pid for guest in self._limits}

    def _run(self) -> None:
        pause, turns = threading.Event(), IdleTurns()
        while not pause.wait(SECONDS):
            begun = time.monotonic()
            everybody = turns.is_due(begun, _available_memory())
            with self._lock:
                watched = [(guest, *known) for guest, known in self._limits.items() if everybody or guest.running]
                firsts = {guest.pid for guest in self._limits} if watched else set[int]()
                if not self._limits:
                    self._thread = None
                    return
            while watched:
                _check(*watched.pop(), firsts)  # no name here keeps a guest alive until the next round
            if everybody:
                turns.end(begun, time.monotonic())


def _check(guest: PipeGuest, limits: Limits, own_network: bool, firsts: Collection[int]) -> None:
    first, others = _Process(guest.pid), [_Process(pid) for pid in _descendants(guest.pid, firsts)]
    limit = limits.memory_mb << 20
    # Apart, because the first process may be the guest itself, or have a copy of its memory just after a fork.
    if _use_more([first], limit) or _use_more(others, limit):
        if not guest.running and not _still_uses_more(guest, limit, firsts):
            return
        when = '' if guest.running else 'between two cells: '
        guest.kill('memory', when + TOO_MUCH)
    elif first.threads + sum(process.threads for process in others) > MAX_PROCESSES:
        guest.kill('broken', f'the code has started more than {MAX_PROCESSES} processes and threads')
    elif own_network and others and others[0].count_sockets() > MAX_SOCKETS:
        guest.kill('broken', f'the code has opened more than {MAX_SOCKETS} sockets')


def _still_uses_more(guest: PipeGuest, limit: int, firsts: Collection[int]) -> bool:
    """Look again at a guest between cells: while it is forked, the memory of its fork may be counted with its own."""
    time.sleep(SECONDS)
    return _use_more([_Process(guest.pid)], limit) or _use_more(
        [_Process(pid) for pid in _descendants(guest.pid, firsts)], limit
    )


def _count_threads(pid: int, firsts: Collection[int]) -> int:
    return sum(_Process(each).threads for each in (pid, *_descendants(pid, firsts)))


def _use_more(processes: Sequence['_Process'], limit: int) -> bool:
    used = sum(process.memory for process in processes)
    return used > limit and sum(process.own_memory() for process in processes) > limit


class _Process:
    """What a process uses; nothing if it has ended."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.threads = 0
        self.memory = 0
        """Memory in bytes that is not a file's."""

        with contextlib.suppress(OSError):
            for line in _read(f'/proc/{pid}/status').splitlines():
                if line.startswith(b'Threads:'):
                    self.threads = int(line.split()[1])
                elif line.startswith((b'RssAnon:', b'RssShmem:', b'VmSwap:')):
                    self.memory += int(line.split()[1]) << 10

    def own_memory(self) -> int:
        """The same, with shared parts divided among those who share them, where this user may know that."""
        try:
            lines = _read(f'/proc/{self._pid}/smaps_rollup').splitlines()
        except OSError:
            return self.memory
        counted = (b'Pss_Anon:', b'Pss_Shmem:', b'SwapPss:')
        return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(counted))

    def count_sockets(self) -> int:
        """Sockets in its network."""
        with contextlib.suppress(OSError):
            return int(_read(f'/proc/{self._pid}/net/sockstat').split(maxsplit=3)[2])
        return 0


def _descendants(pid: int, firsts: Collection[int]) -> list[int]:
    """The processes below one, without those of other guests: the forks of a zygote are below it."""
    found: list[int] = []
    unseen = [pid]
    while unseen and len(found) <= MAX_PROCESSES:
        parent = unseen.pop()
        with contextlib.suppress(OSError):
            for thread in os.listdir(f'/proc/{parent}/task'):
                children = [int(child) for child in _read(f'/proc/{parent}/task/{thread}/children').split()]
                children = [child for child in children if child not in firsts]
                found += children
                unseen += children
    return found


def _available_memory() -> int:
    """Memory of the machine in bytes that programs can still get."""
    return int(_read('/proc/meminfo').partition(b'MemAvailable:')[2].split(maxsplit=1)[0]) << 10


def _read(path: str) -> bytes:
    """A small file of the kernel; `open` takes several times as long."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 1 << 16)
    finally:
        os.close(descriptor)


_watch = _Watch()
after_fork(_watch.__init__)
watch = _watch.add
is_idle, note_threads = _watch.is_idle, _watch.note_threads
