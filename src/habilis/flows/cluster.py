"""What engines on clusters share: `ClusterEngine`, which starts one task of the cluster for each run."""

import asyncio
import functools
import os
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Sequence
from types import TracebackType
from typing import Self

from habilis.core.background_loop import run_blocking
from habilis.core.errors import HabilisError, RunBusy
from habilis.flows.contract import FlowError, Job, Outcome
from habilis.flows.engine import finish_job, queue_job, wait_in_store
from habilis.flows.stores import StoreHandle, store_handle
from habilis.flows.tasks import cancel_tasks
from habilis.journal import Store

LIMIT = 256
"""Default of how many tasks the cluster is given at a time."""


class ClusterEngine(ABC):
    """An `Engine` whose runs are tasks of a cluster. The cluster starts a task again if its process or machine dies.

    The task only says which run to finish: arguments, steps and results go through the store, which all machines reach.
    """

    def __init__(self, store: str, *, apps: Sequence[str] = (), limit: int = LIMIT) -> None:
        if store in {'off', 'memory:'}:
            msg = f'{store!r} exists in one process only: give a store that all machines can reach'
            raise FlowError(msg)
        self._url = _absolute(store)
        self._apps = tuple(apps)
        self._room = asyncio.Semaphore(limit)
        self._handle: StoreHandle | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @abstractmethod
    async def _connect(self) -> None:
        """Connect to the cluster, or start one."""

    @abstractmethod
    async def _start(self, run: str) -> Awaitable[object]:
        """Start `finish_run` on the cluster. Cancelling what it returns cancels that."""

    @abstractmethod
    async def _disconnect(self) -> None:
        """End what `_connect` has started."""

    async def start(self) -> None:
        """Connect to the cluster."""
        self._handle = await store_handle(self._url)
        try:
            await self._connect()
        except BaseException:
            await self._handle.close()
            raise

    async def submit(self, job: Job) -> str:
        """See `Engine`. Waits while the cluster has as many tasks as it may have."""
        await self._room.acquire()
        try:
            run = await self._queue(job)
            if run in self._tasks:
                self._room.release()
                return run
            self._tasks[run] = task = asyncio.create_task(self._finish(run), name=run)
        except BaseException:
            self._room.release()
            raise
        task.add_done_callback(self._ended)
        return run

    async def _queue(self, job: Job) -> str:
        try:
            return await queue_job(job, self._store, apps=self._apps)
        except RunBusy:  # by a process that may have died: the task waits for its end, or for its lease to expire
            return job.run

    async def _finish(self, run: str) -> None:
        try:
            await (await self._start(run))
        except HabilisError:
            raise
        except Exception as error:
            why = str(error).partition('\n')[0]
            msg = f'the cluster has given {run} up ({type(error).__name__}: {why}); submit it again to resume it'
            raise FlowError(msg) from error

    def _ended(self, task: 'asyncio.Task[None]') -> None:
        self._room.release()
        self._tasks.pop(task.get_name(), None)

    async def wait(self, run: str) -> Outcome:
        """See `Engine`. Raises `FlowError` if the cluster has given the task up."""
        if (task := self._tasks.get(run)) is not None:
            await asyncio.shield(task)
        return await wait_in_store(self._store, run, apps=self._apps)

    async def cancel(self, run: str) -> None:
        """Stop a run. It stays `queued`, and can be submitted again."""
        if (task := self._tasks.get(run)) is not None:
            await cancel_tasks([task])

    async def close(self) -> None:
        """See `Engine`. Runs that are not done stay `queued`."""
        if self._handle is None:
            return
        await cancel_tasks(list(self._tasks.values()))
        await self._disconnect()
        await self._handle.close()
        self._handle = None

    @property
    def _store(self) -> Store:
        if self._handle is None:
            msg = f'the engine is not started: use `async with {type(self).__name__}(…) as engine`'
            raise FlowError(msg)
        return self._handle.store

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _absolute(store: str) -> str:
    """The URL of a store; of a file on a disk that is shared, with its whole path: processes have other folders."""
    kind, colon, path = store.rpartition(':') if '//' not in store else (store, '', '')
    return f'{kind}{colon}{os.path.abspath(os.path.expanduser(path))}' if path else store


# In a process of the cluster ------------------------------------------------------------------------------------------


def finish_run(store: str, run: str, apps: Sequence[str]) -> None:
    """Execute a run to its end, in a process of the cluster. Nothing is returned: the outcome is in the store."""
    run_blocking(_finish_run(store, run, apps))


async def _finish_run(url: str, run: str, apps: Sequence[str]) -> None:
    await finish_job(run, _open_store(url), apps=apps)


@functools.cache
def _open_store(url: str) -> Store:
    """The store, opened once in each process."""
    from habilis.journal.stores.urls import open_store

    return open_store(url)
