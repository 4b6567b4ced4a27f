"""An asyncio event loop whose only event source is the host, and the choice of the loop for the platform."""

from __future__ import annotations

import asyncio
import sys
import warnings
from asyncio import base_events
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from habilis.core.codec import Json
from habilis.sandbox.guest.host_selector import HostSelector

if TYPE_CHECKING:
    from habilis.sandbox.guest.native_loop import NativeLoop

T = TypeVar('T')
ORIGIN_DEPTH = 10
"""Frames that are kept of the place where a coroutine is made."""


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


def warn_of_coroutines_of(cell: Callable[[], str]) -> None:
    """Warn of a coroutine that was never awaited only in the cell that made it, which is the one that can be corrected.

    Python notices it when the coroutine is freed: a later cell that assigns to the same variable would be blamed.
    """

    def warn(coroutine: Any) -> None:
        origin = coroutine.cr_origin  # None in other threads
        if origin is None or any(filename == cell() for filename, _, _ in origin):
            warnings.warn(f'coroutine {coroutine.__qualname__!r} was never awaited', RuntimeWarning, stacklevel=2)

    sys.set_coroutine_origin_tracking_depth(ORIGIN_DEPTH)
    setattr(warnings, '_warn_unawaited_coroutine', warn)  # noqa: B010 - a private attribute, which Python calls
