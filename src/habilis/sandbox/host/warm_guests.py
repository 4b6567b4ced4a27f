"""Guests that are started ahead.

A warm guest has run a few cells of the kernel (the request `warm`), which loads what a first cell needs: most of the
time of a first cell. It has no data of any user. There are at most `COUNT`, and a background thread replaces those that
are taken.
"""

import atexit
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from habilis.sandbox.contract import Guest, Stream

G = TypeVar('G', bound=Guest)
COUNT = 2
PAUSE = 0.005
"""Seconds to wait before the next one is started, so that the guest that was just taken gets the core."""


class WarmGuests(Generic[G]):
    """Keeps up to `COUNT` guests ready."""

    def __init__(self, make: Callable[[], G]) -> None:
        self._make = make
        self._ready: deque[G] = deque()
        self._lock = threading.Lock()
        self._wanted = threading.Event()
        self._stopped = False
        self._thread: threading.Thread | None = None

    def take(self) -> G | None:
        """A ready guest, or None. Starts another one in the background."""
        with self._lock:
            guest = self._ready.popleft() if self._ready else None
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name='habilis-warm-guests', daemon=True)
                self._thread.start()
                atexit.register(self._stop)
        self._wanted.set()
        return guest

    def _run(self) -> None:
        while not self._stopped:
            if len(self._ready) >= COUNT:
                self._wanted.wait()
            self._wanted.clear()
            time.sleep(PAUSE)
            try:
                self._add_one()
            except Exception:  # such as out of memory; a caller that starts its own guest sees it
                self._wanted.wait()

    def _add_one(self) -> None:
        if len(self._ready) < COUNT and not self._stopped:
            self._ready.append(self._make())

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
