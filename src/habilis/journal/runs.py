"""Runs for those who look at them: listed, read as far as they are whole, forked, scored, deleted and pruned.

Nothing here replays a run or needs the code that made it, so it works on runs that are damaged or under way too.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

from habilis.core.codec import CodecError, Json
from habilis.core.errors import CorruptRecord, JournalError, RunBusy
from habilis.journal.access import held, info_of, is_worked_on, value_of
from habilis.journal.contract import Kind, Lease, Record, RunInfo, Status, Store
from habilis.journal.copying import copy_run, import_run
from habilis.journal.index import Entry, Index

State = Literal['queued', 'running', 'interrupted', 'waiting', 'stopped', 'failed', 'done']
"""As a `Status`, and `interrupted`: it says that it is running, and nobody is there who would."""

FINISHED: frozenset[State] = frozenset({'stopped', 'failed', 'done'})
"""What `prunable` takes unless it is told otherwise: nobody works on these, and nobody is asked anything."""

SCORE = 'score'
"""The field of a note that says how good a run was."""

IMPORTED = 'imported'
"""The field of a note that says that a run was made elsewhere, by whomever."""


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A run in a list, with the state that people see."""

    info: RunInfo
    state: State


class Undamaged:
    """A store that gives the records before the first damaged one, where others give none. Everything else as ever."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.damage: dict[str, CorruptRecord] = {}
        """What was found, by run."""

    async def load(self, run: str, *, after: int = 0) -> list[Record]:
        """See `Store`."""
        try:
            return await self._store.load(run, after=after)
        except CorruptRecord as error:
            self.damage[run] = error
            return list(cast('Sequence[Record]', error.before))

    async def create(self, info: RunInfo) -> bool:
        """See `Store`."""
        return await self._store.create(info)

    async def claim(self, run: str, *, owner: str, seconds: float, over: int | None = None) -> Lease:
        """See `Store`."""
        return await self._store.claim(run, owner=owner, seconds=seconds, over=over)

    async def release(self, run: str, *, epoch: int) -> None:
        """See `Store`."""
        await self._store.release(run, epoch=epoch)

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
        await self._store.append(run, records, epoch=epoch, info=info, blobs=blobs)

    async def blob(self, run: str, digest: str) -> bytes:
        """See `Store`."""
        return await self._store.blob(run, digest)

    async def info(self, run: str) -> RunInfo:
        """See `Store`."""
        return await self._store.info(run)

    async def lease(self, run: str) -> Lease:
        """See `Store`."""
        return await self._store.lease(run)

    async def runs(
        self, *, user: str | None = None, session: str | None = None, status: Status | None = None
    ) -> list[RunInfo]:
        """See `Store`."""
        return await self._store.runs(user=user, session=session, status=status)

    async def delete(self, run: str) -> None:
        """See `Store`."""
        await self._store.delete(run)

    async def close(self) -> None:
        """See `Store`."""
        await self._store.close()


# Reading --------------------------------------------------------------------------------------------------------------


class Reading:
    """One run as it is now: what its records say, up to the first that is damaged."""

    def __init__(self, store: Store, listed: Listed, records: Sequence[Record], damage: CorruptRecord | None) -> None:
        self.store = store
        self.info = listed.info
        self.state = listed.state
        self.records = records
        self.damage: list[CorruptRecord] = [] if damage is None else [damage]
        """Records and blobs that are not what was written."""

        self.index = Index(records)
        """What still counts of it."""

    @property
    def run(self) -> str:
        """Its name."""
        return self.info.run

    def steps(self) -> list[tuple[str, Entry]]:
        """The paths that something is known of, in the order in which they began."""
        known = [(path, entry) for path, entry in self.index.inside('') if entry.first is not None]
        return sorted(known, key=lambda item: item[1].first or 0)

    async def value(self, record: Record) -> Json:
        """What a record holds. Raises `CorruptRecord`."""
        try:
            return await value_of(self.store, self.run, record)
        except (CodecError, ValueError) as error:
            msg = f'{self.run}: the blob of record {record.seq} is no JSON: {error}'
            raise CorruptRecord(msg) from None

    async def known_value(self, record: Record) -> Json:
        """The same, or None if it is damaged, which is noted."""
        try:
            return await self.value(record)
        except CorruptRecord as error:
            msg = f'record {record.seq} of {self.run} is damaged: {error}'
            self.damage.append(CorruptRecord(msg))
            return None

    @property
    def ended(self) -> Mapping[str, Json]:
        """How it stopped the last time, as whoever ran it has put it; empty while it goes on."""
        later = (record for record in reversed(self.records) if not _is_beside(record))
        last = next(later, None)
        value = last.value if last is not None and last.kind == 'ended' else None
        inner = value.get('value') if isinstance(value, dict) else None
        return inner if isinstance(inner, dict) else {}

    @property
    def score(self) -> float | None:
        """What somebody has said it is worth, the last time."""
        value = self._noted(SCORE)
        return float(value) if isinstance(value, (int, float)) else None

    @property
    def imported(self) -> bool:
        """Whether it came from another journal, so that nothing it wants of this machine was said by its user."""
        return self._noted(IMPORTED) is not None

    def _noted(self, name: str) -> Json:
        """The last note of that name about the run as a whole."""
        notes = (record.value for record in reversed(self.records) if record.kind == 'noted' and not record.path)
        return next((value[name] for value in notes if isinstance(value, dict) and name in value), None)


def _is_beside(record: Record) -> bool:
    """Whether it may be written while nobody works on the run: an answer, or what somebody notes."""
    return record.kind == 'answered' or (record.kind == 'noted' and record.value != 'running')


async def read_run(store: Store, run: str, *, user: str | None = None) -> Reading:
    """A run as it is now. Raises `RunNotFound`, also for another user's."""
    listed = Listed(info=await info_of(store, run, user), state='done')
    whole = Undamaged(store)
    records = await whole.load(run)
    listed = replace(listed, state=await state_of(store, listed.info))
    return Reading(store, listed, records, whole.damage.get(run))


async def state_of(store: Store, info: RunInfo) -> State:
    """Whether a run that says it is running is."""
    if info.status != 'running' or await is_worked_on(store, info.run):
        return info.status
    return 'interrupted'


async def list_runs(
    store: Store, *, user: str | None = None, session: str | None = None, state: State | None = None
) -> list[Listed]:
    """Runs, the newest first."""
    status = 'running' if state == 'interrupted' else state
    infos = await store.runs(user=user, session=session, status=status)
    listed = [Listed(info=info, state=await state_of(store, info)) for info in infos]
    return [each for each in listed if state in {None, each.state}]


# Changing -------------------------------------------------------------------------------------------------------------


async def fork(store: Store, run: str, before: str | int, *, user: str | None = None) -> RunInfo:
    """A new run with all that was recorded before a step, to be resumed from there.

    Args:
        store: which has the run.
        run: its name.
        before: the path of the step, or the number of a record. Records after a damaged one cannot be had.
        user: whose run it must be.
    """
    reading = await read_run(store, run, user=user)
    cut = before if isinstance(before, int) else _first_of(reading, before)
    last = len(reading.records) + 1
    if not 1 <= cut <= last:
        msg = f'{run} has {last - 1} records that can be read; fork it before one from 1 to {last}'
        raise JournalError(msg)

    def kept(record: Record) -> bool:
        around = isinstance(before, str) and before.startswith(f'{record.path}/')
        over = record.kind == 'ended' or (around and record.kind in {'done', 'failed'})
        return (record.seq < cut and not over) or _says_imported(record)

    copy = await copy_run(Undamaged(store), reading.info, keep=kept)
    await _note(store, copy, {'status': 'stopped', 'value': {'ended': 'forked'}}, kind='ended')
    return copy


def _says_imported(record: Record) -> bool:
    return record.kind == 'noted' and isinstance(record.value, dict) and IMPORTED in record.value


def _first_of(reading: Reading, path: str) -> int:
    found = [entry.first or 0 for known, entry in reading.steps() if known == path or known.startswith(f'{path}/')]
    if not found:
        known = ', '.join([path for path, _ in reading.steps()][-5:]) or 'none'
        msg = f'{reading.run} has no step {path!r}; its last ones: {known}'
        raise JournalError(msg)
    return min(found)


async def score_run(store: Store, run: str, score: float, *, user: str | None = None) -> None:
    """Write down how good a run was. Raises `RunBusy` while somebody works on it."""
    info = await info_of(store, run, user)
    await _note(store, info, {SCORE: score})


async def take_in(store: Store, text: str, *, run: str | None = None, user: str | None = None) -> RunInfo:
    """Have the run of an exported text here (`import_run`), with a note that it came from elsewhere."""
    info = await import_run(store, text, run=run, user=user)
    await _note(store, info, {IMPORTED: True})
    return info


async def _note(store: Store, info: RunInfo, value: Json, kind: Kind = 'noted') -> None:
    async with held(store, info.run) as lease:
        records = await store.load(info.run)
        record = Record(seq=len(records) + 1, path='', kind=kind, value=value, at=round(time.time(), 6))
        await store.append(info.run, [record], epoch=lease.epoch)


async def delete_run(store: Store, run: str, *, user: str | None = None) -> None:
    """Forget a run. Raises `RunBusy` while somebody works on it."""
    await info_of(store, run, user)
    if await is_worked_on(store, run):
        msg = f'{run} is being worked on; stop it first'
        raise RunBusy(msg)
    await store.delete(run)


async def prunable(
    store: Store, *, seconds: float, user: str | None = None, states: Sequence[State] = (), keep: int = 0
) -> list[Listed]:
    """The runs that nothing has happened to for so long, the newest first.

    Args:
        store: which has them.
        seconds: how long.
        user: whose.
        states: only these; by default those that are `FINISHED`. One that is worked on is never among them.
        keep: so many of the newest runs stay, however old they are.
    """
    wanted = frozenset(states) or FINISHED
    limit = time.time() - seconds
    listed = (await list_runs(store, user=user))[keep:]
    old = [each for each in listed if each.state in wanted and each.info.updated <= limit]
    return [each for each in old if not await is_worked_on(store, each.info.run)]


# Side by side ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Pair:
    """What two runs know of one path."""

    path: str
    left: Entry | None
    right: Entry | None


def aligned(left: Reading, right: Reading) -> list[Pair]:
    """The steps of two runs by their paths, as they ended: in the order of the left one, others where they came."""
    ours, theirs = _as_ended(left), _as_ended(right)
    more: dict[str, list[str]] = {}
    after = ''
    for path in theirs:
        if path in ours:
            after = path
        else:
            more.setdefault(after, []).append(path)
    paths = [*more.get('', ()), *(each for path in ours for each in (path, *more.get(path, ())))]
    return [Pair(path=path, left=ours.get(path), right=theirs.get(path)) for path in paths]


def _as_ended(reading: Reading) -> dict[str, Entry]:
    """What is inside a step comes before it: its end follows from theirs."""
    last = len(reading.records) + 1
    return dict(sorted(reading.steps(), key=lambda item: item[1].end.seq if item[1].end is not None else last))
