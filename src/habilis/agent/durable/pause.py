"""Stops a cell when one of its tool calls must wait for a person, or cannot be recorded."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Never, TypeVar

from habilis.core.errors import JournalError, NotDurable, RunBusy, RunNotFound
from habilis.journal import Paused

SETTLE_SECONDS = 0.2
"""Time in which concurrent calls of the same cell may still start."""

T = TypeVar('T')


class Pause:
    """Tracks the running tool calls of a cell. The code does not notice the pause: its call never returns."""

    def __init__(self) -> None:
        self._cell: asyncio.Task[object] | None = None
        """The task of the running cell."""

        self._reason: Paused | JournalError | None = None
        self._is_closing = False
        self._is_stopped = False
        self._running_calls = 0
        self._timer: asyncio.TimerHandle | None = None

    async def watch(self, work: Awaitable[T]) -> T:
        """Run a cell. If one of its calls has to wait, let the others end, cancel the cell, and raise the error."""
        task = self._cell = asyncio.current_task()
        self._reason, self._is_closing, self._is_stopped = None, False, False
        assert task is not None
        try:
            outcome = await work
            if self._reason is None:
                return outcome
        except BaseException as error:
            is_cancelled = isinstance(error, asyncio.CancelledError)
            if self._is_stopped and not task.uncancel():
                is_cancelled = False  # by nobody else
            if self._reason is None or is_cancelled:
                raise
        finally:
            self._cell = None
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        raise self._reason

    async def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Make one tool call of the cell."""
        if self._is_closing and self._cell is not None:
            await _wait_forever()
        self._running_calls += 1
        try:
            return await work()
        except (Paused, JournalError) as reason:
            if self._cell is None or isinstance(reason, (RunNotFound, RunBusy, NotDurable)):
                raise  # no cell is running, or the tool itself raised it
            self._pause(reason)
        finally:
            self._running_calls -= 1
            self._stop_if_idle()
        return await _wait_forever()

    def _pause(self, reason: Paused | JournalError) -> None:
        if self._reason is None or isinstance(reason, JournalError):
            self._reason = reason
        if isinstance(reason, JournalError):
            self._close()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SETTLE_SECONDS, self._close)

    def _close(self) -> None:
        self._is_closing = True
        self._stop_if_idle()

    def _stop_if_idle(self) -> None:
        if self._is_closing and self._cell is not None and not self._running_calls and not self._is_stopped:
            self._is_stopped = True
            self._cell.cancel()


async def _wait_forever() -> Never:
    """Wait until the task is cancelled."""
    while True:
        await asyncio.get_running_loop().create_future()
