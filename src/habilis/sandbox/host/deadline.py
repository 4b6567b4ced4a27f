"""The time limit of a request. It is paused while a tool waits for a person."""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

PAUSED_POLL_SECONDS = 0.25
"""How often a paused deadline is checked again."""


class Deadline:
    """Expires after some seconds, pauses not counted. Thread-safe; several pauses may overlap."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._lock = threading.Lock()
        self._pauses = 0
        self._paused_at = 0.0

    def remaining(self) -> float:
        """Seconds until the next check: until it expires, or `PAUSED_POLL_SECONDS` while it is paused."""
        with self._lock:
            return PAUSED_POLL_SECONDS if self._pauses else max(0.0, self._end - time.monotonic())

    def is_expired(self) -> bool:
        """Whether the time is up."""
        return not self._pauses and time.monotonic() > self._end

    def pause(self) -> None:
        """Stop counting until `resume` was called as often as `pause`."""
        with self._lock:
            if not self._pauses:
                self._paused_at = time.monotonic()
            self._pauses += 1

    def resume(self) -> None:
        """End one `pause`."""
        with self._lock:
            self._pauses -= 1
            if not self._pauses:
                self._end += time.monotonic() - self._paused_at


current_deadline: ContextVar[Deadline | None] = ContextVar('current_deadline', default=None)
"""The deadline of the cell that called the running tool."""


@contextmanager
def deadline_paused() -> Generator[None]:
    """Pause the deadline of the calling cell, in a tool that waits for a person."""
    deadline = current_deadline.get()
    if deadline is not None:
        deadline.pause()
    try:
        yield
    finally:
        if deadline is not None:
            deadline.resume()
