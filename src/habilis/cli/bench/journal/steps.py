"""A step as a flow takes it: work that ends at once, a small value, a key made of what went in."""

import contextlib
import secrets
import time
from collections.abc import AsyncGenerator

from habilis.core.errors import JournalError
from habilis.flows import flow, step
from habilis.journal import Journal, RunInfo, Scope, Store, fingerprint
from habilis.journal.stores import open_store

WARM = 20
"""Steps of a run before those that are timed."""


class Stepper:
    """Takes steps in a store. A part of the bench; the runs that it makes are deleted."""

    def __init__(self, where: str) -> None:
        self.where = where
        """As `open_store` takes it."""

        self._store = open_store(where)
        self._recorded = ''

    async def steps(self, count: int) -> list[float]:
        """Seconds of each of so many steps, in a new run."""
        async with _new_run(self._store) as journal:
            scope = Scope(journal, '')
            for number in range(WARM):
                await _timed(scope, number)
            times = [await _timed(scope, WARM + number) for number in range(count)]
        await self._store.delete(journal.run)
        return times

    async def flow_steps(self, count: int) -> list[float]:
        """The same with `@step` inside of a `@flow`."""
        run = await counting.start(WARM + count, journal=self._store, run_id=_name())
        times = (await run.result())[WARM:]
        await self._store.delete(run.id)
        return times

    async def record(self, count: int) -> None:
        """Have a run with so many steps, for `replay`."""
        async with _new_run(self._store) as journal:
            scope = Scope(journal, '')
            for number in range(count):
                await _timed(scope, number)
        self._recorded = journal.run

    async def replay(self, count: int) -> float:
        """Seconds until the steps of that run are answered from its record, with a connection of its own."""
        started = time.perf_counter()
        store = open_store(self.where)
        journal = await Journal.open(store, self._recorded)
        scope = Scope(journal, '')
        for number in range(count):
            await scope.step('count', _unwanted, key=fingerprint(number, QUESTION))
        taken = time.perf_counter() - started
        await journal.close()
        await store.close()
        return taken

    async def close(self) -> None:
        """Leave nothing in the store."""
        if self._recorded:
            await self._store.delete(self._recorded)
            self._recorded = ''
        await self._store.close()


QUESTION = 'How many?'


async def _timed(scope: Scope, number: int) -> float:
    async def work() -> dict[str, object]:
        return {'number': number, 'text': 'a small value'}

    started = time.perf_counter()
    await scope.step('count', work, key=fingerprint(number, QUESTION))
    return time.perf_counter() - started


async def _unwanted() -> object:
    msg = 'a step was done again that is in the record'
    raise JournalError(msg)


@step
async def count_one(number: int, question: str) -> dict[str, object]:
    """What `_timed` does."""
    return {'number': number, 'text': question}


@flow
async def counting(count: int) -> list[float]:
    """Seconds of each of its steps."""
    times: list[float] = []
    for number in range(count):
        started = time.perf_counter()
        await count_one(number, QUESTION)
        times.append(time.perf_counter() - started)
    return times


@contextlib.asynccontextmanager
async def _new_run(store: Store) -> AsyncGenerator[Journal]:
    journal = await Journal.create(store, RunInfo(run=_name(), kind='flow', name='bench'))
    try:
        yield journal
    finally:
        await journal.close()


def _name() -> str:
    return f'bench-{secrets.token_hex(6)}'
