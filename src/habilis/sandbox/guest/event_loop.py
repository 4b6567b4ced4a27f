"""An asyncio event loop whose only event source is the host: time passing, and tools that have answered."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from asyncio import base_events
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from habilis.core.codec import Json
from habilis.sandbox.guest.bridge import Bridge, result_of

if TYPE_CHECKING:
    from habilis.sandbox.guest.native_loop import NativeLoop

T = TypeVar('T')


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


class GuestLoop(base_events.BaseEventLoop):
    """Runs coroutines without sockets, threads or signals, which WebAssembly has not."""

    def __init__(self, selector: HostSelector) -> None:
        super().__init__()
        self._selector = selector

    def _process_events(self, event_list: list[tuple[int, Json]]) -> None:
        for number, reply in event_list:
            self._selector.resolve(number, reply)

    def _write_to_self(self) -> None:
        """Required by the event loop; there is no other thread to wake."""

    def run_in_executor(self, executor: object, func: Callable[..., T], *args: object) -> asyncio.Future[T]:  # type: ignore[override]
        """Run the function at once, so that `asyncio.to_thread` works: there are no threads inside."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def rest(self) -> None:
        """Called at the end of a cell; there is nothing to free."""


def new_loop(selector: HostSelector) -> GuestLoop | NativeLoop:
    """The event loop for this platform."""
    if sys.platform == 'wasi':
        return GuestLoop(selector)
    from habilis.sandbox.guest.native_loop import NativeLoop

    return NativeLoop(selector)


_events: Any = asyncio.events
_Policy: Any = getattr(_events, '_AbstractEventLoopPolicy', None) or _events.AbstractEventLoopPolicy


class GuestPolicy(_Policy):
    """Event loop policy that creates our loops."""

    def __init__(self, selector: HostSelector) -> None:
        self._selector = selector
        self._loop: asyncio.AbstractEventLoop | None = None

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        """A new loop."""
        return new_loop(self._selector)

    def get_event_loop(self) -> asyncio.AbstractEventLoop:
        """The current loop."""
        if self._loop is None or self._loop.is_closed():
            self._loop = self.new_event_loop()
        return self._loop

    def set_event_loop(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Set the current loop."""
        self._loop = loop

    def get_child_watcher(self) -> object:
        """What waits for processes, before Python 3.14."""
        return asyncio.ThreadedChildWatcher()
