"""A store in front of another one: the base of stores that change some operations."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TypeVar

from habilis.journal.contract import Lease, Record, RunFigures, RunInfo, Status, Store

T = TypeVar('T')


class StoreWrapper:
    """Delegates everything to `store`. Subclasses override single operations, or `_do` for all of them."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def _do(self, operation: str, work: Callable[[], Coroutine[object, object, T]]) -> T:
        """Every operation passes here. `operation` is the name of the method."""
        return await work()

    async def create(
        self, info: RunInfo, records: Sequence[Record] = (), *, blobs: Mapping[str, bytes] | None = None
    ) -> bool:
        """See `Store`."""
        return await self._do('create', lambda: self.store.create(info, records, blobs=blobs))

    async def claim(self, run: str, *, owner: str, seconds: float, over: int | None = None) -> Lease:
        """See `Store`."""
        return await self._do('claim', lambda: self.store.claim(run, owner=owner, seconds=seconds, over=over))

    async def release(self, run: str, *, epoch: int) -> None:
        """See `Store`."""
        await self._do('release', lambda: self.store.release(run, epoch=epoch))

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
        await self._do('append', lambda: self.store.append(run, records, epoch=epoch, info=info, blobs=blobs))

    async def load(self, run: str, *, after: int = 0) -> list[Record]:
        """See `Store`."""
        return await self._do('load', lambda: self.store.load(run, after=after))

    async def blob(self, run: str, digest: str) -> bytes:
        """See `Store`."""
        return await self._do('blob', lambda: self.store.blob(run, digest))

    async def info(self, run: str) -> RunInfo:
        """See `Store`."""
        return await self._do('info', lambda: self.store.info(run))

    async def lease(self, run: str) -> Lease:
        """See `Store`."""
        return await self._do('lease', lambda: self.store.lease(run))

    async def runs(
        self, *, user: str | None = None, session: str | None = None, status: Status | None = None
    ) -> list[RunInfo]:
        """See `Store`."""
        return await self._do('runs', lambda: self.store.runs(user=user, session=session, status=status))

    async def figures(self, *, user: str | None = None, since: float, interval: float, slowest: int = 10) -> RunFigures:
        """See `Store`."""
        work = self.store.figures
        return await self._do('figures', lambda: work(user=user, since=since, interval=interval, slowest=slowest))

    async def delete(self, run: str) -> None:
        """See `Store`."""
        await self._do('delete', lambda: self.store.delete(run))

    def for_another_loop(self) -> Store:
        """See `Store`. Another loop gets the store itself, without what a subclass changes."""
        return self.store.for_another_loop()

    async def close(self) -> None:
        """See `Store`."""
        await self.store.close()
