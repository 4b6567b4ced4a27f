"""Inspection of runs: list, read, fork, score, import, delete, prune and compare them.

Nothing here replays a run or needs its code, so it also works on runs that are damaged or being executed.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from habilis.core.codec import CodecError, Json
from habilis.core.errors import CorruptRecord, JournalError, RunBusy
from habilis.journal.contract import Record, RunInfo, Store
from habilis.journal.copies import copy_run, import_run
from habilis.journal.index import Index, PathRecords
from habilis.journal.leases.claims import has_live_owner, hold_run
from habilis.journal.lookup import info_of, value_of
from habilis.journal.stores.wrapper import StoreWrapper

State = Literal['queued', 'running', 'interrupted', 'waiting', 'stopped', 'failed', 'done']
"""A `Status`, or `interrupted`: the status is `running`, but there is no live owner."""

FINISHED: frozenset[State] = frozenset({'stopped', 'failed', 'done'})
"""The default states of `prunable`: these runs are neither being executed nor waiting for a person."""

SCORE = 'score'
"""The field of a note with the score of a run."""

IMPORTED = 'imported'
"""The field of a note that marks a run as imported from another journal."""


@dataclass(frozen=True, kw_only=True)
class ListedRun:
    """A run in a list, with its state."""

    info: RunInfo
    state: State


class TolerantStore(StoreWrapper):
    """A store whose `load` returns the records before the first damaged one. Delegates everything else."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.damage: dict[str, CorruptRecord] = {}
        """The damage that was found, by run."""

    async def load(self, run: str, *, after: int = 0) -> list[Record]:
        """See `Store`."""
        try:
            return await super().load(run, after=after)
        except CorruptRecord as error:
            self.damage[run] = error
            return [record for record in error.before if isinstance(record, Record)]


# RunView --------------------------------------------------------------------------------------------------------------


class RunView:
    """One run at the time of reading: its records up to the first damaged one."""

    def __init__(
        self, store: Store, listed: ListedRun, records: Sequence[Record], damage: CorruptRecord | None
    ) -> None:
        self.store = store
        self.info = listed.info
        self.state = listed.state
        self.records = records
        self.damage: list[CorruptRecord] = [] if damage is None else [damage]
        """Damaged records and blobs."""

        self.index = Index(records)
        """The records that count, by path."""

    @property
    def run(self) -> str:
        """The id of the run."""
        return self.info.run

    def steps(self) -> list[tuple[str, PathRecords]]:
        """The paths with records, in the order in which they started."""
        known = [(path, entry) for path, entry in self.index.inside('') if entry.first is not None]
        return sorted(known, key=lambda item: item[1].first or 0)

    async def value(self, record: Record) -> Json:
        """The value of a record. Raises `CorruptRecord`."""
        try:
            return await value_of(self.store, self.run, record)
        except (CodecError, ValueError) as error:
            msg = f'{self.run}: the blob of record {record.seq} is not valid JSON: {error}'
            raise CorruptRecord(msg) from None

    async def value_or_none(self, record: Record) -> Json:
        """The value of a record; None if it is damaged, which is added to `damage`."""
        try:
            return await self.value(record)
        except CorruptRecord as error:
            msg = f'record {record.seq} of {self.run} is damaged: {error}'
            self.damage.append(CorruptRecord(msg))
            return None

    @property
    def ended(self) -> Mapping[str, Json]:
        """How the run ended, as recorded by the agent or flow; empty if it has not ended."""
        later = (record for record in reversed(self.records) if not _is_external(record))
        last = next(later, None)
        value = last.value if last is not None and last.kind == 'ended' else None
        inner = value.get('value') if isinstance(value, dict) else None
        return inner if isinstance(inner, dict) else {}

    @property
    def score(self) -> float | None:
        """The latest score of the run."""
        value = self._noted(SCORE)
        return float(value) if isinstance(value, (int, float)) else None

    @property
    def imported(self) -> bool:
        """Whether the run was imported from another journal, so that its recorded settings must not be trusted."""
        return self._noted(IMPORTED) is not None

    def _noted(self, name: str) -> Json:
        """The latest note of this name about the whole run."""
        notes = (record.value for record in reversed(self.records) if record.kind == 'noted' and not record.path)
        return next((value[name] for value in notes if isinstance(value, dict) and name in value), None)


def _is_external(record: Record) -> bool:
    """Whether a record may have been written while the run was not being executed: an answer or a note."""
    return record.kind == 'answered' or (record.kind == 'noted' and record.value != 'running')


async def read_run(store: Store, run: str, *, user: str | None = None) -> RunView:
    """Read a run. Raises `RunNotFound`, also if the run belongs to another user."""
    listed = ListedRun(info=await info_of(store, run, user), state='done')
    tolerant = TolerantStore(store)
    records = await tolerant.load(run)
    listed = replace(listed, state=await state_of(store, listed.info))
    return RunView(store, listed, records, tolerant.damage.get(run))


async def state_of(store: Store, info: RunInfo) -> State:
    """The state of a run: `interrupted` if its status is `running` without a live owner."""
    if info.status != 'running' or await has_live_owner(store, info.run):
        return info.status
    return 'interrupted'


async def list_runs(
    store: Store, *, user: str | None = None, session: str | None = None, state: State | None = None
) -> list[ListedRun]:
    """Runs with their states, newest first."""
    status = 'running' if state == 'interrupted' else state
    infos = await store.runs(user=user, session=session, status=status)
    listed = [ListedRun(info=info, state=await state_of(store, info)) for info in infos]
    return [each for each in listed if state in {None, each.state}]


# Changing -------------------------------------------------------------------------------------------------------------


async def fork(
    store: Store,
    run: str,
    before: str | int,
    *,
    user: str | None = None,
    session: str | None = None,
    title: str | None = None,
    instead: Record | None = None,
) -> RunInfo:
    """Copy what was recorded before a step to a new run, which can be resumed from there.

    Args:
        store: the store of the run.
        run: the id of the run.
        before: the path of a step, or the number of a record. Records after a damaged one are not available.
        user: the user that the run must belong to; None for any.
        session: the conversation that the new run belongs to; None for that of the run.
        title: of the new run; None for that of the run.
        instead: what the new run has instead of the record with its number.
    """
    reading = await read_run(store, run, user=user)
    info = reading.info if session is None else replace(reading.info, session=session)
    info = info if title is None else replace(info, title=title)
    first = before if isinstance(before, int) else first_record(reading, before)
    last = len(reading.records) + 1
    if not 1 <= first <= last:
        msg = f'{run} has {last - 1} readable records; fork it before a number from 1 to {last}'
        raise JournalError(msg)

    def kept(record: Record) -> bool:
        is_around = isinstance(before, str) and before.startswith(f'{record.path}/')
        is_end = record.kind == 'ended' or (is_around and record.kind in {'done', 'failed'})
        return (record.seq < first and not is_end) or is_import_note(record)

    forked: Json = {'status': 'stopped', 'value': {'ended': 'forked'}}
    return await copy_run(TolerantStore(store), info, keep=kept, note=('ended', forked), instead=instead)


def is_import_note(record: Record) -> bool:
    """Whether a record says that the run was imported from another journal."""
    return record.kind == 'noted' and isinstance(record.value, dict) and IMPORTED in record.value


def first_record(reading: RunView, path: str) -> int:
    """Number of the first record of a step. Raises `JournalError` if there is no such step."""
    found = [entry.first or 0 for known, entry in reading.steps() if known == path or known.startswith(f'{path}/')]
    if not found:
        known = ', '.join([path for path, _ in reading.steps()][-5:]) or 'none'
        msg = f'{reading.run} has no step {path!r}; its last steps: {known}'
        raise JournalError(msg)
    return min(found)


async def score_run(store: Store, run: str, score: float, *, user: str | None = None) -> None:
    """Record the score of a run. Raises `RunBusy` while it is being executed."""
    await info_of(store, run, user)
    async with hold_run(store, run) as lease:
        records = await store.load(run)
        record = Record(seq=len(records) + 1, path='', kind='noted', value={SCORE: score}, at=round(time.time(), 6))
        await store.append(run, [record], epoch=lease.epoch)


async def import_foreign_run(store: Store, text: str, *, run: str | None = None, user: str | None = None) -> RunInfo:
    """Import an exported run (`import_run`), and mark it as imported."""
    return await import_run(store, text, run=run, user=user, note=('noted', {IMPORTED: True}))


async def delete_run(store: Store, run: str, *, user: str | None = None) -> None:
    """Delete a run. Raises `RunBusy` while it is being executed."""
    await info_of(store, run, user)
    if await has_live_owner(store, run):
        msg = f'{run} is being executed; stop it first'
        raise RunBusy(msg)
    await store.delete(run)


async def prunable(
    store: Store, *, seconds: float, user: str | None = None, states: Sequence[State] = (), keep: int = 0
) -> list[ListedRun]:
    """The runs that have not changed for some time, newest first.

    Args:
        store: the store.
        seconds: minimum age of the last change.
        user: only runs of this user; None for all.
        states: only runs in these states (default: `FINISHED`). Runs that are being executed are never included.
        keep: number of newest runs to keep, whatever their age.
    """
    wanted = frozenset(states) or FINISHED
    limit = time.time() - seconds
    listed = (await list_runs(store, user=user))[keep:]
    old = [each for each in listed if each.state in wanted and each.info.updated <= limit]
    return [each for each in old if not await has_live_owner(store, each.info.run)]


# Comparison -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class StepPair:
    """The entries of one path in two runs."""

    path: str
    left: PathRecords | None
    right: PathRecords | None


def align_runs(left: RunView, right: RunView) -> list[StepPair]:
    """Pair the steps of two runs by path, in the order in which they ended in the left run."""
    ours, theirs = _by_end(left), _by_end(right)
    more: dict[str, list[str]] = {}
    after = ''
    for path in theirs:
        if path in ours:
            after = path
        else:
            more.setdefault(after, []).append(path)
    paths = [*more.get('', ()), *(each for path in ours for each in (path, *more.get(path, ())))]
    return [StepPair(path=path, left=ours.get(path), right=theirs.get(path)) for path in paths]


def _by_end(reading: RunView) -> dict[str, PathRecords]:
    """The entries of a run in the order in which they ended; unfinished ones last."""
    last = len(reading.records) + 1
    return dict(sorted(reading.steps(), key=lambda item: item[1].end.seq if item[1].end is not None else last))
