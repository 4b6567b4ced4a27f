"""Stops a cell in the middle when one of its calls must wait for a person, or cannot be recorded."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Never, TypeVar

from habilis.core.errors import JournalError, NotDurable, RunBusy, RunNotFound
from habilis.journal import Paused

SETTLE = 0.05
"""Seconds in which concurrent calls of the same cell may still begin."""

T = TypeVar('T')


class Pause:
    """Tracks the running calls of a cell. Code never notices the pause: its call does not return."""

    def __init__(self) -> None:
        self._watching = False
        self._why: Paused | JournalError | None = None
        self._closed = False
        self._calling = 0
        self._idle = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    async def watch(self, work: Awaitable[T], stop: Callable[[], None]) -> T:
        """Do the work. If a call in it has to wait, let the others end, stop the work, and raise its error."""
        self._watching, self._why, self._closed = True, None, False
        self._idle.clear()
        running, idle = asyncio.ensure_future(work), asyncio.ensure_future(self._idle.wait())
        try:
            await asyncio.wait((running, idle), return_when=asyncio.FIRST_COMPLETED)
            if self._why is None:
                return running.result()
            stop()
            raise self._why
        finally:
            self._watching = False
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            for task in (running, idle):
                task.cancel()
            await asyncio.gather(running, idle, return_exceptions=True)

    async def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Make one call of the code."""
        if self._closed and self._watching:
            await _wait_for_ever()
        self._calling += 1
        try:
            return await work()
        except (Paused, JournalError) as why:
            if not self._watching or isinstance(why, (RunNotFound, RunBusy, NotDurable)):
                raise  # there is no code to stop, or the tool itself raised it
            self._begin(why)
        finally:
            self._calling -= 1
            self._stop_if_idle()
        return await _wait_for_ever()

    def _begin(self, why: Paused | JournalError) -> None:
        if self._why is None or isinstance(why, JournalError):
            self._why = why
        if isinstance(why, JournalError):
            self._close()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SETTLE, self._close)

    def _close(self) -> None:
        self._closed = True
        self._stop_if_idle()

    def _stop_if_idle(self) -> None:
        if self._closed and self._watching and not self._calling:
            self._idle.set()


async def _wait_for_ever() -> Never:
    """Until it is cancelled."""
    while True:
        await asyncio.get_running_loop().create_future()
