"""`MemoryStore`: runs in the memory of this process. For tests, and for runs without a journal on disk."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from habilis.journal.contract import Lease, Record, RunFigures, RunInfo, Status
from habilis.journal.encoding import check_blob, decode_records, encode_record, select_runs
from habilis.journal.errors import check_new_run, lease_lost, run_busy, run_not_found
from habilis.journal.figures import count_runs
from habilis.journal.leases.claims import next_lease


@dataclass(kw_only=True)
class _StoredRun:
    info: RunInfo
    lease: Lease = field(default_factory=lambda: Lease(epoch=0))
    claimed: float = 0.0
    lines: list[str] = field(default_factory=list[str])
    """Encoded records, so that changing a returned record does not change the stored one."""

    blobs: dict[str, bytes] = field(default_factory=dict[str, bytes])


class MemoryStore:
    """A `Store` in memory."""

    def __init__(self) -> None:
        self._runs: dict[str, _StoredRun] = {}

    def _find(self, run: str) -> _StoredRun:
        if run not in self._runs:
            raise run_not_found(run)
        return self._runs[run]

    async def create(
        self, info: RunInfo, records: Sequence[Record] = (), *, blobs: Mapping[str, bytes] | None = None
    ) -> bool:
        """See `Store`."""
        check_new_run(info.run, records)
        if info.run in self._runs:
            return False
        lines = [encode_record(record) for record in records]
        self._runs[info.run] = _StoredRun(info=info, lines=lines, blobs=dict(blobs or {}))
        return True

    async def claim(self, run: str, *, owner: str, seconds: float, over: int | None = None) -> Lease:
        """See `Store`."""
        stored = self._find(run)
        now = time.time()
        lease = next_lease(stored.lease, now=now, claimed=stored.claimed, owner=owner, seconds=seconds, over=over)
        if lease is None:
            raise run_busy(run, stored.lease.owner)
        stored.lease, stored.claimed = lease, now
        return lease

    async def release(self, run: str, *, epoch: int) -> None:
        """See `Store`."""
        stored = self._find(run)
        if stored.lease.epoch == epoch:
            stored.lease = Lease(epoch=epoch, owner=stored.lease.owner)

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
        stored = self._find(run)
        if stored.lease.epoch != epoch:
            raise lease_lost(run)
        first = records[0].seq if records else 1
        if not 1 <= first <= len(stored.lines) + 1 or any(one.seq != seq for seq, one in enumerate(records, first)):
            raise lease_lost(run)
        lines = [encode_record(record) for record in records]
        known = stored.lines[first - 1 :]
        if any(line != other for line, other in zip(lines, known, strict=False)):
            raise lease_lost(run)
        stored.lines += lines[len(known) :]
        stored.blobs.update(blobs or {})
        if info is not None:
            stored.info = info

    async def load(self, run: str, *, after: int = 0) -> list[Record]:
        """See `Store`."""
        lines, after = self._find(run).lines, max(after, 0)
        return decode_records(lines[after:], run=run, after=after)

    async def blob(self, run: str, digest: str) -> bytes:
        """See `Store`."""
        return check_blob(self._find(run).blobs.get(digest), digest, run=run)

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
        return select_runs((stored.info for stored in self._runs.values()), user=user, session=session, status=status)

    async def figures(self, *, user: str | None = None, since: float, interval: float, slowest: int = 10) -> RunFigures:
        """See `Store`."""
        return count_runs(await self.runs(user=user), since=since, interval=interval, slowest=slowest)

    async def delete(self, run: str) -> None:
        """See `Store`."""
        self._find(run)
        del self._runs[run]

    def for_another_loop(self) -> 'MemoryStore':
        """See `Store`."""
        return self

    async def close(self) -> None:
        """See `Store`. Does nothing: the runs stay in memory."""
