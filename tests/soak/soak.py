"""`python -m tests.soak.soak`: many runs at once on all stores, while workers are killed and connections cut."""

import argparse
import asyncio
import contextlib
import logging
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from habilis.core.errors import RunBusy, RunNotFound, StoreUnavailable
from habilis.flows import Job, WorkerPool
from habilis.flows.engine import outcome_of, queue_job
from habilis.journal.contract import Store
from habilis.journal.stores.urls import open_store
from tests.crash import scenario
from tests.crash.attempt import answer_all
from tests.crash.effects import FOLDER, effects_file, effects_of, repeated
from tests.journal.servers import PostgresServer, RedisServer, Server
from tests.soak.relay import Relay
from tests.soak.usage import Usage, growth, usage_of

T = TypeVar('T')
KINDS = ('sqlite', 'files', 'postgres', 'redis')
WORKERS = 2
POLL_SECONDS = 0.5
APPS = [scenario.__name__]


@dataclass
class Place:
    """A store with its workers. The first worker is never killed: what it uses must not grow."""

    kind: str
    url: str
    folder: Path
    relay: Relay | None = None
    done: int = 0
    asked: int = 0
    kills: int = 0
    usage: list[Usage] = field(default_factory=list[Usage])

    def kill_worker(self, pool: WorkerPool, chance: random.Random) -> None:
        """Kill one of the others."""
        others = pool.pids[1:]
        if others:
            with contextlib.suppress(ProcessLookupError):  # it has just died of the kill before this
                os.kill(chance.choice(others), signal.SIGKILL)
            self.kills += 1


@contextlib.asynccontextmanager
async def places(kinds: tuple[str, ...], folder: Path) -> AsyncGenerator[list[Place]]:
    """Stores, with relays in front of the servers."""
    async with contextlib.AsyncExitStack() as stack:
        found: list[Place] = []
        for kind in kinds:
            own = folder / kind
            own.mkdir()
            if kind in {'sqlite', 'files'}:
                found.append(Place(kind, f'{kind}:{own}/runs{".db" if kind == "sqlite" else ""}', own))
                continue
            server: Server = PostgresServer() if kind == 'postgres' else RedisServer()
            stack.callback(server.close)
            server.start()
            sockets = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix='soak-')))
            sockets.chmod(0o755)
            name = '.s.PGSQL.5432' if kind == 'postgres' else 'redis.sock'
            relay = Relay(server.folder / name, sockets)
            await relay.start()
            stack.push_async_callback(relay.close)
            found.append(Place(kind, server.url.replace(str(server.folder), str(sockets)), own, relay))
        yield found


async def persistently(work: Callable[[], Awaitable[T]]) -> T:
    """Try again while the store cannot be reached, or another process holds the run."""
    while True:
        try:
            return await work()
        except StoreUnavailable as error:
            if not error.passing:
                raise
        await asyncio.sleep(POLL_SECONDS)


class Soak:
    """One store under load."""

    def __init__(self, place: Place, seconds: float) -> None:
        self.place = place
        self._seconds = seconds
        self._end = 0.0
        self._count = 0
        self._expected: tuple[object, frozenset[str]] | None = None

    async def run(self, runs: int, chance: random.Random) -> None:
        """Keep so many runs going until the time is over, and then until the last one has ended."""
        place = self.place
        store = open_store(place.url)
        pool = WorkerPool(
            place.url, apps=APPS, workers=WORKERS, limit=runs // WORKERS + 1, pause=POLL_SECONDS, deaths=10**6
        )
        async with pool:
            await self._one(store)  # before anything happens: what must come of every run
            self._end = time.monotonic() + self._seconds  # of trouble, however long it took to get here
            trouble = asyncio.create_task(self._make_trouble(pool, chance))
            work = asyncio.gather(*(self._many(store) for _ in range(runs)))
            try:
                await asyncio.wait([trouble, work], return_when=asyncio.FIRST_COMPLETED)
                if trouble.done():
                    trouble.result()
                work.result()
            finally:
                trouble.cancel()
                work.cancel()
                await asyncio.gather(trouble, work, return_exceptions=True)
        await store.close()

    async def _many(self, store: Store) -> None:
        while time.monotonic() < self._end:
            await self._one(store)

    async def _one(self, store: Store) -> None:
        self._count += 1
        run = f'{self.place.kind}-{self._count}'
        with contextlib.suppress(RunBusy):  # the connection was cut after the run was created
            await persistently(lambda: queue_job(Job(target=scenario.TARGET, run=run), store, apps=APPS))
        while (info := await persistently(lambda: store.info(run))).status != 'done':
            if info.status in {'waiting', 'stopped'}:  # stopped: answered, and not queued again
                with contextlib.suppress(RunBusy):
                    self.place.asked += await persistently(lambda: self._answer(store, run))
            assert info.status in {'queued', 'running', 'waiting', 'stopped'}, info
            await asyncio.sleep(POLL_SECONDS)
        await self._check(store, run)
        self.place.done += 1

    async def _answer(self, store: Store, run: str) -> int:
        asked = await answer_all(store, run, os.environ[FOLDER])
        await queue_job(Job(run=run), store, apps=APPS)
        return asked

    async def _check(self, store: Store, run: str) -> None:
        outcome = await persistently(lambda: outcome_of(store, run, scenario.shop))
        effects = effects_of(os.environ[FOLDER], run)
        labels = frozenset(effect.label for effect in effects)
        self._expected = self._expected or (outcome.value, labels)
        assert (outcome.value, labels) == self._expected, run
        assert repeated(effects) == [], run
        with contextlib.suppress(RunNotFound):  # the connection was cut after it was deleted
            await persistently(lambda: store.delete(run))
        effects_file(os.environ[FOLDER], run).unlink()

    async def _make_trouble(self, pool: WorkerPool, chance: random.Random) -> None:
        veteran = pool.pids[0]
        last = 0.0
        while True:
            await asyncio.sleep(chance.uniform(0.5, 4.0))
            if chance.random() < 0.4:
                self.place.kill_worker(pool, chance)
            elif self.place.relay is not None:
                self.place.relay.cut(chance)
            if time.monotonic() - last > 2.0 and time.monotonic() < self._end:
                last = time.monotonic()
                self.place.usage.append(usage_of(veteran, Path(os.environ['TMPDIR'])))


async def soak(kinds: tuple[str, ...], *, seconds: float, runs: int, seed: int, folder: Path) -> list[Place]:
    """Raises `AssertionError` if a run does not end right, or something grows."""
    temporary, effects = folder / 'temporary', folder / 'effects'
    for each in (temporary, effects):
        each.mkdir()
    async with places(kinds, folder) as found:
        os.environ[FOLDER], os.environ['TMPDIR'] = str(effects), str(temporary)
        soaks = [Soak(place, seconds) for place in found]
        work = [each.run(runs // len(found), random.Random(seed + n)) for n, each in enumerate(soaks)]
        samples: list[Usage] = []
        watch = asyncio.create_task(_watch(found, samples, temporary))
        try:
            await asyncio.gather(*work)
        finally:
            watch.cancel()
    for name, used in [('this process', samples), *((f'a worker on {place.kind}', place.usage) for place in found)]:
        grown = growth(used)
        assert not grown, f'{name} used more and more: {grown}; {used[:: max(1, len(used) // 20)]}'
    return found


async def _watch(found: list[Place], samples: list[Usage], temporary: Path) -> None:
    started = shown = time.monotonic()
    while True:
        await asyncio.sleep(2)
        samples.append(usage_of(os.getpid(), temporary))
        if time.monotonic() - shown > 30:
            shown = time.monotonic()
            parts = [f'{place.kind} {place.done} runs, {place.kills} kills' for place in found]
            used = samples[-1]
            print(
                f'{shown - started:5.0f} s: {"; ".join(parts)}; {used.kilobytes / 1024:.0f} MB, '
                f'{used.descriptors} descriptors, {used.threads} threads, {used.files} temporary files',
                file=sys.stderr,
                flush=True,
            )


def main() -> None:
    """Parse the command line, and print what was done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--minutes', type=float, default=30)
    parser.add_argument('--runs', type=int, default=200, help='how many at a time, on all stores together')
    parser.add_argument('--stores', nargs='+', choices=KINDS, default=KINDS)
    parser.add_argument('--seed', type=int, default=random.SystemRandom().randrange(1 << 32))
    options = parser.parse_args()
    logging.getLogger('habilis').setLevel(logging.CRITICAL)
    print(f'seed {options.seed}', file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix='soak-') as folder:
        found = asyncio.run(
            soak(
                tuple(options.stores),
                seconds=60 * options.minutes,
                runs=options.runs,
                seed=options.seed,
                folder=Path(folder),
            )
        )
    for place in found:
        cuts = 0 if place.relay is None else place.relay.cuts
        first, last = place.usage[len(place.usage) // 4], place.usage[-1]
        print(
            f'{place.kind}: {place.done} runs right, {place.kills} workers killed, {cuts} connections cut, '
            f'{place.asked} questions answered; a worker: {first} -> {last}'
        )


if __name__ == '__main__':
    main()
