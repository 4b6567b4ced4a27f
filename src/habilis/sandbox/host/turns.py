"""Runs the requests of a sandbox one at a time, in order."""

import asyncio
import contextvars
import time

from habilis.core.errors import SandboxClosed, SandboxError

_callers: contextvars.ContextVar[frozenset[int]] = contextvars.ContextVar('_callers', default=frozenset())
"""The sandboxes that the running tool was called from."""


class ExclusiveUse:
    """Lets one request at a time use a sandbox. One that nobody uses may go on in another event loop."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.closing: asyncio.Task[None] | None = None
        self.last_used = time.monotonic()
        """When a request last started or ended."""

    @property
    def lock(self) -> asyncio.Lock:
        """The lock of the running event loop. Raises `SandboxError` if a request of another loop has not ended."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self.busy:
                msg = 'a request of another event loop uses this sandbox; await it first, or use one loop only'
                raise SandboxError(msg)
            self._loop, self._lock = loop, asyncio.Lock()
        return self._lock

    @property
    def busy(self) -> bool:
        """Whether a request is running."""
        return self._lock.locked()

    @property
    def closed(self) -> bool:
        """Whether the sandbox was closed, or is being closed."""
        return self.closing is not None

    def next(self) -> 'ExclusiveUse':
        """A context that waits until earlier requests have ended, and blocks later ones. Raises `SandboxClosed`."""
        return self

    async def __aenter__(self) -> None:
        if id(self) in _callers.get():
            msg = 'a tool cannot run code in the sandbox that is calling it (deadlock); use another sandbox'
            raise SandboxError(msg)
        self.check_open()
        await self.lock.acquire()
        try:
            self.check_open()
        except BaseException:
            self._lock.release()
            raise
        self.last_used = time.monotonic()

    async def __aexit__(self, *_error: object) -> None:
        self.last_used = time.monotonic()
        self._lock.release()

    def called_from_inside(self) -> '_CalledFromInside':
        """A context in which requests of the same sandbox are refused, for its tools: they would deadlock."""
        return _CalledFromInside(id(self))

    def check_open(self) -> None:
        """Raise `SandboxClosed` if the sandbox was closed."""
        if self.closed:
            msg = 'this sandbox is closed'
            raise SandboxClosed(msg)


class _CalledFromInside:
    """A class, and not a generator, because each cell enters it: that takes a third of the time."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __enter__(self) -> None:
        self._token = _callers.set(_callers.get() | {self._number})

    def __exit__(self, *_error: object) -> None:
        _callers.reset(self._token)
