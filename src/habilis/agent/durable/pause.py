"""Stopping a cell in the middle: one of its calls must wait for a person, or cannot be recorded."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Never, TypeVar

from habilis.core.errors import JournalError, NotDurable, RunBusy, RunNotFound
from habilis.journal import Paused

SETTLE = 0.05
"""Seconds in which the rest of the code may still begin calls: those that it makes at the same time."""

T = TypeVar('T')


class Pausing:
    """Knows the calls that are under way in a cell. The code never sees that it pauses: its call does not return."""

    def __init__(self) -> None:
        self._watching = False
        self._why: Paused | JournalError | None = None
        self._closed = False
        self._calling = 0
        self._calm = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    async def watch(self, work: Awaitable[T], stop: Callable[[], None]) -> T:
        """Do the work. If a call in it has to wait, let the others end, stop it, and raise what the call raised."""
        self._watching, self._why, self._closed = True, None, False
        self._calm.clear()
        running, calm = asyncio.ensure_future(work), asyncio.ensure_future(self._calm.wait())
        try:
            await asyncio.wait((running, calm), return_when=asyncio.FIRST_COMPLETED)
            if self._why is None:
                return running.result()
            stop()
            raise self._why
        finally:
            self._watching = False
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            for task in (running, calm):
                task.cancel()
            await asyncio.gather(running, calm, return_exceptions=True)

    async def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """One call of the code."""
        if self._closed and self._watching:
            await _for_ever()
        self._calling += 1
        try:
            return await work()
        except (Paused, JournalError) as why:
            if not self._watching or isinstance(why, (RunNotFound, RunBusy, NotDurable)):
                raise  # there is no code to stop; or what the tool itself has met
            self._begin(why)
        finally:
            self._calling -= 1
            self._stop_if_calm()
        return await _for_ever()

    def _begin(self, why: Paused | JournalError) -> None:
        if self._why is None or isinstance(why, JournalError):
            self._why = why
        if isinstance(why, JournalError):
            self._close()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SETTLE, self._close)

    def _close(self) -> None:
        self._closed = True
        self._stop_if_calm()

    def _stop_if_calm(self) -> None:
        if self._closed and self._watching and not self._calling:
            self._calm.set()


async def _for_ever() -> Never:
    """Until it is cancelled."""
    while True:
        await asyncio.get_running_loop().create_future()
