"""The turns of a sandbox: its requests run one at a time, in the order in which they were made."""

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
        """Wait for the turn, and have it as long as the block lasts. Raises `SandboxClosed`."""
        if id(self) in _callers.get():
            msg = 'a tool cannot run code in the sandbox that is calling it; it would wait for itself; use another one'
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
        """In this context, a request of the same sandbox is refused: its tools would wait for themselves."""
        token = _callers.set(_callers.get() | {id(self)})
        try:
            yield
        finally:
            _callers.reset(token)

    def _check_open(self) -> None:
        if self.closed:
            msg = 'this sandbox is closed'
            raise SandboxClosed(msg)
