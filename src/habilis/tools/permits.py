"""Whether calls may still begin: not after their run was cancelled, has reached a limit, or has its answer.

A call may wait for long before its tool begins: for a gate, a person, a thread, or a retry. So it is checked again
directly before the tool begins, on the thread of the tool. Code that is being cancelled runs on until it next waits;
therefore the check asks the tasks themselves, not only what they have closed so far.
"""

import asyncio
import contextlib
import contextvars
from collections.abc import Generator

from habilis.sandbox.host.deadline import current_deadline


class Permit:
    """The permit of one step, cell or call. Closed for good by `close`, and with the permits around it."""

    def __init__(self, parent: 'Permit | None' = None) -> None:
        self._parent = parent or _current.get()
        self._task = asyncio.current_task() if asyncio._get_running_loop() else None  # pyright: ignore[reportPrivateUsage]
        self._cancels = self._task.cancelling() if self._task else 0
        self._deadline = current_deadline.get()
        self._is_closed = False

    def close(self) -> None:
        """Let nothing begin any more. Thread-safe."""
        self._is_closed = True

    def release(self) -> None:
        """Detach from the permits around it: what the call has left running is no longer part of it."""
        self._parent = self._deadline = None

    def is_open(self) -> bool:
        """Whether a call may begin now. Thread-safe."""
        permit: Permit | None = self
        while permit is not None:
            if permit._is_over():
                return False
            permit = permit._parent
        return True

    def _is_over(self) -> bool:
        if self._is_closed or (self._deadline is not None and self._deadline.is_expired()):
            return True
        return self._task is not None and self._task.cancelling() > self._cancels

    @contextlib.contextmanager
    def entered(self) -> Generator[None]:
        """Make it the permit of what happens inside the block."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)


_current: contextvars.ContextVar[Permit | None] = contextvars.ContextVar('habilis_permit', default=None)


def check_open() -> None:
    """Raise `CancelledError` if the current permit is closed."""
    permit = _current.get()
    if permit is not None and not permit.is_open():
        msg = 'it was not called: its run was cancelled, has reached a limit, or has its answer'
        raise asyncio.CancelledError(msg)
