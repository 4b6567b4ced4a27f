"""Interpreters started ahead, so that whoever asks for a sandbox finds one ready.

A spare has run a few cells of the kernel's own, which touches the memory a first cell touches: that is most of what a
first cell costs. It has no mounts and has seen nothing of any user. There are at most a few, and a new one is made in
the background whenever one is taken.
"""

import atexit
import threading
import time
from collections import deque
from collections.abc import Callable

from habilis.sandbox.wasm.engine import SilentHost, WasmGuest
from habilis.sandbox.workers import start_deep_thread

COUNT = 2
PAUSE = 0.005
"""Seconds to leave to whoever took one, before a core is used to make the next. While many are made, none is spare."""


class WarmGuests:
    """Up to `COUNT` guests in waiting."""

    def __init__(self, make: Callable[[], WasmGuest]) -> None:
        self._make = make
        self._ready: deque[WasmGuest] = deque()
        self._lock = threading.Lock()
        self._wanted = threading.Event()
        self._stopped = False
        self._thread: threading.Thread | None = None

    def take(self) -> WasmGuest | None:
        """A guest that is ready, or None. Has another one made in either case."""
        with self._lock:
            guest = self._ready.popleft() if self._ready else None
            if self._thread is None:
                self._thread = start_deep_thread(self._run, 'habilis-spares')
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
            except Exception:  # out of memory, say: whoever asks will make their own and see
                self._wanted.wait()

    def _add_one(self) -> None:
        if len(self._ready) < COUNT and not self._stopped:
            guest = self._make()
            guest.enter('{"op":"warm"}', SilentHost())
            self._ready.append(guest)

    def _stop(self) -> None:
        """Python must not shut down while this thread is inside a guest."""
        self._stopped = True
        self._wanted.set()
        if self._thread is not None:
            self._thread.join(2.0)
        while self._ready:
            self._ready.popleft().close()
