"""What the house knows of records. Read this first.

A *run* is a list of *records* in the order they were written. Each belongs to a *path*: nested scopes such as
`report#1/fetch#2`, so that parallel branches do not shift each other's keys. A step whose `done` record is there is
answered from it; the first without one runs. A *store* keeps runs. One process at a time may write to a run: it holds
a *lease*, whose *epoch* every append checks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from habilis.core.codec import Json

SCHEMA = 1
"""Of what is written. Every version that was ever released must load for ever; see `tests/journal/versions`."""

BLOB_BYTES = 64 * 1024
"""A value whose JSON is longer becomes a blob beside its record."""

Kind = Literal['opened', 'done', 'failed', 'started', 'asked', 'answered', 'voided', 'noted', 'ended']
"""What a record says of its path:

- `opened`: a run, or a scope inside it, has begun; the value is what went in.
- `done`, `failed`: a step has ended; the value is what came out, or the error.
- `started`: a step that must not be repeated has begun.
- `asked`, `answered`: a person must decide; has decided.
- `voided`: the records of these paths (the value: a list) no longer count.
- `noted`: for readers; nothing is answered from it.
- `ended`: the run has stopped; the value says how.
"""

Status = Literal['queued', 'running', 'waiting', 'stopped', 'failed', 'done']
"""`waiting` for a person, `stopped` at a limit or by a person; both, and `failed`, can be resumed. A run that is
`running` and has no living owner was interrupted, and can be resumed too."""

Durability = Literal['normal', 'full']
"""`normal`: what was written survives the death of the process. `full`: also that of the machine, at the price of
waiting for the disk at each append."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One thing that happened, for good."""

    seq: int
    """Counts the records of a run, from 1. Given by the one who writes, so that an append can be tried again."""

    path: str
    kind: Kind
    key: str = ''
    """A digest of what went in; another one on replay means that the code has changed."""

    value: Json = None
    blob: str = ''
    """Where the value is too long: the digest of the blob that holds its JSON."""

    attached: Mapping[str, str] = field(default_factory=dict[str, str])
    """Digests of more blobs by name: snapshots of sandboxes."""

    at: float = 0.0
    """Seconds since 1970."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunInfo:
    """A run in a list of runs."""

    run: str
    status: Status = 'queued'
    kind: Literal['agent', 'flow'] = 'agent'
    name: str = ''
    """Of the agent, or of the flow as `module:name`."""

    title: str = ''
    """The task, or what the flow was given, in a line."""

    user: str = ''
    session: str = ''
    parent: str = ''
    """The run it was forked from."""

    error: str = ''
    created: float = 0.0
    updated: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Lease:
    """Who may write to a run."""

    epoch: int
    """Grows by one with each new owner. 0: nobody has claimed the run yet."""

    owner: str = ''
    until: float = 0.0
    """On the clock of the store. A lease that has ended may be taken; until then `append` goes on working."""


@runtime_checkable
class Store(Protocol):
    """Where runs live. Safe to use from many tasks of one event loop, and from many processes.

    All operations raise `StoreUnavailable` if the store cannot be reached or written, and `RunNotFound` for a run that
    it does not have. What an operation has not finished, it has not begun.
    """

    async def create(self, info: RunInfo) -> bool:
        """Have a new run, without records, at epoch 0. False, and nothing done, if there is one of that name."""
        ...

    async def claim(self, run: str, *, owner: str, seconds: float, over: int | None = None) -> Lease:
        """Become the writer, with a new epoch, or keep being it with the old one if `owner` holds the lease.

        An owner who comes late keeps it, too, if nobody else came in the meantime and it was not released.
        Raises `RunBusy` while somebody else's lease lasts, unless its epoch is `over`: known to be dead.
        """
        ...

    async def release(self, run: str, *, epoch: int) -> None:
        """End the lease, so that nobody has to wait for its time. Does nothing if the epoch is no longer the newest."""
        ...

    async def append(
        self,
        run: str,
        records: Sequence[Record],
        *,
        epoch: int,
        info: RunInfo | None = None,
        blobs: Mapping[str, bytes] | None = None,
    ) -> None:
        """Write records, all or none; with them the new `info` of the run, and blobs by their digests.

        Raises `LeaseLost` unless `epoch` is the newest one. Records that are there already, unchanged, are no error:
        an append whose answer got lost may be made again. A different record of the same number is `LeaseLost` too.

        An append that is cancelled is finished or undone before the next operation on the same store.
        """
        ...

    async def load(self, run: str, *, after: int = 0) -> list[Record]:
        """The records with a higher number than `after`, in order. Raises `CorruptRecord`, naming it."""
        ...

    async def blob(self, run: str, digest: str) -> bytes:
        """A blob of this run. Raises `CorruptRecord` if it is missing or not what its digest says."""
        ...

    async def info(self, run: str) -> RunInfo:
        """The newest info of a run."""
        ...

    async def lease(self, run: str) -> Lease:
        """Who holds, or last held, the run. `until` is 0 if it was released."""
        ...

    async def runs(
        self, *, user: str | None = None, session: str | None = None, status: Status | None = None
    ) -> list[RunInfo]:
        """Runs, the newest first; those of one user, of one session, or in one state.

        One whose description is damaged is left out, and a warning in the log tells of it.
        """
        ...

    async def delete(self, run: str) -> None:
        """Forget a run with everything that belongs to it."""
        ...

    async def close(self) -> None:
        """Free connections and files. May be called twice."""
        ...
