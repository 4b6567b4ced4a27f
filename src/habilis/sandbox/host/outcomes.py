"""How the outcome of a call on another thread reaches the task that awaits it: with few system calls.

Each system call releases the GIL, and the thread that has told the outcome may take it, so each costs much more than
itself.
"""

import asyncio
import contextlib
import os
import sys
import weakref
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import TypeVar

T = TypeVar('T')
_Callback = Callable[[asyncio.Future[T]], object]


class WorkerOutcome(asyncio.Future[T]):
    """A future whose result resumes the task that awaits it at once, and not in the next round of the event loop."""

    _first: tuple[_Callback[T], Context | None] | None = None

    def set_result(self, result: T, /) -> None:
        """Set the result and continue with the task. Only in a callback of the event loop."""
        super().set_result(result)
        if self._first is not None:
            (resume, context), self._first = self._first, None
            _ = resume(self) if context is None else context.run(resume, self)

    def add_done_callback(self, fn: _Callback[T], /, *, context: Context | None = None) -> None:
        """Keep the first one apart: that of the task."""
        if self._first is None and not self.done():
            self._first = fn, context
        else:
            super().add_done_callback(fn, context=context)

    def remove_done_callback(self, fn: _Callback[T], /) -> int:
        """As the base class does."""
        self._schedule()
        return super().remove_done_callback(fn)

    def cancel(self, msg: object = None) -> bool:
        """As the base class does: a task is not resumed by the one that cancels it."""
        self._schedule()
        return super().cancel(msg)

    def set_exception(self, exception: type | BaseException, /) -> None:
        """As the base class does."""
        self._schedule()
        super().set_exception(exception)

    def _schedule(self) -> None:
        if self._first is not None:
            (resume, context), self._first = self._first, None
            super().add_done_callback(resume, context=context)


class LoopCalls:
    """Calls functions on an event loop, from other threads, as `call_soon_threadsafe` does with two more system calls
    and an exception each time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._calls: deque[Callable[[], object]] = deque()
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        loop.add_reader(self._read, self._run)
        weakref.finalize(loop, self._close).atexit = False  # threads may still write to it then

    def add(self, call: Callable[[], object]) -> None:
        """Call this soon. Thread-safe."""
        self._calls.append(call)
        with contextlib.suppress(BlockingIOError):  # then the loop has been told often enough
            os.write(self._write, b'\0')

    def _run(self) -> None:
        os.read(self._read, 4096)
        try:
            for _ in range(len(self._calls)):
                self._calls.popleft()()
        except BaseException:  # Ctrl-C
            self.add(lambda: None)  # the loop must come back for the others
            raise

    def _close(self) -> None:
        os.close(self._read)
        os.close(self._write)


_by_loop: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopCalls] = weakref.WeakKeyDictionary()


def call_on(loop: asyncio.AbstractEventLoop) -> Callable[[Callable[[], object]], object]:
    """A function that calls another one on the running event loop, from other threads."""
    if sys.platform == 'win32':  # its loop has no readers
        return loop.call_soon_threadsafe
    calls = _by_loop.get(loop)
    if calls is None:
        calls = _by_loop[loop] = LoopCalls(loop)
    return calls.add
