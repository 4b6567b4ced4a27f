"""The asyncio event loop of a guest with sockets, threads and processes of its own: those, and the host's answers."""

from __future__ import annotations

import _socket
import asyncio
import selectors
import threading
import time
from collections.abc import Callable
from typing import Any

from habilis.sandbox.guest.host_selector import HostSelector
from habilis.sandbox.guest.tunnels import TunnelledSocket, real_socket

POLL_SECONDS = 0.02
"""How often the host is asked while the loop waits for something else, too."""


class _NativeSelector(selectors.PollSelector):  # which holds no descriptor of its own
    """Waits on the host, as in other guests, unless there is anything else to wait for."""

    def __init__(self, host: HostSelector) -> None:
        super().__init__()
        self._host = host
        self.loop: NativeLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """The descriptors that are ready. Answers of the host are given to those who wait for them."""
        has_others = len(self.get_map()) > (self.loop.has_self_pipe) or threading.active_count() > 1
        if has_others and not self._host.has_calls:
            self.loop.open_self_pipe()
        if self.loop.has_work:  # from a thread, since the timeout was computed
            timeout = 0
        if not has_others:
            self._resolve(timeout)
            return []
        if not self._host.has_calls:
            return super().select(timeout)
        end = None if timeout is None else time.monotonic() + timeout
        while not (events := super().select(0)):
            left = POLL_SECONDS if end is None else min(POLL_SECONDS, max(0.0, end - time.monotonic()))
            if self._resolve(left) or left == 0 or self.loop.has_work:
                break
        return events

    def _resolve(self, timeout: float | None) -> bool:
        answers = self._host.select(timeout)
        for number, reply in answers:
            self._host.resolve(number, reply)
        return bool(answers)


class NativeLoop(asyncio.SelectorEventLoop):
    """A selector loop that opens the descriptors for its own wake-up only where it needs them.

    Between cells it has none: a guest that has no open sockets and no threads can be forked.
    """

    _ready: Any
    _default_executor: Any
    _add_reader: Any
    _read_from_self: Any

    def __init__(self, host: HostSelector) -> None:
        selector = _NativeSelector(host)
        selector.loop = self
        self._ssock: Any = None
        self._csock: Any = None
        super().__init__(selector)

    @property
    def has_self_pipe(self) -> bool:
        """Whether other threads can wake it."""
        return self._csock is not None

    @property
    def has_work(self) -> bool:
        """Whether callbacks are waiting."""
        return bool(self._ready)

    def open_self_pipe(self) -> None:
        """Let other threads wake the loop."""
        if self._csock is None:
            self._ssock, self._csock = (real_socket(fileno=end.detach()) for end in _socket.socketpair())
            self._ssock.setblocking(False)
            self._csock.setblocking(False)
            self._internal_fds += 1
            self._add_reader(self._ssock.fileno(), self._read_from_self)

    def _make_self_pipe(self) -> None:
        """Called at creation: nothing has to wake the loop yet."""
        self._internal_fds = 0

    def _close_self_pipe(self) -> None:
        if self._csock is not None:
            super()._close_self_pipe()  # type: ignore[misc]

    def add_signal_handler(self, sig: int, callback: Callable[..., object], *args: object) -> None:
        """Signals wake the loop through the same pipe."""
        self.open_self_pipe()
        super().add_signal_handler(sig, callback, *args)

    async def sock_connect(self, sock: Any, address: Any) -> None:
        """Connect. Through the proxy that takes some messages, so a thread does it."""
        if not isinstance(sock, real_socket):
            msg = 'asyncio cannot connect from this sandbox; use a client without asyncio, such as urllib.request'
            raise OSError(msg)
        if isinstance(sock, TunnelledSocket) and sock.is_tunnelled(address):
            await self.run_in_executor(None, sock.connect, address)
        else:
            await super().sock_connect(sock, address)

    def rest(self) -> None:
        """Free threads and descriptors at the end of a cell; they are made again for the next one."""
        executor, self._default_executor = self._default_executor, None
        if executor is not None:
            executor.shutdown(wait=False)
        if not self.is_closed() and not getattr(self, '_signal_handlers', None):
            self._close_self_pipe()
