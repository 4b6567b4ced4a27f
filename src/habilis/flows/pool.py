"""`WorkerPool`: worker processes of this machine that share a store. A worker that dies is replaced."""

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from habilis.flows.contract import FlowError, Job, Outcome
from habilis.flows.engine import DEATHS, READY, queue_job, wait_in_store
from habilis.flows.stores import StoreHandle, store_handle
from habilis.flows.tasks import cancel_tasks
from habilis.flows.watch import StoreWatch

logger = logging.getLogger('habilis.flows')
_START_SECONDS = 60.0
"""Timeout for a worker to become ready."""

_STOP_SECONDS = 10.0
"""Timeout for a worker to stop its runs; then it is killed."""


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
        """Make a pool; `start` starts its processes.

        Args:
            store: the URL of a store that other processes can open too.
            apps: modules with flows, which the workers import.
            workers: number of processes; 0 to leave the runs to `habilis worker`, started elsewhere.
            limit: maximum number of runs at a time for each worker.
            pause: seconds between two polls of the store.
            deaths: how many processes may die while they execute a run; then the run fails.
        """
        if workers < 0:
            msg = f'workers={workers!r}: give 1 or more, or 0 if others work on this store'
            raise FlowError(msg)
        if store in {'off', 'memory:'}:
            msg = f'{store!r} exists in one process only: give a store that several processes can share'
            raise FlowError(msg)
        self._url = store
        self._apps = tuple(apps)
        self._workers = workers
        self._options = ['--until-eof', '--limit', str(limit), '--pause', str(pause), '--deaths', str(deaths)]
        self._handle: StoreHandle | None = None
        self._watch: StoreWatch | None = None
        self._monitors: list[asyncio.Task[None]] = []
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._closing = False

    @property
    def pids(self) -> list[int]:
        """The process ids of the live workers."""
        return [process.pid for process in self._processes.values() if process.returncode is None]

    async def start(self) -> None:
        """Start the workers. Raises `FlowError` if they cannot start."""
        self._handle = await store_handle(self._url)
        try:
            first = [await self._spawn() for _ in range(self._workers)]
            await asyncio.gather(*(self._wait_until_ready(process) for process in first))
        except BaseException:
            await self.close()
            raise
        self._monitors = [asyncio.create_task(self._monitor(process)) for process in first]

    async def submit(self, job: Job) -> str:
        """See `Engine`."""
        return await queue_job(job, self._store.store, apps=self._apps)

    async def wait(self, run: str) -> Outcome:
        """See `Engine`."""
        store = self._store.store
        self._watch = self._watch or StoreWatch(store)
        await self._watch.ended(run)
        return await wait_in_store(store, run, apps=self._apps)

    async def close(self) -> None:
        """See `Engine`. Running runs go back to `queued`."""
        self._closing = True
        if self._watch is not None:
            await self._watch.close()
        await cancel_tasks([monitor for monitor in self._monitors if not monitor.done()])
        await asyncio.gather(*(self._stop(process) for process in list(self._processes.values())))
        if self._handle is not None:
            await self._handle.close()
            self._handle = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # Processes --------------------------------------------------------------------------------------------------------

    @property
    def _store(self) -> StoreHandle:
        if self._handle is None:
            msg = 'the pool is not started: use `async with WorkerPool(…) as pool`'
            raise FlowError(msg)
        return self._handle

    async def _spawn(self) -> asyncio.subprocess.Process:
        named = [part for app in self._apps for part in ('--app', app)]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, '-m', 'habilis', 'worker', *named, *self._options),
            stdin=asyncio.subprocess.PIPE,  # closes with this process, and then the worker stops
            stdout=asyncio.subprocess.PIPE,
            env={
                **os.environ,
                'PYTHONPATH': os.pathsep.join(path for path in sys.path if path),
                # Not as an argument, which all users of the machine can see: it may contain a password.
                'HABILIS_JOURNAL': self._url,
            },
        )
        self._processes[process.pid] = process
        return process

    async def _wait_until_ready(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        try:
            async with asyncio.timeout(_START_SECONDS):  # `wait_for` loses a cancellation that comes with the line
                line = await process.stdout.readline()
        except TimeoutError:
            line = b''
        if line.decode(errors='replace').strip() != READY:
            msg = f'a worker did not start (exit code {process.returncode}): see its error output'
            raise FlowError(msg)

    async def _monitor(self, process: asyncio.subprocess.Process) -> None:
        """Replace a worker that has died, until the pool is closed."""
        delay = 0.1
        while True:
            code = await process.wait()
            self._processes.pop(process.pid, None)
            if self._closing:
                return
            logger.warning('worker %d has died (exit code %s); starting another one', process.pid, code)
            await asyncio.sleep(delay)
            process = await self._spawn()
            try:
                await self._wait_until_ready(process)
                delay = 0.1
            except FlowError as error:
                logger.warning('%s', error)
                delay = min(delay * 2, 10.0)

    async def _stop(self, process: asyncio.subprocess.Process) -> None:
        self._processes.pop(process.pid, None)
        if process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
