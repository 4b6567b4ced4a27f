"""`WorkerPool`: worker processes of this machine that share a store. One that dies is replaced."""

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from habilis.flows.contract import FlowError, Job, Outcome
from habilis.flows.ending import end_tasks
from habilis.flows.engine import DEATHS, READY, queue_job, wait_in_store
from habilis.flows.stores import Opened, opened_store

logger = logging.getLogger('habilis.flows')
_PATIENCE = 60.0
"""Seconds for a worker to be ready."""

_GRACE = 10.0
"""Seconds for a worker to put down what it works on."""


class WorkerPool:
    """An `Engine` of worker processes. Use it as `async with WorkerPool(…) as pool`."""

    def __init__(
        self,
        store: str,
        *,
        apps: Sequence[str],
        workers: int = 2,
        limit: int = 4,
        pause: float = 0.2,
        deaths: int = DEATHS,
    ) -> None:
        """Nothing is started yet.

        Args:
            store: the address of a store that other processes can open too.
            apps: modules with flows, which the workers import.
            workers: how many processes.
            limit: how many runs each of them works on at a time.
            pause: seconds between two looks into the store.
            deaths: so many processes a run may lose; then it has failed.
        """
        if workers < 1:
            msg = f'workers={workers!r}: give 1 or more'
            raise FlowError(msg)
        if store in {'off', 'memory:'}:
            msg = f'{store!r} is known to one process only: give the workers a store that they can share'
            raise FlowError(msg)
        self._address = store
        self._apps = tuple(apps)
        self._workers = workers
        self._options = ['--limit', str(limit), '--pause', str(pause), '--deaths', str(deaths)]
        self._opened: Opened | None = None
        self._keepers: list[asyncio.Task[None]] = []
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._closing = False

    @property
    def pids(self) -> list[int]:
        """The numbers of the worker processes that live."""
        return [process.pid for process in self._processes.values() if process.returncode is None]

    async def start(self) -> None:
        """Start the workers. Raises `FlowError` with what they say if they cannot work."""
        self._opened = await opened_store(self._address)
        try:
            first = [await self._spawn() for _ in range(self._workers)]
            await asyncio.gather(*(self._ready(process) for process in first))
        except BaseException:
            await self.close()
            raise
        self._keepers = [asyncio.create_task(self._keep(process)) for process in first]

    async def submit(self, job: Job) -> str:
        """See `Engine`."""
        return await queue_job(job, self._store.store, apps=self._apps)

    async def wait(self, run: str) -> Outcome:
        """See `Engine`."""
        return await wait_in_store(self._store.store, run, apps=self._apps)

    async def close(self) -> None:
        """See `Engine`. Runs under way are left `queued`."""
        self._closing = True
        await end_tasks([keeper for keeper in self._keepers if not keeper.done()])
        await asyncio.gather(*(self._stop(process) for process in list(self._processes.values())))
        if self._opened is not None:
            await self._opened.close()
            self._opened = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # Processes --------------------------------------------------------------------------------------------------------

    @property
    def _store(self) -> Opened:
        if self._opened is None:
            msg = 'the pool is not open: use it as `async with WorkerPool(…) as pool`'
            raise FlowError(msg)
        return self._opened

    async def _spawn(self) -> asyncio.subprocess.Process:
        named = [part for app in self._apps for part in ('--app', app)]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, '-m', 'habilis.flows.worker', *named, *self._options),
            stdin=asyncio.subprocess.PIPE,  # it ends with this process, and the worker after it
            stdout=asyncio.subprocess.PIPE,
            env={
                **os.environ,
                'PYTHONPATH': os.pathsep.join(path for path in sys.path if path),
                # Not as an argument, which everybody on the machine can see: it may have a password.
                'HABILIS_JOURNAL': self._address,
            },
        )
        self._processes[process.pid] = process
        return process

    async def _ready(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        try:
            line = await asyncio.wait_for(process.stdout.readline(), _PATIENCE)
        except TimeoutError:
            line = b''
        if line.decode(errors='replace').strip() != READY:
            msg = f'a worker cannot work (exit code {process.returncode}): it says why in its error output'
            raise FlowError(msg)

    async def _keep(self, process: asyncio.subprocess.Process) -> None:
        """Replace a worker that has died, for as long as the pool is open."""
        pause = 0.1
        while True:
            code = await process.wait()
            self._processes.pop(process.pid, None)
            if self._closing:
                return
            logger.warning('worker %d has ended (exit code %s); another one takes its place', process.pid, code)
            await asyncio.sleep(pause)
            process = await self._spawn()
            try:
                await self._ready(process)
                pause = 0.1
            except FlowError as error:
                logger.warning('%s', error)
                pause = min(pause * 2, 10.0)

    async def _stop(self, process: asyncio.subprocess.Process) -> None:
        self._processes.pop(process.pid, None)
        if process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _GRACE)
        except TimeoutError:
            process.kill()
            await process.wait()
