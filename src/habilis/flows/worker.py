"""A worker process: it looks for runs that wait for somebody, and works on them. `python -m habilis.flows.worker`."""

import argparse
import asyncio
import contextlib
import functools
import importlib
import logging
import os
import random
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from habilis.core.errors import HabilisError, JournalError, StoreUnavailable
from habilis.flows.contract import Job
from habilis.flows.ending import end_tasks
from habilis.flows.engine import DEATHS, READY, check_deaths, is_left, run_job
from habilis.flows.stores import opened_store
from habilis.flows.targets import TargetNotFound, load_target
from habilis.journal import RunInfo, Store

logger = logging.getLogger('habilis.flows')


@dataclass(kw_only=True)
class Worker:
    """Works on runs of a store until it is told to stop."""

    store: Store
    apps: Sequence[str] = ()
    limit: int = 4
    """So many runs at a time."""

    pause: float = 0.2
    """Seconds between two looks into the store."""

    deaths: int = DEATHS
    _tasks: 'dict[str, asyncio.Task[None]]' = field(default_factory=dict[str, 'asyncio.Task[None]'])
    _refused: set[str] = field(default_factory=set[str])
    """Targets that this process cannot import."""

    async def work(self, stop: asyncio.Event) -> None:
        """Take runs until `stop` is set; those under way then are left `queued`, for others."""
        try:
            while not stop.is_set():
                try:
                    await self._look()
                except StoreUnavailable as error:
                    logger.warning('%s; looking again', error)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), self.pause * random.uniform(0.5, 1.5))
        finally:
            await end_tasks(list(self._tasks.values()))

    async def _look(self) -> None:
        waiting = [*await self.store.runs(status='queued'), *await self.store.runs(status='running')]
        for info in sorted(waiting, key=lambda info: info.created):
            if len(self._tasks) >= self.limit:
                return
            if info.run in self._tasks or info.name in self._refused or not await is_left(self.store, info):
                continue
            task = self._tasks[info.run] = asyncio.create_task(self._take(info), name=info.run)
            task.add_done_callback(lambda _, run=info.run: self._tasks.pop(run, None))

    async def _take(self, info: RunInfo) -> None:
        try:
            load_target(info.name, apps=self.apps)
            check = functools.partial(check_deaths, deaths=self.deaths)
            await run_job(Job(run=info.run), self.store, apps=self.apps, interrupted='queued', check=check)
        except TargetNotFound as error:
            self._refused.add(info.name)
            logger.warning('%s is left to others: %s', info.run, error)
        except JournalError as error:  # somebody else was faster, or the record does not fit: it is said there
            logger.info('%s: %s', info.run, error)
        except Exception:
            logger.exception('%s', info.run)


async def serve(store: str | None, apps: Sequence[str], *, limit: int, pause: float, deaths: int) -> None:
    """Work until a signal, or until whoever started this process is gone: then its input ends."""
    for app in apps:
        importlib.import_module(app)
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_reader(sys.stdin.fileno(), _when_read, stop)
    opened = await opened_store(store)
    try:
        print(READY, flush=True)
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nobody reads what flows print there
        await Worker(store=opened.store, apps=apps, limit=limit, pause=pause, deaths=deaths).work(stop)
    finally:
        await opened.close()


def _when_read(stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 1):
        stop.set()
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog='python -m habilis.flows.worker', description=__doc__)
    parser.add_argument('--store', help='address of the store that all workers share; otherwise HABILIS_JOURNAL')
    parser.add_argument('--app', action='append', default=[], help='module with flows; may be given several times')
    parser.add_argument('--limit', type=int, default=4, help='how many runs at a time')
    parser.add_argument('--pause', type=float, default=0.2, help='seconds between two looks into the store')
    parser.add_argument('--deaths', type=int, default=DEATHS, help='how many processes a run may lose')
    given = parser.parse_args()
    try:
        asyncio.run(serve(given.store, given.app, limit=given.limit, pause=given.pause, deaths=given.deaths))
    except (ImportError, HabilisError) as error:
        sys.exit(f'{type(error).__name__}: {error}')


if __name__ == '__main__':
    main()
