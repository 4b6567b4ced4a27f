"""Runs in the memory of this process: nothing survives it. For tests, and for those who want no record on disk."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from habilis.journal.contract import Lease, Record, RunInfo, Status
from habilis.journal.leases import granted
from habilis.journal.lines import checked_blob, from_lines, newest_first, to_line
from habilis.journal.refusals import busy, lost, no_name, no_run


@dataclass(kw_only=True)
class _Kept:
    info: RunInfo
    lease: Lease = field(default_factory=lambda: Lease(epoch=0))
    claimed: float = 0.0
    lines: list[str] = field(default_factory=list[str])
    """Text, as in other stores: nobody who has a record in hand can change what was written."""

    blobs: dict[str, bytes] = field(default_factory=dict[str, bytes])


class MemoryStore:
    """A `Store` without a disk."""

    def __init__(self) -> None:
        self._runs: dict[str, _Kept] = {}

    def _find(self, run: str) -> _Kept:
        if run not in self._runs:
            raise no_run(run)
        return self._runs[run]

    async def create(self, info: RunInfo) -> bool:
        """See `Store`."""
        if not info.run:
            raise no_name()
        if info.run in self._runs:
            return False
        self._runs[info.run] = _Kept(info=info)
        return True

    async def claim(self, run: str, *, owner: str, seconds: float, over: int | None = None) -> Lease:
        """See `Store`."""
        kept = self._find(run)
        now = time.time()
        lease = granted(kept.lease, now=now, claimed=kept.claimed, owner=owner, seconds=seconds, over=over)
        if lease is None:
            raise busy(run, kept.lease.owner)
        kept.lease, kept.claimed = lease, now
        return lease

    async def release(self, run: str, *, epoch: int) -> None:
        """See `Store`."""
        kept = self._find(run)
        if kept.lease.epoch == epoch:
            kept.lease = Lease(epoch=epoch, owner=kept.lease.owner)

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
        kept = self._find(run)
        if kept.lease.epoch != epoch:
            raise lost(run)
        first = records[0].seq if records else 1
        if not 1 <= first <= len(kept.lines) + 1 or any(one.seq != seq for seq, one in enumerate(records, first)):
            raise lost(run)
        lines = [to_line(record) for record in records]
        known = kept.lines[first - 1 :]
        if any(line != other for line, other in zip(lines, known, strict=False)):
            raise lost(run)
        kept.lines += lines[len(known) :]
        kept.blobs.update(blobs or {})
        if info is not None:
            kept.info = info

    async def load(self, run: str, *, after: int = 0) -> list[Record]:
        """See `Store`."""
        lines, after = self._find(run).lines, max(after, 0)
        return from_lines(lines[after:], run=run, after=after)

    async def blob(self, run: str, digest: str) -> bytes:
        """See `Store`."""
        return checked_blob(self._find(run).blobs.get(digest), digest, run=run)

    async def info(self, run: str) -> RunInfo:
        """See `Store`."""
        return self._find(run).info

    async def lease(self, run: str) -> Lease:
        """See `Store`."""
        return self._find(run).lease

    async def runs(
        self, *, user: str | None = None, session: str | None = None, status: Status | None = None
    ) -> list[RunInfo]:
        """See `Store`."""
        return newest_first((kept.info for kept in self._runs.values()), user=user, session=session, status=status)

    async def delete(self, run: str) -> None:
        """See `Store`."""
        self._find(run)
        del self._runs[run]

    async def close(self) -> None:
        """Nothing to free: the runs stay as long as the store."""
