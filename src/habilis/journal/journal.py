"""`Journal`: the record of one run, open for writing by this process. Steps run in a `Scope` of it."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, Self

from habilis.core import owners
from habilis.core.codec import Json
from habilis.core.errors import JournalError, LeaseLost, RunChanged, StoreUnavailable
from habilis.core.owners import OwnerState, owner_state
from habilis.journal.activity import Activity
from habilis.journal.contract import Kind, Lease, Record, RunInfo, Status, Store
from habilis.journal.copies import copy_run
from habilis.journal.creation import as_blob, create_run
from habilis.journal.encoding import digest_of, new_record
from habilis.journal.index import Index, parent_of
from habilis.journal.leases import claims as leases
from habilis.journal.leases.renewal import Renewal
from habilis.journal.lookup import info_of, value_of

logger = logging.getLogger('habilis.journal')

OnChange = Literal['fail', 'continue', 'fork']
"""What to do if the code no longer matches the record: `fail` raises `RunChanged`, `continue` drops what does not match
and runs on from there, `fork` does the same in a new run and leaves this one unchanged."""

RETRY_SECONDS = 30.0
"""How long an append is retried while the store is unavailable."""

Draft = partial[Record]
"""A record without a number yet."""

_RUNNING = partial(Record, path='', kind='noted', value='running')


class Journal(Activity):
    """The record of a run. Get it with `create` or `open`, and `close` it. For one event loop."""

    def __init__(
        self,
        store: Store,
        info: RunInfo,
        *,
        lease: Lease,
        on_change: OnChange = 'fail',
        seconds: float = leases.SECONDS,
    ) -> None:
        super().__init__()
        self.store = store
        self.info = info
        self.on_change: OnChange = on_change
        self.index = Index()
        self.loaded: Sequence[Record] = ()
        """The records at the time when the run was opened."""

        self.waiting: dict[str, Json] = {}
        """Questions that this process has asked, by path."""

        self.last_owner: OwnerState | None = None
        """The state of the process that executed the run before and did not release it; None if there is none."""

        self.ended = ''
        """How the run ends; see `RunInfo`."""

        self.cost = 0.0
        """US dollars of the replies that were replayed or received so far."""

        self._counted = time.time()
        """Until when `RunInfo.seconds` counts."""

        self._lease = lease
        self._seq = 0
        self._is_uncertain = False
        self._seconds = seconds
        self._pending: list[Draft] = []
        """Records to write before the next new one. Until then, opening a run does not change it."""

        self.loop = asyncio.get_running_loop()
        """The event loop of the run; records are written only there."""

        self._lock = asyncio.Lock()
        self._closed_by: JournalError | None = None
        self._closed = False
        self._renewal = self._start_renewal()

    @property
    def run(self) -> str:
        """The id of the run."""
        return self.info.run

    # Opening and closing ----------------------------------------------------------------------------------------------

    @classmethod
    async def create(
        cls,
        store: Store,
        info: RunInfo,
        opened: Json = None,
        *,
        path: str = '',
        attached: Mapping[str, bytes] | None = None,
    ) -> Self:
        """Create a run with its `opened` record, in one write: if this process dies next, the run can be resumed.

        Args:
            store: the store of the run.
            info: the info of the run.
            opened: the value of the record: the input of the run. None: without a record.
            path: the path of the record.
            attached: blobs to attach to the record, by name.

        Raises `RunBusy` if the run exists.
        """
        info, records = await create_run(store, replace(info, status='running'), opened, path=path, attached=attached)
        return await cls.begin(store, info, records)

    @classmethod
    async def begin(cls, store: Store, info: RunInfo, records: Sequence[Record]) -> Self:
        """Open a run that this process has just created, without reading it. Raises `RunBusy` if another has begun it.

        `info` and `records` are what `create_run` returned.
        """
        journal = await cls._claim(store, info, Lease(epoch=0), 'fail')
        for record in records:
            journal.index.add(record)
        journal._seq = len(records)
        if info.status != 'running':
            journal._pending.append(_RUNNING)
        return journal

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
        """Open a run to resume it. Raises `RunNotFound`, also for another user's run, `RunBusy`, `CorruptRecord`."""
        info = await info_of(store, run, user)
        journal = await cls._claim(store, info, await store.lease(info.run), on_change, seconds)
        try:
            await journal._load()
        except BaseException:
            await journal.close()
            raise
        return journal

    @classmethod
    async def _claim(
        cls, store: Store, info: RunInfo, held: Lease, on_change: OnChange, seconds: float = leases.SECONDS
    ) -> Self:
        lease = await leases.claim_run(store, info.run, owner=owners.new_owner(), seconds=seconds, held=held)
        journal = cls(store, info, lease=lease, on_change=on_change, seconds=seconds)
        journal.last_owner = owner_state(held.owner) if held.until else None
        return journal

    async def _load(self) -> None:
        self.info = await self.store.info(self.run)  # again: it may have changed before the claim
        records = await self.store.load(self.run)
        self.index, self.loaded = Index(records), records
        self._seq = len(records)
        if self.index.has_branches:
            self.start_replay()
        failures = await self._failures(records) if self.info.status == 'failed' else []
        if failures:
            voided = partial(Record, path='', kind='voided', value=[*failures])
            self.index.add(voided(seq=0))
            self._pending.append(voided)
        if self.info.status != 'running':
            self._pending.append(_RUNNING)

    async def _failures(self, records: Sequence[Record]) -> list[str]:
        """The steps that made the run fail, and those that failed after them. Caught failures do not count."""
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

    def _start_renewal(self) -> Renewal:
        return Renewal(self.store, self.run, self._lease, seconds=self._seconds, lost=self._lose)

    def _lose(self, reason: JournalError) -> None:
        self._closed_by = reason

    async def set_status(self, status: Status, *, error: str = '') -> None:
        """Record a new status of the run."""
        await self.write('noted', '', value=status, status=status, error=error)

    async def end(
        self,
        status: Status,
        *,
        value: Json = None,
        failed: Sequence[str] = (),
        error: str = '',
        result: tuple[str, Json] | None = None,
    ) -> None:
        """Record that the run has stopped.

        Args:
            status: the new status of the run.
            value: how it ended.
            failed: paths of the steps to retry when it is resumed.
            error: why it failed.
            result: path and value of a `done` record to write together with it.
        """
        done, blobs = ([], {}) if result is None else _draft('done', *result)
        ended, more = _draft('ended', '', {'status': status, 'value': value, 'failed': list(failed)})
        await self._write([*done, *ended], '' if result is None else result[0], status, error, blobs | more)

    async def close(self) -> None:
        """Release the run. Steps that end later are not recorded."""
        if self._closed:
            return
        await self._renewal.stop()
        if self._closed_by is None:
            self._closed_by = JournalError(f'the journal of {self.run} is closed; open it again to resume the run')
        async with self._lock:  # wait for an append in progress
            self._closed = True
            self._scopes.clear()  # its tasks refer to the journal by their contexts
            await leases.release_run(self.store, self.run, self._lease)

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
        """Append a record. It is stored when this returns."""
        drafts, blobs = _draft(kind, path, value, key, attached)
        return (await self._write(drafts, path, status, error, blobs))[-1]

    async def start_writing(self) -> None:
        """Write the pending records, because replay is over and a new step starts."""
        if self._pending:
            await self._write([], '', None, '', {})

    async def _write(
        self, drafts: list[Draft], path: str, status: Status | None, error: str, blobs: Mapping[str, bytes]
    ) -> list[Record]:
        """Number and append records, after the pending ones."""
        async with self._lock:
            if self._is_uncertain:
                await self._retry(self._reload)
            if self._pending or self._unopened:
                drafts = [*self._pending, *self._scope_records(path), *drafts]
                status = status or ('running' if self._pending else None)
            now = time.time_ns() // 1000 / 1_000_000
            records = [draft(seq=self._seq + n, at=now) for n, draft in enumerate(drafts, 1)]
            info = None if status is None else self._changed_info(status, error, now)
            if records:
                append = partial(self.store.append, self.run, records, epoch=self._lease.epoch, info=info, blobs=blobs)
                self._is_uncertain = True
                await self._retry(append)
                self._is_uncertain = False
                self._seq += len(records)
                self._pending = []
                if info is not None:
                    self.info, self._counted = info, now
        for record in records:
            self.index.add(record)
        return records

    def _changed_info(self, status: Status, error: str, now: float) -> RunInfo:
        return replace(
            self.info,
            status=status,
            error=error,
            ended='' if status in {'queued', 'running'} else self.ended,
            cost=max(self.info.cost, self.cost),  # a step that was done before is not replayed inside
            seconds=round(self.info.seconds + max(now - self._counted, 0.0), 6),
            updated=now,
        )

    def _scope_records(self, path: str) -> list[Draft]:
        """`opened` records for the scopes around a path that have none yet."""
        found: list[Draft] = []
        scope = parent_of(path) if self._unopened else ''
        while scope:
            unopened, entry = self._unopened.get(scope), self.index.find(scope)
            if unopened and (entry is None or entry.opened is None):
                key, value = unopened
                found.insert(0, partial(Record, path=scope, kind='opened', key=key, value=value))
            scope = parent_of(scope)
        return found

    async def _retry(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do the work; retry while the store is unavailable."""
        deadline, pause = time.monotonic() + RETRY_SECONDS, 0.05
        while True:
            if self._closed_by is not None:
                raise self._closed_by
            try:
                return await work()
            except LeaseLost as error:
                self._closed_by = error
                raise
            except StoreUnavailable as error:
                if not error.passing or time.monotonic() + pause > deadline:
                    raise
                logger.warning('%s; retrying', error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, 2.0)

    async def _reload(self) -> None:
        """Load new records after an append whose outcome is unknown."""
        records = await self.store.load(self.run, after=self._seq)
        if records:
            self.info = await self.store.info(self.run)
            self._pending = []
        for record in records:
            self.index.add(record)
            self._seq = record.seq
        self._is_uncertain = False

    async def value_of(self, record: Record) -> Json:
        """The value of a record, read from its blob if it has one."""
        return await value_of(self.store, self.run, record)

    # Changed code -----------------------------------------------------------------------------------------------------

    async def diverge(self, scope: str, left: Sequence[str], what: str) -> None:
        """The recorded steps `left` do not match the code. Raises `RunChanged`, or drops them here or in a fork."""
        if self.on_change == 'fail':
            msg = (
                f'the code no longer matches the record of {self.run}: {what}. Resume it with '
                "on_change='continue' to drop what does not match and run on from there, with 'fork' to do so in a "
                'new run, or with the code that wrote the record'
            )
            self._closed_by = RunChanged(msg)  # so that code which catches it cannot write more
            raise self._closed_by
        if self.on_change == 'fork':
            await self._fork()
        logger.warning('%s: %s; continuing from here', self.run, what)
        await self.write('voided', scope, value=[f'{path}/' for path in left])

    async def _fork(self) -> None:
        """Continue in a copy of the run."""
        async with self._lock:
            if self.on_change != 'fork':  # another branch has already forked it
                return
            if self._is_uncertain:
                await self._retry(self._reload)
            copy = await copy_run(self.store, self.info, upto=self._seq)
            lease = await leases.claim_run(self.store, copy.run, owner=owners.new_owner(), seconds=self._seconds)
            await self._renewal.stop()
            await leases.release_run(self.store, self.run, self._lease)
            self.info, self._lease, self.on_change = copy, lease, 'continue'
            self._renewal = self._start_renewal()
            if _RUNNING not in self._pending:
                self._pending.append(_RUNNING)

    async def rewind(self, scope: str, failed: Sequence[str]) -> None:
        """Start a scope again: its completed steps are replayed, its failed steps are retried."""
        inside = [path for path in failed if path.startswith(f'{scope}/')]
        if inside:
            await self.write('voided', scope, value=[*inside])
        self.reset_scope(scope)
        self.index.rewind(scope)


def _draft(
    kind: Kind, path: str, value: Json, key: str = '', attached: Mapping[str, bytes] | None = None
) -> tuple[list[Draft], dict[str, bytes]]:
    """A record without a number, and its blobs."""
    digests = {name: digest_of(data) for name, data in attached.items()} if attached else {}
    blobs = {digests[name]: data for name, data in attached.items()} if attached else {}
    blob = ''
    if kind != 'voided':  # needed by readers that do not load blobs
        value, blob, more = as_blob(value)
        blobs |= more
    return [partial(new_record, path, kind, key, value, blob, digests)], blobs
