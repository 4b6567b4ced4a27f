"""Guests that are started ahead.

A warm guest has run a few cells of the kernel (the request `warm`), which loads what a first cell needs: most of the
time of a first cell. It has no data of any user. A background thread replaces those that are taken. It keeps as many as
were asked for in the last second, but at least `COUNT`.
"""

import atexit
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from habilis.sandbox.contract import Guest, Stream
from habilis.sandbox.host.workers import WORKERS

G = TypeVar('G', bound=Guest)
COUNT = 2
DEMAND_SECONDS = 1.0
PAUSE = 0.005
"""Seconds to wait before the next one is started, so that the guest that was just taken gets the core. Not if they are
asked for one after another: then somebody waits for it, and the other cores have nothing to do."""


class WarmGuests(Generic[G]):
    """Keeps guests ready: `COUNT`, and up to `most` if they are taken one after another."""

    def __init__(self, make: Callable[[], G], *, most: int = COUNT) -> None:
        self._make = make
        self._ready: deque[G] = deque()
        self._asked: deque[float] = deque(maxlen=most)
        """When the last ones were asked for."""

        self._lock = threading.Lock()
        self._wanted = threading.Event()
        self._stopped = False
        self._thread: threading.Thread | None = None

    def __bool__(self) -> bool:
        """Whether one is ready."""
        return bool(self._ready)

    def take(self) -> G | None:
        """A ready guest, or None. Starts another one in the background."""
        with self._lock:
            self._asked.append(time.monotonic())
            guest = self._ready.popleft() if self._ready else None
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name='habilis-warm-guests', daemon=True)
                self._thread.start()
                atexit.register(self._stop)
        self._wanted.set()
        return guest

    def _count(self) -> int:
        """How many to keep ready."""
        since = time.monotonic() - DEMAND_SECONDS
        with self._lock:
            return max(COUNT, sum(asked > since for asked in self._asked))

    def _run(self) -> None:
        while not self._stopped:
            count = self._count()
            if len(self._ready) >= count:
                self._wanted.wait(DEMAND_SECONDS if count > COUNT else None)
            self._wanted.clear()
            if count == COUNT or not WORKERS.is_idle:
                time.sleep(PAUSE)
            try:
                self._adjust()
            except Exception:  # such as out of memory; a caller that starts its own guest sees it
                self._wanted.wait()

    def _adjust(self) -> None:
        """Start one, or close those that nobody asks for any more."""
        count = self._count()
        if len(self._ready) < count and not self._stopped:
            self._ready.append(self._make())
        while len(self._ready) > count:
            self._ready.pop().close()

    def _stop(self) -> None:
        """Stop the thread: Python must not shut down while it is inside a guest."""
        self._stopped = True
        self._wanted.set()
        if self._thread is not None:
            self._thread.join(2.0)
        while self._ready:
            self._ready.popleft().close()


class SilentHost:
    """The host of a guest that no session has yet."""

    def answer(self, message: str) -> str:
        """Nothing is known to it."""
        return ''

    def write(self, stream: Stream, data: bytes) -> None:
        """Drop it."""

    def check(self) -> None:
        """Never interrupts."""
