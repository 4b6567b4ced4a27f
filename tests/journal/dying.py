"""Processes that die after one of their operations on a store, acted out in this process."""

import subprocess
import sys
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import pytest

from habilis.journal import Lease, Record, RunInfo, Status, Store, owners

T = TypeVar('T')


class Died(BaseException):
    """The process is dead: nothing that it does from now on has an effect."""


@cache
def dead_owner() -> str:
    """The owner of leases in a process that has ended."""
    command = [sys.executable, '-c', 'from habilis.journal.owners import new_owner; print(new_owner())']
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


class Dying:
    """A store whose user dies after so many operations."""

    def __init__(self, store: Store, operations: int) -> None:
        self.store = store
        self.left = operations

    @property
    def is_dead(self) -> bool:
        return self.left < 0

    async def _do(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        self.left -= 1
        if self.is_dead:
            raise Died
        return await work()

    async def create(
        self, info: RunInfo, records: Sequence[Record] = (), *, blobs: Mapping[str, bytes] | None = None
    ) -> bool:
        return await self._do(lambda: self.store.create(info, records, blobs=blobs))

    async def claim(self, run: str, *, owner: str, seconds: float, over: int | None = None) -> Lease:
        return await self._do(lambda: self.store.claim(run, owner=owner, seconds=seconds, over=over))

    async def release(self, run: str, *, epoch: int) -> None:
        await self._do(lambda: self.store.release(run, epoch=epoch))

    async def append(
        self,
        run: str,
        records: Sequence[Record],
        *,
        epoch: int,
        info: RunInfo | None = None,
        blobs: Mapping[str, bytes] | None = None,
    ) -> None:
        await self._do(lambda: self.store.append(run, records, epoch=epoch, info=info, blobs=blobs))

    async def load(self, run: str, *, after: int = 0) -> list[Record]:
        return await self._do(lambda: self.store.load(run, after=after))

    async def blob(self, run: str, digest: str) -> bytes:
        return await self._do(lambda: self.store.blob(run, digest))

    async def info(self, run: str) -> RunInfo:
        return await self._do(lambda: self.store.info(run))

    async def lease(self, run: str) -> Lease:
        return await self._do(lambda: self.store.lease(run))

    async def runs(
        self, *, user: str | None = None, session: str | None = None, status: Status | None = None
    ) -> list[RunInfo]:
        return await self._do(lambda: self.store.runs(user=user, session=session, status=status))

    async def delete(self, run: str) -> None:
        await self._do(lambda: self.store.delete(run))

    def for_another_loop(self) -> Store:
        return self

    async def close(self) -> None:
        """The test closes the store itself."""


@contextmanager
def dying(store: Store, operations: int) -> Generator[Dying]:
    """The store of a process that dies after so many operations. What is done in the block ends there."""
    owner = dead_owner()
    made = Dying(store, operations)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owners, 'new_owner', lambda: owner)
        try:
            yield made
        except Died:
            assert made.is_dead
