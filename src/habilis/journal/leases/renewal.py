"""Renew leases, and release them later, on a thread of their own, which a blocked event loop does not stop."""

import asyncio
import logging
import math
import os
import time
import weakref
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from habilis.core.background_loop import background_loop
from habilis.core.errors import JournalError, RunBusy, RunNotFound, StoreUnavailable
from habilis.journal.errors import lease_lost

if TYPE_CHECKING:
    from habilis.journal.contract import Lease, Store

logger = logging.getLogger('habilis.journal')

Lost = Callable[[JournalError], None]
_RETRY_SECONDS = 2.0


class Renewal:
    """Renews a lease three times in its period, until it is stopped or the lease is lost.

    Args:
        store: the store of the run.
        run: the id of the run.
        lease: the lease, with its owner and epoch.
        seconds: the period of the lease.
        lost: a method, called on the thread if the lease is lost. Its object is not kept alive: if it is collected, or
            its event loop is closed, nobody can write any more, and the run is released.
    """

    def __init__(self, store: 'Store', run: str, lease: 'Lease', *, seconds: float, lost: Lost) -> None:
        self._store = store
        self._run = run
        self._lease = lease
        self._seconds = seconds
        self._lost = weakref.WeakMethod(lost)
        self._loop = asyncio.get_running_loop()
        self._is_stopped = False
        self._is_renewing = False
        self._work: Future[None] | None = None
        self.due = time.monotonic() + seconds / 3
        """When it is renewed first."""

        _first_renewals.add(self)

    async def stop(self) -> None:
        """Renew no more. Waits for a renewal in progress, because it would claim a released run again."""
        self._is_stopped = True  # before it looks for work: what starts now ends at once
        _first_renewals.discard(self)
        if self._work is None:
            return
        if self._is_renewing:  # set before it looks at `_is_stopped`
            await asyncio.wait([asyncio.wrap_future(self._work)])
        else:
            self._work.cancel()

    def start(self) -> None:
        """Renew the lease now, and then regularly."""
        self._work = _start(self._renew())

    async def _renew(self) -> None:
        async with _store_of_thread(self._store) as here:
            while True:
                self._is_renewing = True
                if self._is_stopped or not await self._renew_once(here):
                    return
                self._is_renewing = False
                await asyncio.sleep(self._seconds / 3)

    async def _renew_once(self, store: 'Store') -> bool:
        """Renew the lease; returns whether it is still held."""
        lost = self._lost()
        if lost is None or self._loop.is_closed():
            await _release(store, self._run, self._lease.owner)
            return False
        try:
            lease = await store.claim(self._run, owner=self._lease.owner, seconds=self._seconds)
        except StoreUnavailable as error:
            logger.warning('the lease of %s was not renewed: %s', self._run, error)
            return True
        except RunBusy:
            reason: JournalError = lease_lost(self._run)
        except JournalError as error:  # the run was deleted
            reason = error
        else:
            if lease.epoch == self._lease.epoch:
                return True
            reason = lease_lost(self._run)
        logger.warning('%s', reason)
        lost(reason)
        return False


class _FirstRenewals:
    """The leases that were not renewed yet. They share one timer, so that a short run does not wake the thread."""

    def __init__(self) -> None:
        self._renewals: set[Renewal] = set()
        self._wakes = math.inf
        """When the thread looks at them next."""

        self._timer: asyncio.TimerHandle | None = None

    def add(self, renewal: Renewal) -> None:
        """Start the renewal when it is due."""
        self._renewals.add(renewal)  # before it reads `_wakes`, so that the thread sees it if that is just changing
        if renewal.due < self._wakes:
            self._wakes = renewal.due
            background_loop('habilis-leases').call_soon_threadsafe(self._start_due)

    def discard(self, renewal: Renewal) -> None:
        """Do not start the renewal."""
        self._renewals.discard(renewal)

    def _start_due(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._wakes, loop = math.inf, asyncio.get_running_loop()
        waiting = sorted(self._renewals, key=lambda renewal: renewal.due)  # a copy: other threads change it
        while waiting and waiting[0].due <= loop.time():
            renewal = waiting.pop(0)
            self._renewals.discard(renewal)
            renewal.start()
        if waiting:
            self._wakes = waiting[0].due
            self._timer = loop.call_at(self._wakes, self._start_due)


def release_later(store: 'Store', run: str, owner: str) -> None:
    """Release a run as soon as the store can be reached, if this owner holds it.

    A lease of a live process does not expire for other processes of the machine, so it must not be left behind.
    """

    async def work() -> None:
        async with _store_of_thread(store) as here:
            await _release(here, run, owner)

    _start(work())


async def _release(store: 'Store', run: str, owner: str) -> None:
    while True:
        try:
            lease = await store.lease(run)
            if lease.owner == owner and lease.until:
                await store.release(run, epoch=lease.epoch)
        except StoreUnavailable as error:
            logger.warning('%s was not released: %s; retrying', run, error)
            await asyncio.sleep(_RETRY_SECONDS)
        except RunNotFound:
            return
        else:
            return


# The thread -----------------------------------------------------------------------------------------------------------

_first_renewals = _FirstRenewals()
_users: Counter[int] = Counter()
_stores: 'dict[int, Store]' = {}
"""By the `id` of the store that they were made from: a store need not be hashable."""

if hasattr(os, 'register_at_fork'):  # the thread does not survive a fork, and its connections belong to the parent
    os.register_at_fork(after_in_child=_first_renewals.__init__)
    os.register_at_fork(after_in_child=_stores.clear)
    os.register_at_fork(after_in_child=_users.clear)


def _start(work: Coroutine[object, object, None]) -> 'Future[None]':
    return asyncio.run_coroutine_threadsafe(work, background_loop('habilis-leases'))


@asynccontextmanager
async def _store_of_thread(store: 'Store') -> 'AsyncGenerator[Store]':
    """The same runs for the event loop of the thread, shared by all leases of a store."""
    key = id(store)
    if key not in _stores:
        _stores[key] = store.for_another_loop()
    _users[key] += 1
    try:
        yield _stores[key]
    finally:
        _users[key] -= 1
        if not _users[key]:
            del _users[key]
            here = _stores.pop(key)
            if here is not store:
                await here.close()
