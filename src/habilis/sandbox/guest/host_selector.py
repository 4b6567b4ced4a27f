"""What an event loop of the guest waits on: the host, where time passes and tools answer."""

from __future__ import annotations

import asyncio
import contextlib

from habilis.core.codec import Json
from habilis.sandbox.guest.bridge import Bridge, result_of


class HostSelector:
    """The selector of the event loop: `select` waits on the host."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._waiting: dict[int, tuple[str, asyncio.Future[object]]] = {}

    @property
    def has_calls(self) -> bool:
        """Whether calls of tools are running."""
        return bool(self._waiting)

    def select(self, timeout: float | None) -> list[tuple[int, Json]]:
        """The answers of the host within the timeout."""
        if not self._waiting and timeout is None:
            msg = 'deadlock: this cell awaits something that nothing in the sandbox can finish'
            raise RuntimeError(msg)
        if not self._waiting and timeout == 0:
            return []
        return self._bridge.wait(timeout)

    async def call(self, name: str, arguments: Json) -> object:
        """Call an asynchronous host tool."""
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        number = self._bridge.submit(name, arguments)
        self._waiting[number] = name, future
        try:
            return await future
        finally:
            if self._waiting.pop(number, None) is not None:
                self._bridge.cancel(number)

    def resolve(self, number: int, reply: Json) -> None:
        """Set the result of the call with this number."""
        _, future = self._waiting.pop(number, ('', None))
        if future is None or future.done():
            return
        try:
            future.set_result(result_of(reply))
        except StopIteration as error:  # a future refuses this one
            future.set_exception(RuntimeError(f'StopIteration: {error}'))
        except Exception as error:
            future.set_exception(error)

    def end_calls(self) -> None:
        """Cancel the calls that a cell has left running: every call belongs to one cell, and ends with it.

        A task that waits for such a call gets `CancelledError` as soon as it continues, in a later cell.
        """
        while self._waiting:
            number, (name, future) = self._waiting.popitem()
            self._bridge.cancel(number)
            with contextlib.suppress(RuntimeError):  # its loop is closed
                future.cancel(f'the cell that called {name} has ended, and the call with it: await it in the same cell')

    def close(self) -> None:
        """Required by the event loop; there is nothing to release."""
