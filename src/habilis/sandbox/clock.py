"""The time a request may take. It stands still while a person is asked: they are not the code's fault."""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

RECHECK = 0.25
"""Seconds after which whoever waits for a clock that stands still looks again."""


class Clock:
    """Counts down. May be stopped by several at once, from any thread; it goes on when the last lets it."""

    def __init__(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds
        self._lock = threading.Lock()
        self._stopped = 0
        self._since = 0.0

    def left(self) -> float:
        """Seconds until it is worth looking again: those that are left, or a few where it stands still."""
        with self._lock:
            return RECHECK if self._stopped else max(0.0, self._deadline - time.monotonic())

    def is_over(self) -> bool:
        """Whether the time is up."""
        return not self._stopped and time.monotonic() > self._deadline

    def stop(self) -> None:
        """Stand still."""
        with self._lock:
            if not self._stopped:
                self._since = time.monotonic()
            self._stopped += 1

    def go_on(self) -> None:
        """Undo one `stop`."""
        with self._lock:
            self._stopped -= 1
            if not self._stopped:
                self._deadline += time.monotonic() - self._since


running: ContextVar[Clock | None] = ContextVar('running', default=None)
"""Of the cell that called the tool which runs now."""


@contextmanager
def clock_stopped() -> Generator[None]:
    """For a tool that waits for a person: its cell's time limit does not count meanwhile."""
    clock = running.get()
    if clock is not None:
        clock.stop()
    try:
        yield
    finally:
        if clock is not None:
            clock.go_on()
