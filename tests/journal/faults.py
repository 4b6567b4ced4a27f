"""Stores that fail on purpose, and runs that stopped in the middle."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from habilis.core.errors import JournalError, StoreUnavailable
from habilis.journal import Journal, Lease, MemoryStore, OnChange, Record, RunInfo, Scope, Store, current_scope
from habilis.journal.copies import digests_of
from habilis.journal.stores.wrapper import StoreWrapper

RUN = 'run-1'


class Faulty(StoreWrapper):
    """A store in front of another, whose appends fail as a test wants."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.before: list[BaseException] = []
        """Raised by the next appends, which do nothing."""

        self.after: list[BaseException] = []
        """Raised by the next appends, which were made all the same."""

        self.loads: list[BaseException] = []
        self.claims: list[BaseException] = []
        self.claims_after: list[BaseException] = []
        """Raised by the next claims, which were made all the same."""

        self.releases: list[BaseException] = []
        self.hold_claim: asyncio.Event | None = None
        """A claim waits for it, after it was made."""

        self.hold: asyncio.Event | None = None
        """An append waits for it, before it does anything."""

        self.hold_answer: asyncio.Event | None = None
        """An append waits for it, after it was made."""

        self.appends = 0
        self.claim_count = 0

    async def claim(self, run: str, *, owner: str, seconds: float, over: int | None = None) -> Lease:
        """See `Store`."""
        self.claim_count += 1
        if self.claims:
            raise self.claims.pop(0)
        lease = await self.store.claim(run, owner=owner, seconds=seconds, over=over)
        if self.claims_after:
            raise self.claims_after.pop(0)
        if self.hold_claim is not None:
            await self.hold_claim.wait()
        return lease

    async def release(self, run: str, *, epoch: int) -> None:
        """See `Store`."""
        if self.releases:
            raise self.releases.pop(0)
        await self.store.release(run, epoch=epoch)

    async def append(
        self,
        run: str,
        records: Sequence[Record],
        *,
        epoch: int,
        info: RunInfo | None = None,
        blobs: Mapping[str, bytes] | None = None,
    ) -> None:
        """See `Store`."""
        self.appends += 1
        if self.hold is not None:
            await self.hold.wait()
        if self.before:
            raise self.before.pop(0)
        await self.store.append(run, records, epoch=epoch, info=info, blobs=blobs)
        if self.hold_answer is not None:
            await self.hold_answer.wait()
        if self.after:
            raise self.after.pop(0)

    async def load(self, run: str, *, after: int = 0) -> list[Record]:
        """See `Store`."""
        if self.loads:
            raise self.loads.pop(0)
        return await self.store.load(run, after=after)

    def for_another_loop(self) -> Store:
        """See `Store`."""
        return self


class PowerCut(MemoryStore):
    """While `on`, appends of the end of a cell fail."""

    on = True

    async def append(self, run: str, records: Sequence[Record], **rest: Any) -> None:
        ended = [record.path.rpartition('/')[2] for record in records if record.kind == 'done']
        if self.on and any(name.startswith('cell') for name in ended):
            msg = 'power'
            raise JournalError(msg)
        await super().append(run, records, **rest)


def away(*, passing: bool = True) -> StoreUnavailable:
    """The store cannot be reached."""
    return StoreUnavailable('the store is away', passing=passing)


@contextlib.asynccontextmanager
async def new(store: Store, run: str = RUN) -> AsyncGenerator[Scope]:
    """A new run, at its root."""
    journal = await Journal.create(store, RunInfo(run=run, name='test'))
    try:
        with Scope(journal, '').entered() as scope:
            yield scope
    finally:
        await journal.close()


@contextlib.asynccontextmanager
async def again(store: Store, run: str = RUN, *, on_change: OnChange = 'fail') -> AsyncGenerator[Scope]:
    """The run, opened once more, at its root."""
    journal = await Journal.open(store, run, on_change=on_change)
    try:
        with Scope(journal, '').entered() as scope:
            yield scope
    finally:
        await journal.close()


async def stopped_after(store: Store, count: int, run: str = RUN) -> MemoryStore:
    """A store with the run as it was when its process died after so many records."""
    copy = MemoryStore()
    await copy.create(replace(await store.info(run), status='running'))
    lease = await copy.claim(run, owner='dead', seconds=60)
    records = (await store.load(run))[:count]
    blobs = {digest: await store.blob(run, digest) for record in records for digest in digests_of(record)}
    await copy.append(run, records, epoch=lease.epoch, blobs=blobs)
    await copy.release(run, epoch=lease.epoch)
    return copy


async def lines_of(store: Store, run: str = RUN) -> list[tuple[str, str]]:
    """Kinds and paths of the records."""
    return [(record.kind, record.path) for record in await store.load(run)]


def here() -> Scope:
    """Where the running code is."""
    scope = current_scope()
    assert scope is not None
    return scope


class Work:
    """Work of steps that counts how often it was done."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def gives(self, value: object, name: str = '') -> 'Task':
        """Work that returns this."""
        return Task(self.done, name or str(value), value)


class Task:
    """One piece of work."""

    def __init__(self, done: list[str], name: str, value: object) -> None:
        self._done, self._name, self._value = done, name, value

    async def __call__(self) -> object:
        """Do it."""
        self._done.append(self._name)
        await asyncio.sleep(0)
        if isinstance(self._value, BaseException):
            raise self._value
        return self._value
