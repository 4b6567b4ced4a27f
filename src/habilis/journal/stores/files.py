"""`FileStore`: runs in plain files that other tools can read, one folder per run. See `run_folder`."""

import asyncio
import contextlib
import errno
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from habilis.core.errors import CorruptRecord, RunNotFound, StoreUnavailable
from habilis.journal.contract import Durability, Lease, Record, RunFigures, RunInfo, Status
from habilis.journal.encoding import check_blob, encode_record, log_skipped, must_sync, select_runs
from habilis.journal.errors import check_new_run, lease_lost, run_busy, run_not_found, store_unavailable
from habilis.journal.figures import count_runs
from habilis.journal.leases.claims import next_lease
from habilis.journal.stores.run_folder import LOCK, Extent, RunFolder, safe_name, sync_path

LOCK_SECONDS = 10.0
"""How long an operation waits for a lock that another process holds."""

_HIDDEN = '.'  # prefix of folders that are being created or removed; no run folder starts with it
_LEFTOVER = re.compile(r'[.](new|old)-[0-9a-f]{16}')
_MAX_EXTENTS = 1000
_ABANDONED_SECONDS = 3600.0

T = TypeVar('T')


class FileStore:
    """A `Store` in a folder, for many event loops, threads and processes of one machine."""

    def __init__(self, folder: str | os.PathLike[str], *, durability: Durability = 'normal') -> None:
        """The folder is created on first use. For `durability` see `Durability`."""
        self.folder = Path(os.path.abspath(folder))
        self._full = durability == 'full'
        self._extents: dict[str, Extent] = {}
        self._synced: set[str] = set()
        """Runs whose files this process has flushed to the disk."""

        if not find_spec('fcntl'):
            msg = 'FileStore needs file locks, which this platform does not have; use SqliteStore'
            raise StoreUnavailable(msg)

    def __repr__(self) -> str:
        return f'FileStore({str(self.folder)!r})'

    # Locking ----------------------------------------------------------------------------------------------------------

    async def _in(self, run: str, work: Callable[[RunFolder], T], *, sync: bool = False) -> T:
        return await self._at(RunFolder(self.folder / safe_name(run), run, sync=sync or self._full), work)

    async def _at(self, folder: RunFolder, work: Callable[[RunFolder], T]) -> T:
        """Do short work with the folder of a run, while holding its lock."""
        pause, deadline = 0.0005, 0.0
        while True:
            try:
                return self._try(folder, work)
            except BlockingIOError:
                pass
            except OSError as error:
                raise self._unavailable(error) from error
            deadline = deadline or time.monotonic() + LOCK_SECONDS
            if time.monotonic() > deadline:
                why = f'another process has locked {folder.run} for {LOCK_SECONDS:.0f} seconds'
                raise store_unavailable(str(self.folder), why, passing=True)
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, 0.02)

    def _try(self, folder: RunFolder, work: Callable[[RunFolder], T]) -> T:
        """Do the work with the lock. Raises `BlockingIOError` if another process holds it."""
        path = f'{folder.path}/{LOCK}'
        try:
            lock = _open_lock(path)
        except (FileNotFoundError, NotADirectoryError):
            if self.folder.exists() and not self.folder.is_dir():
                raise
            raise run_not_found(folder.run) from None
        try:
            _lock(lock)
            try:
                if not _is_at(lock, path):  # the run was deleted meanwhile
                    raise run_not_found(folder.run)
                folder.lock = lock
                folder.recover()
                return work(folder)
            finally:
                _unlock(lock)  # explicitly, because a forked child may have the file open too
        finally:
            os.close(lock)

    def _unavailable(self, error: OSError) -> StoreUnavailable:
        why = {
            errno.ENOSPC: 'the disk is full; free some space',
            errno.EDQUOT: 'your disk quota is exceeded; free some space',
            errno.EROFS: 'it is read-only',
            errno.EACCES: 'permission denied',
            errno.EPERM: 'permission denied',
            errno.ENOTDIR: 'a part of the path is a file; give a folder',
            errno.EEXIST: 'it is a file; give a folder',
        }.get(error.errno or 0, error.strerror or error)
        return store_unavailable(str(self.folder), why)

    # Runs -------------------------------------------------------------------------------------------------------------

    async def create(
        self, info: RunInfo, records: Sequence[Record] = (), *, blobs: Mapping[str, bytes] | None = None
    ) -> bool:
        """See `Store`."""
        check_new_run(info.run, records)
        lines = [encode_record(record).encode('ascii') for record in records]
        try:
            return self._create(info, lines, blobs or {})
        except OSError as error:
            raise self._unavailable(error) from error

    def _create(self, info: RunInfo, lines: Sequence[bytes], blobs: Mapping[str, bytes]) -> bool:
        final = self.folder / safe_name(info.run)
        if (final / LOCK).exists():
            return False
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = RunFolder(self.folder / f'{_HIDDEN}new-{secrets.token_hex(8)}', info.run, sync=self._full)
        try:
            new.make(info, lines, blobs)
            os.rename(new.path, final)  # atomic: it does not replace a folder that is not empty
        except OSError as error:
            shutil.rmtree(new.path, ignore_errors=True)
            if error.errno in {errno.ENOTEMPTY, errno.EEXIST} and final.is_dir():
                return False
            raise
        if self._full:
            sync_path(str(self.folder))
        return True

    async def info(self, run: str) -> RunInfo:
        """See `Store`."""
        return await self._in(run, RunFolder.info)

    async def runs(
        self, *, user: str | None = None, session: str | None = None, status: Status | None = None
    ) -> list[RunInfo]:
        """See `Store`."""
        infos: list[RunInfo] = []
        for name in self._names():
            try:
                infos.append(await self._at(RunFolder(self.folder / name, name, sync=self._full), RunFolder.info))
            except RunNotFound:  # deleted meanwhile, or not a run
                continue
            except CorruptRecord as error:
                log_skipped(name, error)
        return select_runs(infos, user=user, session=session, status=status)

    def _names(self) -> list[str]:
        try:
            return [name for name in os.listdir(self.folder) if not name.startswith(_HIDDEN)]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise self._unavailable(error) from error

    async def figures(self, *, user: str | None = None, since: float, interval: float, slowest: int = 10) -> RunFigures:
        """See `Store`."""
        return count_runs(await self.runs(user=user), since=since, interval=interval, slowest=slowest)

    async def delete(self, run: str) -> None:
        """See `Store`."""
        await self._in(run, lambda folder: os.rename(folder.path, self.folder / f'{_HIDDEN}old-{secrets.token_hex(8)}'))
        self._extents.pop(run, None)
        self._synced.discard(run)
        self._sweep()

    def _sweep(self) -> None:
        """Remove folders of deleted runs, and old ones of runs whose creation was interrupted."""
        for path in self.folder.iterdir():
            kind = _LEFTOVER.fullmatch(path.name)  # strict: other files here are not ours
            with contextlib.suppress(OSError):
                if kind and (kind[1] == 'old' or path.stat().st_mtime < time.time() - _ABANDONED_SECONDS):
                    shutil.rmtree(path, ignore_errors=True)

    # Leases -----------------------------------------------------------------------------------------------------------

    async def claim(self, run: str, *, owner: str, seconds: float, over: int | None = None) -> Lease:
        """See `Store`."""

        def work(folder: RunFolder) -> Lease:
            held, claimed = folder.lease()
            now = time.time()
            lease = next_lease(held, now=now, claimed=claimed, owner=owner, seconds=seconds, over=over)
            if lease is None:
                raise run_busy(run, held.owner)
            if lease.epoch != held.epoch:
                folder.sweep()
            folder.set_lease(lease, now)
            return lease

        return await self._in(run, work)

    async def release(self, run: str, *, epoch: int) -> None:
        """See `Store`."""

        def work(folder: RunFolder) -> None:
            held, claimed = folder.lease()
            if held.epoch == epoch and held.until:
                folder.set_lease(replace(held, until=0.0), claimed)

        await self._in(run, work)

    async def lease(self, run: str) -> Lease:
        """See `Store`."""
        return await self._in(run, lambda folder: folder.lease()[0])

    # Records ----------------------------------------------------------------------------------------------------------

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
        first = records[0].seq if records else 1
        in_order = all(record.seq == seq for seq, record in enumerate(records, first))
        lines = [encode_record(record).encode('ascii') for record in records]

        def work(folder: RunFolder) -> Extent:
            if folder.lease()[0].epoch != epoch or not in_order:
                raise lease_lost(run)
            extent = folder.append(first, lines, info=info, blobs=blobs or {}, known=self._extents.get(run))
            if sync and not self._full and run not in self._synced:
                folder.sync()
                sync_path(str(self.folder))
                self._synced.add(run)
            return extent

        sync = must_sync(records)
        extent = await self._in(run, work, sync=sync)
        if len(self._extents) >= _MAX_EXTENTS:
            self._extents.clear()
            self._synced.clear()
        self._extents[run] = extent

    async def load(self, run: str, *, after: int = 0) -> list[Record]:
        """See `Store`."""
        return await self._in(run, lambda folder: folder.load(max(after, 0)))

    async def blob(self, run: str, digest: str) -> bytes:
        """See `Store`."""
        return check_blob(await self._in(run, lambda folder: folder.blob(digest)), digest, run=run)

    def for_another_loop(self) -> 'FileStore':
        """See `Store`."""
        return self

    async def close(self) -> None:
        """See `Store`. Does nothing: no file stays open between calls."""


def _open_lock(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        if error.errno not in {errno.EACCES, errno.EPERM, errno.EROFS}:
            raise
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)  # enough to read the run


def _lock(file: int) -> None:
    import fcntl

    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _unlock(file: int) -> None:
    import fcntl

    fcntl.flock(file, fcntl.LOCK_UN)


def _is_at(file: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False
