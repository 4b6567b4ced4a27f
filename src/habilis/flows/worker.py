"""A worker process, which executes queued and abandoned runs of a store. The command is `habilis worker`."""

import asyncio
import functools
import importlib
import logging
import os
import random
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypedDict, Unpack

from habilis.core.errors import JournalError, RunNotFound, StoreUnavailable
from habilis.flows.contract import Job
from habilis.flows.engine import DEATHS, READY, check_deaths, is_abandoned, run_job
from habilis.flows.stores import store_handle
from habilis.flows.targets import TargetNotFound, load_target
from habilis.flows.tasks import cancel_tasks
from habilis.journal import RunInfo, Store

logger = logging.getLogger('habilis.flows')


class WorkerOptions(TypedDict, total=False):
    """The options of a `Worker`, which explains them."""

    limit: int
    pause: float
    deaths: int
    until_empty: bool


@dataclass(kw_only=True)
class Worker:
    """Executes runs of a store until it is stopped."""

    store: Store
    apps: Sequence[str] = ()
    limit: int = 4
    """Maximum number of runs at a time."""

    pause: float = 0.2
    """Seconds between two polls of the store."""

    deaths: int = DEATHS
    until_empty: bool = False
    """Whether to end when no run of the store is queued or running."""

    _tasks: 'dict[str, asyncio.Task[bool]]' = field(default_factory=dict[str, 'asyncio.Task[bool]'])
    _unknown: set[str] = field(default_factory=set[str])
    """Targets that this process cannot import."""

    _has_room: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when so many runs have ended that it is worth looking for others at once."""

    async def work(self, stop: asyncio.Event) -> None:
        """Execute runs until `stop` is set; running ones then go back to `queued`, for other workers."""
        try:
            while not stop.is_set():
                try:
                    if await self._poll() == 0 and self.until_empty:
                        return
                except StoreUnavailable as error:
                    logger.warning('%s; retrying', error)
                await self._wait(stop)
        finally:
            await cancel_tasks(list(self._tasks.values()))

    async def _wait(self, stop: asyncio.Event) -> None:
        waits = [asyncio.create_task(event.wait()) for event in (stop, self._has_room)]
        try:
            pause = self.pause * random.uniform(0.5, 1.5)
            await asyncio.wait(waits, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancel_tasks(waits)

    async def _poll(self) -> int:
        """Start runs, and return how many there were to choose from."""
        self._has_room.clear()
        if len(self._tasks) >= self.limit:  # many full workers must not keep the store busy
            return len(self._tasks)
        waiting = [*await self.store.runs(status='queued'), *await self.store.runs(status='running')]
        for info in sorted(waiting, key=lambda info: info.created):
            if len(self._tasks) >= self.limit:
                break
            if info.run in self._tasks or info.name in self._unknown or not await self._is_abandoned(info):
                continue
            task = self._tasks[info.run] = asyncio.create_task(self._execute(info), name=info.run)
            task.add_done_callback(self._ended)
        return len(waiting)

    def _ended(self, task: 'asyncio.Task[bool]') -> None:
        self._tasks.pop(task.get_name(), None)
        if not task.cancelled() and task.result() and len(self._tasks) <= self.limit // 2:
            self._has_room.set()

    async def _is_abandoned(self, info: RunInfo) -> bool:
        try:
            return await is_abandoned(self.store, info)
        except RunNotFound:  # deleted since it was listed
            return False

    async def _execute(self, info: RunInfo) -> bool:
        """Execute a run; False if it has to be left to another worker, or to later."""
        try:
            load_target(info.name, apps=self.apps)
            check = functools.partial(check_deaths, deaths=self.deaths)
            await run_job(Job(run=info.run), self.store, apps=self.apps, interrupted='queued', check=check)
        except TargetNotFound as error:
            self._unknown.add(info.name)
            logger.warning('%s is left to other workers: %s', info.run, error)
        except JournalError as error:  # another worker has taken it, or the code has changed
            logger.info('%s: %s', info.run, error)
        except Exception:
            logger.exception('%s', info.run)
        else:
            return True
        return False


async def serve(
    store: str | None, apps: Sequence[str], *, until_eof: bool = False, **options: Unpack[WorkerOptions]
) -> None:
    """Execute runs until a signal arrives; or, if asked to, until standard input closes: the parent has ended."""
    for app in apps:
        importlib.import_module(app)
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if until_eof:
        loop.add_reader(sys.stdin.fileno(), _read_stdin, stop)
    handle = await store_handle(store)
    try:
        print(READY, flush=True)
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing reads what flows print to standard output
        await Worker(store=handle.store, apps=apps, **options).work(stop)
    finally:
        await handle.close()


def _read_stdin(stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 1):
        stop.set()
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
