"""A store whose user is killed at one of its writes, or which refuses one."""

import asyncio
import os
import signal
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from habilis.core.errors import StoreUnavailable
from habilis.journal.contract import Lease, Record, RunInfo, Status, Store

T = TypeVar('T')
Trouble = Literal['dies before', 'dies after', 'fails before', 'fails after', '']
"""What happens, and whether the write is made all the same."""

TROUBLE = 'the disk is full'


class Troubled:
    """A store in which something happens at one write."""

    def __init__(self, store: Store, trouble: Trouble, at: int, together: str = '') -> None:
        """`together`: a folder in which two processes that claim a run wait for each other."""
        self.store = store
        self.writes: list[str] = []
        self._trouble: Trouble = trouble
        self._at = at
        self._together = together

    async def _write(self, what: str, write: Coroutine[Any, Any, T]) -> T:
        self.writes.append(what)
        trouble = self._trouble if len(self.writes) == self._at else ''
        if trouble == 'dies before':
            os.kill(os.getpid(), signal.SIGKILL)
        if trouble == 'fails before':
            write.close()
            raise StoreUnavailable(TROUBLE)
        done = await write
        if trouble == 'dies after':
            os.kill(os.getpid(), signal.SIGKILL)
        if trouble == 'fails after':
            raise StoreUnavailable(TROUBLE)
        return done

    async def create(
        self, info: RunInfo, records: Sequence[Record] = (), *, blobs: Mapping[str, bytes] | None = None
    ) -> bool:
        return await self._write('create', self.store.create(info, records, blobs=blobs))

    async def claim(self, run: str, *, owner: str, seconds: float, over: int | None = None) -> Lease:
        return await self._write('claim', self.store.claim(run, owner=owner, seconds=seconds, over=over))

    async def _meet(self) -> None:
        """Go on when both have seen that nobody has the run."""
        folder, self._together = Path(self._together), ''
        (folder / f'{os.getpid()}.here').touch()
        async with asyncio.timeout(60):
            while len(list(folder.glob('*.here'))) < 2:  # noqa: ASYNC110 - the other one is another process
                await asyncio.sleep(0.005)

    async def release(self, run: str, *, epoch: int) -> None:
        await self._write('release', self.store.release(run, epoch=epoch))

    async def append(
        self,
        run: str,
        records: Sequence[Record],
        *,
        epoch: int,
        info: RunInfo | None = None,
        blobs: Mapping[str, bytes] | None = None,
    ) -> None:
        what = ', '.join(f'{record.kind} {record.path}' for record in records)
        await self._write(what, self.store.append(run, records, epoch=epoch, info=info, blobs=blobs))

    async def load(self, run: str, *, after: int = 0) -> list[Record]:
        return await self.store.load(run, after=after)

    async def blob(self, run: str, digest: str) -> bytes:
        return await self.store.blob(run, digest)

    async def info(self, run: str) -> RunInfo:
        return await self.store.info(run)

    async def lease(self, run: str) -> Lease:
        lease = await self.store.lease(run)
        if self._together:
            await self._meet()
        return lease

    async def runs(
        self, *, user: str | None = None, session: str | None = None, status: Status | None = None
    ) -> list[RunInfo]:
        return await self.store.runs(user=user, session=session, status=status)

    async def delete(self, run: str) -> None:
        await self._write('delete', self.store.delete(run))

    def for_another_loop(self) -> Store:
        """The renewal of leases is not in trouble: how often it comes depends on the speed of the machine."""
        return self.store.for_another_loop()

    async def close(self) -> None:
        await self.store.close()
