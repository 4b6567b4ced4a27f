"""`Journal`: the record of one run, open for this process to write. `Scope` is a place in it, where steps are taken."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, Self, cast

from habilis.core import codec
from habilis.core.codec import Json
from habilis.core.errors import (
    JournalError,
    LeaseLost,
    NotDurable,
    RunBusy,
    RunChanged,
    RunNotFound,
    StoreUnavailable,
)
from habilis.journal import leases
from habilis.journal.access import claim, clear_unbegun, info_of, value_of
from habilis.journal.contract import BLOB_BYTES, Kind, Record, RunInfo, Status, Store
from habilis.journal.copying import copy_run
from habilis.journal.index import Index, parent_of
from habilis.journal.lines import digest_of, new_record
from habilis.journal.refusals import check_name, lost
from habilis.journal.work import Work

logger = logging.getLogger('habilis.journal')

OnChange = Literal['fail', 'continue', 'fork']
"""What to do where the code no longer does what the record says: raise `RunChanged`, drop what does not fit and go on
from here, or go on in a new run and leave this one as it is."""

PATIENCE = 30.0
"""Seconds that an append is tried again while the store is away."""

Draft = partial[Record]
"""A record that has no number yet."""

_RUNNING = partial(Record, path='', kind='noted', value='running')


class Journal(Work):
    """The record of a run. Make it with `create` or `open`, and `close` it. For one event loop."""

    def __init__(
        self,
        store: Store,
        info: RunInfo,
        *,
        owner: str,
        epoch: int,
        on_change: OnChange = 'fail',
        seconds: float = leases.SECONDS,
    ) -> None:
        super().__init__()
        self.store = store
        self.info = info
        self.on_change: OnChange = on_change
        self.index = Index()
        self.loaded: Sequence[Record] = ()
        """The records that there were when the run was opened."""

        self.waiting: dict[str, Json] = {}
        """What a person is asked, by path, since this process works on the run."""

        self._owner = owner
        self._epoch = epoch
        self._seq = 0
        self._unsure = False
        self._seconds = seconds
        self._before: list[Draft] = []
        """What is written with the first new record: until then, a run that was opened is as it was."""

        self.loop = asyncio.get_running_loop()
        """The event loop of the run; only there it may be written."""

        self._lock = asyncio.Lock()
        self._keeper: asyncio.Task[None] | None = None
        self._ended: JournalError | None = None
        self._closed = False

    @property
    def run(self) -> str:
        """The name of the run."""
        return self.info.run

    # Opening and closing ----------------------------------------------------------------------------------------------

    @classmethod
    async def create(cls, store: Store, info: RunInfo) -> Self:
        """A new run. Raises `RunBusy` if there is one of that name that has begun."""
        check_name(info.run)
        now = time.time()
        info = replace(info, status='running', created=info.created or now, updated=now)
        made = await store.create(info) or (await clear_unbegun(store, info.run) and await store.create(info))
        if not made:
            msg = f'there is a run {info.run} already; resume it, or choose another name'
            raise RunBusy(msg)
        return await cls._claimed(store, info, 'fail')

    @classmethod
    async def open(
        cls,
        store: Store,
        run: str,
        *,
        user: str | None = None,
        on_change: OnChange = 'fail',
        seconds: float = leases.SECONDS,
    ) -> Self:
        """A run to go on with. Raises `RunNotFound`, also for another user's run, `RunBusy` and `CorruptRecord`."""
        info = await info_of(store, run, user)
        journal = await cls._claimed(store, info, on_change, seconds)
        try:
            await journal._load()
        except BaseException:
            await journal.close()
            raise
        return journal

    @classmethod
    async def _claimed(cls, store: Store, info: RunInfo, on_change: OnChange, seconds: float = leases.SECONDS) -> Self:
        owner = leases.new_owner()
        lease = await claim(store, info.run, owner=owner, seconds=seconds)
        journal = cls(store, info, owner=owner, epoch=lease.epoch, on_change=on_change, seconds=seconds)
        journal._keeper = asyncio.create_task(journal._keep())
        return journal

    async def _load(self) -> None:
        self.info = await self.store.info(self.run)  # as it is now that nobody else can change it
        records = await self.store.load(self.run)
        self.index, self.loaded = Index(records), records
        self._seq = len(records)
        again = await self._failures(records) if self.info.status == 'failed' else []
        if again:
            voided = partial(Record, path='', kind='voided', value=cast('Json', again))
            self.index.add(voided(seq=0))
            self._before.append(voided)
        if self.info.status != 'running':
            self._before.append(_RUNNING)

    async def _failures(self, records: Sequence[Record]) -> list[str]:
        """The steps that made the run fail, and those beside them that failed later. Caught failures are none."""
        ended = next((record for record in reversed(records) if record.kind == 'ended'), None)
        how = await self.value_of(ended) if ended is not None else None
        named = how.get('failed') if isinstance(how, dict) else None
        failures = [path for path in named if isinstance(path, str)] if isinstance(named, list) else []
        failed = {
            path: entry.end.seq
            for path, entry in self.index.inside('')
            if entry.end is not None and entry.end.kind == 'failed'
        }
        first = min((failed[path] for path in failures if path in failed), default=self._seq)
        return [*failures, *(path for path, seq in failed.items() if seq > first and path not in failures)]

    async def _keep(self) -> None:
        """Say that this process lives."""
        while True:
            await asyncio.sleep(self._seconds / 3)
            try:
                lease = await self.store.claim(self.run, owner=self._owner, seconds=self._seconds)
            except StoreUnavailable as error:
                logger.warning('the lease of %s was not renewed: %s', self.run, error)
                continue
            except RunBusy:
                self._ended = lost(self.run)
            except JournalError as error:  # the run was deleted
                self._ended = error
            else:
                if lease.epoch == self._epoch:
                    continue
                self._ended = lost(self.run)
            logger.warning('%s', self._ended)
            return

    async def _stop_keeping(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
            self._keeper = None

    async def mark(self, status: Status, *, error: str = '') -> None:
        """The run is in this state from now on."""
        await self.write('noted', '', value=status, status=status, error=error)

    async def end(self, status: Status, *, value: Json = None, failed: Sequence[str] = (), error: str = '') -> None:
        """The run stops here. `failed` names the steps that are to be tried again if it is resumed."""
        await self.write(
            'ended', '', value={'status': status, 'value': value, 'failed': list(failed)}, status=status, error=error
        )

    async def close(self) -> None:
        """Let others have the run. What is under way and ends later is not written any more."""
        if self._closed:
            return
        await self._stop_keeping()
        if self._ended is None:
            self._ended = JournalError(f'{self.run} is closed; open it again to go on with it')
        async with self._lock:  # what is being appended is finished before
            self._closed = True
            with contextlib.suppress(StoreUnavailable, RunNotFound):  # the lease ends by itself
                await self.store.release(self.run, epoch=self._epoch)

    # Writing ----------------------------------------------------------------------------------------------------------

    async def write(
        self,
        kind: Kind,
        path: str,
        *,
        key: str = '',
        value: Json = None,
        attached: Mapping[str, bytes] | None = None,
        status: Status | None = None,
        error: str = '',
    ) -> Record:
        """Append a record; it is safe when this returns."""
        digests = {name: digest_of(data) for name, data in attached.items()} if attached else {}
        blobs = {digests[name]: data for name, data in attached.items()} if attached else {}
        blob = ''
        if kind != 'voided':  # which is needed to know what the other records are worth
            text = _text_of(value)
            if len(text) > BLOB_BYTES:
                data = text.encode()
                blob = digest_of(data)
                blobs[blob] = data
        value = None if blob else value
        draft = partial(new_record, path=path, kind=kind, key=key, value=value, blob=blob, attached=digests)
        return (await self._write([draft], path, status, error, blobs))[-1]

    async def begin(self) -> None:
        """The replay is over and new work begins; others see that the run goes on."""
        if self._before:
            await self._write([], '', None, '', {})

    async def _write(
        self, drafts: list[Draft], path: str, status: Status | None, error: str, blobs: Mapping[str, bytes]
    ) -> list[Record]:
        """Number and append these, after those that have to come before."""
        async with self._lock:
            if self._unsure:
                await self._patiently(self._look_again)
            if self._before or self._unopened:
                drafts = [*self._before, *self._around(path), *drafts]
                status = status or ('running' if self._before else None)
            now = round(time.time(), 6)
            records = [draft(seq=self._seq + n, at=now) for n, draft in enumerate(drafts, 1)]
            info = None if status is None else replace(self.info, status=status, error=error, updated=now)
            if records:
                await self._append(records, info, blobs)
        for record in records:
            self.index.add(record)
        return records

    async def _append(self, records: Sequence[Record], info: RunInfo | None, blobs: Mapping[str, bytes]) -> None:
        self._unsure = True
        await self._patiently(partial(self.store.append, self.run, records, epoch=self._epoch, info=info, blobs=blobs))
        self._unsure = False
        self._seq += len(records)
        self._before = []
        self.info = info or self.info

    def _around(self, path: str) -> list[Draft]:
        """Records of the scopes around a path that have none yet."""
        found: list[Draft] = []
        scope = parent_of(path) if self._unopened else ''
        while scope:
            key, entry = self._unopened.get(scope), self.index.find(scope)
            if key and (entry is None or entry.opened is None):
                found.insert(0, partial(Record, path=scope, kind='opened', key=key))
            scope = parent_of(scope)
        return found

    async def _patiently(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do it again while the store is away."""
        deadline, pause = time.monotonic() + PATIENCE, 0.05
        while True:
            if self._ended is not None:
                raise self._ended
            try:
                return await work()
            except LeaseLost as error:
                self._ended = error
                raise
            except StoreUnavailable as error:
                if not error.passing or time.monotonic() + pause > deadline:
                    raise
                logger.warning('%s; trying again', error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, 2.0)

    async def _look_again(self) -> None:
        """After an append of which nobody knows whether it was made."""
        records = await self.store.load(self.run, after=self._seq)
        if records:
            self.info = await self.store.info(self.run)
            self._before = []
        for record in records:
            self.index.add(record)
            self._seq = record.seq
        self._unsure = False

    async def value_of(self, record: Record) -> Json:
        """What a record holds, from its blob if it is there."""
        return await value_of(self.store, self.run, record)

    # Where the code has changed ---------------------------------------------------------------------------------------

    async def diverge(self, scope: str, left: Sequence[str], what: str) -> None:
        """The steps `left` do not fit any more. Raises `RunChanged`, or drops them here or in a fork."""
        if self.on_change == 'fail':
            msg = (
                f'{self.run} does not fit its record any more: {what}. The code has changed since. Resume it with '
                "on_change='continue' to drop what does not fit and go on from here, or 'fork' to do so in a new run; "
                'or go back to the code that made the record'
            )
            self._ended = RunChanged(msg)  # also for code that takes it for a failure of its own, and would go on
            raise self._ended
        if self.on_change == 'fork':
            await self._fork()
        logger.warning('%s: %s; going on from here', self.run, what)
        await self.write('voided', scope, value=[f'{path}/' for path in left])

    async def _fork(self) -> None:
        """Go on in a copy of the run."""
        async with self._lock:
            if self.on_change != 'fork':  # another branch has forked it
                return
            if self._unsure:
                await self._patiently(self._look_again)
            await self._stop_keeping()
            try:
                old = self.info
                copy = await copy_run(self.store, old, upto=self._seq)
                lease = await self.store.claim(copy.run, owner=self._owner, seconds=self._seconds)
                await self.store.release(old.run, epoch=self._epoch)
                self.info, self._epoch, self.on_change = copy, lease.epoch, 'continue'
                if _RUNNING not in self._before:
                    self._before.append(_RUNNING)
            finally:
                self._keeper = asyncio.create_task(self._keep())

    async def rewind(self, scope: str, failed: Sequence[str]) -> None:
        """A scope is begun again: what was done in it is answered from the record, what failed is tried again."""
        inside = [path for path in failed if path.startswith(f'{scope}/')]
        if inside:
            await self.write('voided', scope, value=cast('Json', inside))
        self.forget(scope)
        self.index.rewind(scope)


def _is_short(value: Json) -> bool:
    return value is None or type(value) in {bool, int} or (type(value) is str and len(value) < BLOB_BYTES // 12)


def _text_of(value: Json) -> str:
    """As JSON. What is certainly short is not written for its length."""
    if _is_short(value) or (type(value) is dict and len(value) == 1 and _is_short(next(iter(value.values())))):
        return ''
    try:
        return codec.dump(value)
    except (ValueError, TypeError, RecursionError) as error:
        msg = f'this cannot be recorded, because it is no JSON: {error}; write it with a `Codec`'
        raise NotDurable(msg) from None
