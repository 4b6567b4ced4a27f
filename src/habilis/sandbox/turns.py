"""Runs the requests of a sandbox one at a time, in order."""

import asyncio
import contextlib
import contextvars
import time
from collections.abc import AsyncGenerator, Generator

from habilis.core.errors import SandboxClosed, SandboxError

_callers: contextvars.ContextVar[frozenset[int]] = contextvars.ContextVar('_callers', default=frozenset())
"""The sandboxes that the running tool was called from."""


class Turns:
    """Lets one request at a time use a sandbox."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.closed = False
        self.last_used = time.monotonic()
        """When a request last started or ended."""

    @contextlib.asynccontextmanager
    async def next(self) -> AsyncGenerator[None]:
        """Wait until earlier requests have ended, and block later ones. Raises `SandboxClosed`."""
        if id(self) in _callers.get():
            msg = 'a tool cannot run code in the sandbox that is calling it (deadlock); use another sandbox'
            raise SandboxError(msg)
        self._check_open()
        async with self.lock:
            self._check_open()
            self.last_used = time.monotonic()
            try:
                yield
            finally:
                self.last_used = time.monotonic()

    @contextlib.contextmanager
    def called_from_inside(self) -> Generator[None]:
        """A context in which requests of the same sandbox are refused, for its tools: they would deadlock."""
        token = _callers.set(_callers.get() | {id(self)})
        try:
            yield
        finally:
            _callers.reset(token)

    def _check_open(self) -> None:
        if self.closed:
            msg = 'this sandbox is closed'
            raise SandboxClosed(msg)
