"""A pool of sandboxes with a maximum size, a fair queue and a timeout."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncGenerator, Coroutine
from types import TracebackType
from typing import Self, Unpack

from habilis.core.errors import PoolTimeout, SandboxClosed, SandboxError
from habilis.sandbox.arguments import check, check_number
from habilis.sandbox.contract import Cell
from habilis.sandbox.options import SandboxSettings
from habilis.sandbox.session import Sandbox


class SandboxPool:
    """Gives out new sandboxes, at most `size` at a time.

    A sandbox is never reused, so users see nothing of each other. `warm` of them are started ahead.
    """

    def __init__(
        self,
        size: int,
        *,
        warm: int = 0,
        idle_seconds: float | None = None,
        timeout: float = 60.0,
        backend: str = 'auto',
        **settings: Unpack[SandboxSettings],
    ) -> None:
        """Create a pool. Sandboxes are started by `async with`, or at the first use.

        Args:
            size: maximum number of sandboxes in use.
            warm: number of sandboxes to start ahead, beyond those in use.
            idle_seconds: close a sandbox in use that has been idle for so long.
            timeout: default timeout of `acquire`, in seconds.
            backend: name of the backend.
            settings: the settings of `Sandbox.create`.
        """
        for name, value in (('size', size), ('warm', warm)):
            check(name, value, int, 'a whole number')
        check_number('idle_seconds', idle_seconds)
        check_number('timeout', timeout)
        if size < 1 or warm < 0:
            msg = f'size must be at least 1 and warm at least 0, not {size} and {warm}'
            raise ValueError(msg)
        self.size = size
        self._warm = min(warm, size)
        self._idle_seconds = idle_seconds
        self._timeout = timeout
        self._backend = backend
        self._settings = settings
        self._slots = asyncio.Semaphore(size)
        self._ready: deque[Sandbox] = deque()
        self._used: set[Sandbox] = set()
        self._background: set[asyncio.Task[None]] = set()
        self._starting = 0
        self._closed = False

    async def acquire(self, *, timeout: float | None = None) -> Sandbox:
        """A new sandbox, first come, first served. Raises `PoolTimeout` if no slot becomes free in time."""
        self._require_open()
        check_number('timeout', timeout)
        wait = self._timeout if timeout is None else timeout
        try:
            async with asyncio.timeout(wait):
                await self._slots.acquire()
        except TimeoutError:
            msg = f'all {self.size} sandboxes of the pool were in use for {wait:g} s; release some or make it larger'
            raise PoolTimeout(msg) from None
        try:
            self._require_open()  # it may have been closed while we waited
            sandbox = self._ready.popleft() if self._ready else await self._create()
        except BaseException:
            self._slots.release()
            raise
        self._used.add(sandbox)
        if self._closed:
            await self.release(sandbox)
            self._require_open()
        self._maintain()
        return sandbox

    async def release(self, sandbox: Sandbox) -> None:
        """Close a sandbox and free its slot. May be called twice."""
        check('sandbox', sandbox, Sandbox, 'a sandbox of the pool')
        if sandbox in self._used:
            self._used.discard(sandbox)
            self._slots.release()
        await sandbox.close()

    @contextlib.asynccontextmanager
    async def sandbox(self, *, timeout: float | None = None) -> AsyncGenerator[Sandbox]:
        """A new sandbox for the duration of an `async with`."""
        sandbox = await self.acquire(timeout=timeout)
        try:
            yield sandbox
        finally:
            await self.release(sandbox)

    async def run(self, code: str, *, timeout: float | None = None) -> Cell:
        """Run code in a new sandbox."""
        async with self.sandbox(timeout=timeout) as sandbox:
            return await sandbox.run(code)

    @property
    def in_use(self) -> int:
        """Number of sandboxes in use."""
        return len(self._used)

    async def close(self) -> None:
        """Close all sandboxes, those in use too, even if the caller is cancelled."""
        self._closed = True
        for task in self._background:
            task.cancel()
        await asyncio.shield(asyncio.create_task(self._free()))

    async def _free(self) -> None:
        await asyncio.gather(*self._background, return_exceptions=True)
        for sandbox in [*self._used, *self._ready]:
            await self.release(sandbox)
        self._ready.clear()

    async def __aenter__(self) -> Self:
        try:
            for _ in range(self._warm):
                self._ready.append(await self._create())
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _require_open(self) -> None:
        if self._closed:
            msg = 'this pool is closed'
            raise SandboxClosed(msg)

    async def _create(self) -> Sandbox:
        return await Sandbox.create(self._backend, **self._settings)

    def _maintain(self) -> None:
        """Start a warm sandbox if one is missing, and the task that closes idle ones."""
        if len(self._ready) + self._starting < self._warm:
            self._starting += 1
            self._spawn(self._start_one())
        if self._idle_seconds is not None and not any(task.get_name() == 'expire' for task in self._background):
            self._spawn(self._expire(self._idle_seconds), 'expire')

    def _spawn(self, work: Coroutine[object, object, None], name: str | None = None) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work, name=name)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _start_one(self) -> None:
        try:
            with contextlib.suppress(SandboxError):  # the next `acquire` tries again and raises it
                self._ready.append(await self._create())
        finally:
            self._starting -= 1

    async def _expire(self, idle_seconds: float) -> None:
        while self._used:
            await asyncio.sleep(idle_seconds / 4)
            for sandbox in list(self._used):
                if not sandbox.busy and time.monotonic() - sandbox.last_used > idle_seconds:
                    await self.release(sandbox)
