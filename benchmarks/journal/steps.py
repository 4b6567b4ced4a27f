"""Time recorded steps that do nothing and return a small value."""

import contextlib
import secrets
import time
from collections.abc import AsyncGenerator

from habilis.core.errors import JournalError
from habilis.flows import flow, step
from habilis.journal import Journal, RunInfo, Scope, Store, fingerprint
from habilis.journal.stores.urls import open_store

WARM_UP_STEPS = 20
"""Steps of a run before the timed ones."""

QUESTION = 'How many?'


class StepTimer:
    """Times steps in a store. The runs it creates are deleted."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._store = open_store(url)
        self._recorded = ''

    async def steps(self, count: int, *, once: bool = False) -> list[float]:
        """Seconds of each of `count` steps in a new run. `once`: of steps that must not be repeated."""
        async with _new_run(self._store) as journal:
            scope = Scope(journal, '')
            for number in range(WARM_UP_STEPS):
                await _time_step(scope, number)
            times = [await _time_step(scope, WARM_UP_STEPS + number, once=once) for number in range(count)]
        await self._store.delete(journal.run)
        return times

    async def flow_steps(self, count: int) -> list[float]:
        """The same with `@step` in a `@flow`."""
        run = await counting.start(WARM_UP_STEPS + count, journal=self._store, run_id=_run_id())
        times = (await run.result())[WARM_UP_STEPS:]
        await self._store.delete(run.id)
        return times

    async def record(self, count: int) -> None:
        """Record a run of `count` steps for `replay`."""
        async with _new_run(self._store) as journal:
            scope = Scope(journal, '')
            for number in range(count):
                await _time_step(scope, number)
        self._recorded = journal.run

    async def replay(self, count: int) -> float:
        """Seconds to open the recorded run on a new connection and replay its steps."""
        started = time.perf_counter()
        store = open_store(self._url)
        journal = await Journal.open(store, self._recorded)
        scope = Scope(journal, '')
        for number in range(count):
            await scope.step('count', _must_not_run, key=fingerprint(number, QUESTION))
        taken = time.perf_counter() - started
        await journal.close()
        await store.close()
        return taken

    async def close(self) -> None:
        """Delete the recorded run and close the store."""
        if self._recorded:
            await self._store.delete(self._recorded)
            self._recorded = ''
        await self._store.close()


async def _time_step(scope: Scope, number: int, *, once: bool = False) -> float:
    async def work() -> dict[str, object]:
        return {'number': number, 'text': 'a small value'}

    started = time.perf_counter()
    await scope.step('count', work, key=fingerprint(number, QUESTION), once=once)
    return time.perf_counter() - started


async def _must_not_run() -> object:
    msg = 'a recorded step was executed again'
    raise JournalError(msg)


@step
async def count_one(number: int, question: str) -> dict[str, object]:
    """Return a small value."""
    return {'number': number, 'text': question}


@flow
async def counting(count: int) -> list[float]:
    """Run `count` steps and return the seconds of each."""
    times: list[float] = []
    for number in range(count):
        started = time.perf_counter()
        await count_one(number, QUESTION)
        times.append(time.perf_counter() - started)
    return times


@contextlib.asynccontextmanager
async def _new_run(store: Store) -> AsyncGenerator[Journal]:
    journal = await Journal.create(store, RunInfo(run=_run_id(), kind='flow', name='bench'))
    try:
        yield journal
    finally:
        await journal.close()


def _run_id() -> str:
    return f'bench-{secrets.token_hex(6)}'
