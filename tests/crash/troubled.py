"""A store whose user is killed at one of its writes, or which refuses one."""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from habilis.core.errors import StoreUnavailable
from habilis.journal.contract import Lease, Record, RunInfo, Store
from habilis.journal.stores.wrapper import StoreWrapper

T = TypeVar('T')
Trouble = Literal['dies before', 'dies after', 'fails before', 'fails after', '']
"""What happens, and whether the write is made all the same."""

TROUBLE = 'the disk is full'
WRITES = frozenset({'create', 'claim', 'release', 'delete'})
"""Operations that write, besides `append`."""


class Troubled(StoreWrapper):
    """A store in which something happens at one write. Renewals of leases, on another loop, are not counted."""

    def __init__(self, store: Store, trouble: Trouble, at: int, together: str = '') -> None:
        """`together`: a folder in which two processes that claim a run wait for each other."""
        super().__init__(store)
        self.writes: list[str] = []
        self._trouble: Trouble = trouble
        self._at = at
        self._together = together

    async def _do(self, operation: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return await (self._do_write(operation, work) if operation in WRITES else work())

    async def _do_write(self, what: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        self.writes.append(what)
        trouble = self._trouble if len(self.writes) == self._at else ''
        if trouble == 'dies before':
            os.kill(os.getpid(), signal.SIGKILL)
        if trouble == 'fails before':
            raise StoreUnavailable(TROUBLE)
        done = await work()
        if trouble == 'dies after':
            os.kill(os.getpid(), signal.SIGKILL)
        if trouble == 'fails after':
            raise StoreUnavailable(TROUBLE)
        return done

    async def _meet(self) -> None:
        """Go on when both have seen that nobody has the run."""
        folder, self._together = Path(self._together), ''
        (folder / f'{os.getpid()}.here').touch()
        async with asyncio.timeout(60):
            while len(list(folder.glob('*.here'))) < 2:  # noqa: ASYNC110 - the other one is another process
                await asyncio.sleep(0.005)

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
        await self._do_write(what, lambda: self.store.append(run, records, epoch=epoch, info=info, blobs=blobs))

    async def lease(self, run: str) -> Lease:
        lease = await super().lease(run)
        if self._together:
            await self._meet()
        return lease
