"""A worker process, which executes queued and abandoned runs of a store. `python -m habilis.flows.worker`."""

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

from habilis.core.errors import HabilisError, JournalError, RunNotFound, StoreUnavailable
from habilis.flows.contract import Job
from habilis.flows.engine import DEATHS, READY, check_deaths, is_abandoned, run_job
from habilis.flows.stores import store_handle
from habilis.flows.targets import TargetNotFound, load_target
from habilis.flows.tasks import cancel_tasks
from habilis.journal import RunInfo, Store

logger = logging.getLogger('habilis.flows')


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
    _tasks: 'dict[str, asyncio.Task[None]]' = field(default_factory=dict[str, 'asyncio.Task[None]'])
    _unknown: set[str] = field(default_factory=set[str])
    """Targets that this process cannot import."""

    async def work(self, stop: asyncio.Event) -> None:
        """Execute runs until `stop` is set; running ones then go back to `queued`, for other workers."""
        try:
            while not stop.is_set():
                try:
                    await self._poll()
                except StoreUnavailable as error:
                    logger.warning('%s; retrying', error)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), self.pause * random.uniform(0.5, 1.5))
        finally:
            await cancel_tasks(list(self._tasks.values()))

    async def _poll(self) -> None:
        waiting = [*await self.store.runs(status='queued'), *await self.store.runs(status='running')]
        for info in sorted(waiting, key=lambda info: info.created):
            if len(self._tasks) >= self.limit:
                return
            if info.run in self._tasks or info.name in self._unknown or not await self._is_abandoned(info):
                continue
            task = self._tasks[info.run] = asyncio.create_task(self._execute(info), name=info.run)
            task.add_done_callback(lambda _, run=info.run: self._tasks.pop(run, None))

    async def _is_abandoned(self, info: RunInfo) -> bool:
        try:
            return await is_abandoned(self.store, info)
        except RunNotFound:  # deleted since it was listed
            return False

    async def _execute(self, info: RunInfo) -> None:
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


async def serve(store: str | None, apps: Sequence[str], *, limit: int, pause: float, deaths: int) -> None:
    """Execute runs until a signal arrives, or until standard input closes because the parent process has ended."""
    for app in apps:
        importlib.import_module(app)
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_reader(sys.stdin.fileno(), _read_stdin, stop)
    handle = await store_handle(store)
    try:
        print(READY, flush=True)
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing reads what flows print to standard output
        await Worker(store=handle.store, apps=apps, limit=limit, pause=pause, deaths=deaths).work(stop)
    finally:
        await handle.close()


def _read_stdin(stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 1):
        stop.set()
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog='python -m habilis.flows.worker', description=__doc__)
    parser.add_argument('--store', help='URL of the store that all workers share (default: HABILIS_JOURNAL)')
    parser.add_argument('--app', action='append', default=[], help='module with flows; can be repeated')
    parser.add_argument('--limit', type=int, default=4, help='maximum number of runs at a time')
    parser.add_argument('--pause', type=float, default=0.2, help='seconds between two polls of the store')
    parser.add_argument(
        '--deaths', type=int, default=DEATHS, help='how many processes may die while they execute a run'
    )
    given = parser.parse_args()
    try:
        asyncio.run(serve(given.store, given.app, limit=given.limit, pause=given.pause, deaths=given.deaths))
    except (ImportError, HabilisError) as error:
        sys.exit(f'{type(error).__name__}: {error}')


if __name__ == '__main__':
    main()
