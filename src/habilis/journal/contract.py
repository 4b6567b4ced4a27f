"""The contract of the journal: records, run infos, leases and the protocol `Store`. Read this first.

A *run* is a list of *records* in the order they were written. Each record has a *path* of nested scopes, such as
`report#1/fetch#2`, so that parallel branches do not change each other's paths. On replay, a step with a `done` record
returns the recorded value; the first step without one runs. A *store* keeps runs. One process at a time may write to a
run: it holds a *lease*, whose *epoch* every append checks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from habilis.core.codec import Json

SCHEMA = 1
"""The version of the record format. Every released version must stay readable; see `tests/journal/versions`."""

BLOB_BYTES = 64 * 1024
"""A value whose JSON is longer is stored as a blob."""

Kind = Literal['opened', 'done', 'failed', 'started', 'asked', 'answered', 'voided', 'noted', 'ended']
"""The kind of a record:

- `opened`: a run or a scope has started; the value is its input.
- `done`, `failed`: a step has ended; the value is its result or its error.
- `started`: a step that must not be repeated has started. Stores on a disk write it through to the disk before `append`
  returns, whatever their durability, because the effect of the step follows.
- `asked`, `answered`: a question to a person, and the answer.
- `voided`: the records of the paths in the value (a list) no longer count.
- `noted`: a note for readers; replay ignores it.
- `ended`: the run has stopped; the value says how.
"""

Status = Literal['queued', 'running', 'waiting', 'stopped', 'failed', 'done']
"""`waiting`: for a person. `stopped`: at a limit or by a person. Runs that are `waiting`, `stopped` or `failed` can be
resumed, and so can a run that is `running` without a live owner: it was interrupted."""

Durability = Literal['normal', 'full']
"""`normal`: records survive a crash of the process; a power cut may lose those after the latest `started` record.
`full`: they also survive a power cut; each append waits for the disk."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One immutable entry of a run."""

    seq: int
    """The number of the record in its run, from 1. Assigned by the writer, so that an append can be retried."""

    path: str
    kind: Kind
    key: str = ''
    """A digest of the input. A different one on replay means that the code has changed."""

    value: Json = None
    blob: str = ''
    """The digest of the blob with the JSON of the value, if it is too long for the record."""

    attached: Mapping[str, str] = field(default_factory=dict[str, str])
    """Digests of attached blobs by name, such as snapshots of sandboxes."""

    at: float = 0.0
    """Seconds since 1970."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunInfo:
    """The description of a run, as shown in lists."""

    run: str
    status: Status = 'queued'
    kind: Literal['agent', 'flow'] = 'agent'
    name: str = ''
    """The name of the agent, or `module:name` of the flow."""

    title: str = ''
    """The task, or the arguments of the flow, in one line."""

    user: str = ''
    session: str = ''
    parent: str = ''
    """The id of the run it was forked from."""

    error: str = ''
    ended: str = ''
    """How it ended: the type of the error, or how its last agent ended (`answer`, a limit, …)."""

    cost: float = 0.0
    """US dollars that its agents have cost when it last stopped, as far as prices are known."""

    seconds: float = 0.0
    """How long processes have executed it, until it last stopped."""

    created: float = 0.0
    updated: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class RunCount:
    """Runs of one status that ended in one way, in one interval of time."""

    status: Status
    ended: str
    interval: int
    """The interval of their last change; 0 is the first one, and has all that changed before it."""

    runs: int
    cost: float
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFigures:
    """Many runs in a few figures."""

    counts: tuple[RunCount, ...]
    slowest: tuple[RunInfo, ...]
    """Those that were executed longest, the longest first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lease:
    """The right to write to a run."""

    epoch: int
    """Increases by one with each new owner. 0: the run was never claimed."""

    owner: str = ''
    until: float = 0.0
    """When it expires, on the clock of the store. Its owner can append until another owner claims the run."""


@runtime_checkable
class Store(Protocol):
    """Stores runs. Safe to use from many tasks of one event loop, and from many processes.

    All operations are atomic. They raise `StoreUnavailable` if the store cannot be reached or written, and
    `RunNotFound` for an unknown run.
    """

    async def create(
        self, info: RunInfo, records: Sequence[Record] = (), *, blobs: Mapping[str, bytes] | None = None
    ) -> bool:
        """Create a run at epoch 0, together with its first records (from number 1) and their blobs.

        Returns False, and does nothing, if the run exists.
        """
        ...

    async def claim(self, run: str, *, owner: str, seconds: float, over: int | None = None) -> Lease:
        """Become the writer with a new epoch, or renew the lease with the same epoch if `owner` holds it.

        An owner can also renew an expired lease that no other owner has claimed and that was not released.
        Raises `RunBusy` while another owner's lease is valid. With `over`, the epoch of a lease that was released or
        whose owner is known to be dead: unless that is still the latest lease.
        """
        ...

    async def release(self, run: str, *, epoch: int) -> None:
        """End the lease at once. Does nothing if the epoch is not the latest."""
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
        """Append records, all or none, together with a new `info` of the run and with blobs by their digests.

        Raises `LeaseLost` unless `epoch` is the latest. Appending a record that exists unchanged does nothing, so that
        an append can be retried if its reply was lost. A different record with the same number raises `LeaseLost`.

        A cancelled append is completed or rolled back before the next operation on the same store.
        """
        ...

    async def load(self, run: str, *, after: int = 0) -> list[Record]:
        """The records with a number above `after`, in order. Raises `CorruptRecord`, which names the record."""
        ...

    async def blob(self, run: str, digest: str) -> bytes:
        """A blob of this run. Raises `CorruptRecord` if it is missing, or does not match its digest."""
        ...

    async def info(self, run: str) -> RunInfo:
        """The latest info of a run."""
        ...

    async def lease(self, run: str) -> Lease:
        """The current or last lease of a run. `until` is 0 if it was released."""
        ...

    async def runs(
        self, *, user: str | None = None, session: str | None = None, status: Status | None = None
    ) -> list[RunInfo]:
        """Runs, newest first; optionally only those of one user, one session or one status.

        A run whose info is damaged is skipped, with a warning in the log.
        """
        ...

    async def figures(self, *, user: str | None = None, since: float, interval: float, slowest: int = 10) -> RunFigures:
        """Count runs, optionally only those of one user: all that are queued, running or waiting, and those that ended
        at `since` or later, by intervals of so many seconds from then on. Damaged ones are not counted.
        """
        ...

    async def delete(self, run: str) -> None:
        """Delete a run with its records and blobs."""
        ...

    def for_another_loop(self) -> 'Store':
        """A store of the same runs that another event loop can use at the same time; this one if it can be shared."""
        ...

    async def close(self) -> None:
        """Close connections and files. May be called twice."""
        ...
