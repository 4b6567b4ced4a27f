"""`StoreWatch`: wait for many runs that other processes execute, with one poll of the store for all of them."""

import asyncio

from habilis.core.errors import RunNotFound
from habilis.flows.engine import ENDED, POLL_SECONDS
from habilis.flows.tasks import cancel_tasks
from habilis.journal import Store


class StoreWatch:
    """Waits for runs of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._polling: asyncio.Task[None] | None = None

    async def ended(self, run: str) -> None:
        """Wait until a run has ended, or waits for a person."""
        future = self._waiting.setdefault(run, asyncio.get_running_loop().create_future())
        if self._polling is None or self._polling.done():
            self._polling = asyncio.create_task(self._poll())
        await asyncio.wait([future, self._polling], return_when=asyncio.FIRST_COMPLETED)
        if not future.done():
            self._polling.result()  # raises what is wrong with the store

    async def close(self) -> None:
        """Stop polling."""
        if self._polling is not None:
            await cancel_tasks([self._polling])

    async def _poll(self) -> None:
        while self._waiting:
            listed = [*await self._store.runs(status='queued'), *await self._store.runs(status='running')]
            for run in self._waiting.keys() - {info.run for info in listed}:
                if await self._is_over(run):
                    self._waiting.pop(run).set_result(None)
            await asyncio.sleep(POLL_SECONDS)

    async def _is_over(self, run: str) -> bool:
        """Whether a run that is in neither list has ended: its status may have changed between the two."""
        try:
            return (await self._store.info(run)).status in ENDED
        except RunNotFound:  # deleted: who waits for it finds that out
            return True
