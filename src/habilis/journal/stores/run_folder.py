"""`RunFolder`: the files of one run of a `FileStore`. Callers must hold the lock of the run.

    info.json      the info of the run; replaced atomically
    records.jsonl  one line per record; append-only
    blobs/DIGEST   values that are too long for a line
    lease.json     the lease; replaced atomically
    pending.json   exists during an append of several lines or of a new info
    lock           the file to lock for reading and writing; it has the size of the records

A process that dies leaves at most an incomplete last line, which counts as not written, and a `pending.json`, which
counts as written: the next process completes that append. Records that are shorter than the size in `lock` were cut off
by something else: a power cut, or an incomplete copy.
"""

import contextlib
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from habilis.core.codec import CodecError, Json, dump, parse
from habilis.core.errors import CorruptRecord
from habilis.core.narrowing import expect, json_object, list_of, number, optional
from habilis.journal.contract import Lease, Record, RunInfo
from habilis.journal.encoding import corrupt_record, decode_info, decode_records, digest_of, encode_info
from habilis.journal.errors import lease_lost

INFO, RECORDS, BLOBS, LEASE, PENDING, LOCK = (
    'info.json',
    'records.jsonl',
    'blobs',
    'lease.json',
    'pending.json',
    'lock',
)
_SAFE = frozenset(b'abcdefghijklmnopqrstuvwxyz0123456789-_')
_MAX_NAME_LENGTH = 150
_SIZE_LENGTH = 20  # fixed, so that a larger size replaces a smaller one in one write


def safe_name(name: str) -> str:
    """A unique file name for any text, also on file systems that ignore case."""
    data = name.encode('utf-8', 'surrogatepass')
    quoted = ''.join(chr(byte) if byte in _SAFE else f'%{byte:02x}' for byte in data)
    if len(quoted) > _MAX_NAME_LENGTH:
        return f'%-{digest_of(data)}'
    return quoted or '%'


@dataclass(frozen=True, kw_only=True, slots=True)
class Extent:
    """The number and size of the records of a run."""

    count: int
    size: int
    """Bytes up to the end of the last complete line."""

    mark: tuple[int, int, int]
    """Inode, size and modification time of the file, to detect changes."""


class RunFolder:
    """The files of a run."""

    def __init__(self, path: Path, run: str, *, sync: bool) -> None:
        self.path = path
        self.run = run
        self._sync = sync
        """Whether writes wait for the disk."""

        self._text = f'{path}/'
        self.lock = -1
        """The open file `lock`, once it is locked."""

    # Files ------------------------------------------------------------------------------------------------------------

    def make(self, info: RunInfo, lines: Sequence[bytes], blobs: Mapping[str, bytes]) -> None:
        """Create the files of a run."""
        self.path.mkdir(mode=0o700)
        if blobs:
            self._add_blobs(blobs)
        self.write(INFO, encode_info(info).encode())
        records = b''.join([line + b'\n' for line in lines])
        self.write(RECORDS, records)
        self.write(LOCK, _size_line(len(records)))

    def write(self, name: str, data: bytes) -> None:
        """Replace a file atomically."""
        path = self._text + name
        new = f'{path}.new'
        file = os.open(new, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            try:
                _write_all(file, data)
                if self._sync:
                    os.fsync(file)
            finally:
                os.close(file)
            os.replace(new, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(new)
            raise
        if self._sync:
            sync_path(os.path.dirname(path))

    def read(self, name: str) -> bytes | None:
        """The content of a file, or None if it does not exist."""
        try:
            file = os.open(self._text + name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            return _read_all(file)
        finally:
            os.close(file)

    def sync(self) -> None:
        """Flush all files to the disk that were written without waiting for it, and their names."""
        for folder, _, names in os.walk(self.path):
            for name in names:
                sync_path(f'{folder}/{name}')
            sync_path(folder)

    # Info, lease and blobs --------------------------------------------------------------------------------------------

    def info(self) -> RunInfo:
        """The info of the run."""
        data = self.read(INFO)
        try:
            return decode_info((data or b'').decode('utf-8', 'replace'))
        except CorruptRecord:
            msg = f'{self._text}{INFO} is {"missing" if data is None else "damaged"}; restore it, or delete the run'
            raise CorruptRecord(msg) from None

    def lease(self) -> tuple[Lease, float]:
        """The lease, and when it was claimed."""
        data = self.read(LEASE)
        if data is None:
            return Lease(epoch=0), 0.0
        try:
            fields = json_object(parse(data.decode()))
            epoch, owner, until, claimed = (fields[name] for name in ('epoch', 'owner', 'until', 'claimed'))
            return Lease(epoch=expect(epoch, int), owner=str(owner), until=number(until)), number(claimed)
        except (CodecError, KeyError, TypeError, ValueError):
            msg = f'{self._text}{LEASE} is damaged; remove it if no process is executing {self.run}'
            raise CorruptRecord(msg) from None

    def set_lease(self, lease: Lease, claimed: float) -> None:
        """Write the lease."""
        fields: Json = {'epoch': lease.epoch, 'owner': lease.owner, 'until': lease.until, 'claimed': claimed}
        self.write(LEASE, dump(fields).encode())

    def sweep(self) -> None:
        """Remove incomplete files of a process that died."""
        for folder in (self._text, f'{self._text}{BLOBS}/'):
            with contextlib.suppress(FileNotFoundError):  # no blobs
                self._remove_in(folder)

    def _remove_in(self, folder: str) -> None:
        for name in os.listdir(folder):
            if name.endswith('.new'):  # the suffix that `write` uses; a digest has no dot
                os.unlink(folder + name)

    def blob(self, digest: str) -> bytes | None:
        """The content of a blob, or None."""
        return self.read(f'{BLOBS}/{safe_name(digest)}')

    def _add_blobs(self, blobs: Mapping[str, bytes]) -> list[str]:
        """Write blobs; returns the names of the new ones."""
        added: list[str] = []
        os.makedirs(self._text + BLOBS, mode=0o700, exist_ok=True)
        try:
            for digest, data in blobs.items():
                name = f'{BLOBS}/{safe_name(digest)}'
                if not self._holds(name, len(data)):
                    self.write(name, data)
                    added.append(name)
        except BaseException:
            self._remove(added)
            raise
        return added

    def _holds(self, name: str, size: int) -> bool:
        try:
            return os.stat(self._text + name).st_size == size
        except FileNotFoundError:
            return False

    def _remove(self, names: Sequence[str]) -> None:
        for name in names:
            with contextlib.suppress(OSError):
                os.unlink(self._text + name)

    # Records ----------------------------------------------------------------------------------------------------------

    def load(self, after: int) -> list[Record]:
        """The records with a number above `after`. An incomplete last line counts as not written."""
        lines = self._lines()
        records = decode_records(lines[after:], run=self.run, after=after)
        size = sum(map(len, lines)) + len(lines)
        if size < (written := self._written_size()):
            raise self._cut(len(lines) + 1, size, written, records)
        return records

    def _lines(self) -> list[bytes]:
        data = self.read(RECORDS)
        if data is None:
            raise self._missing()
        return data.split(b'\n')[:-1]

    def _written_size(self) -> int:
        """The size of all records that were written, from `lock`; 0 if an older version wrote them."""
        text = os.pread(self.lock, _SIZE_LENGTH, 0)
        return int(text) if text.strip().isdigit() else 0

    def _set_written_size(self, size: int) -> None:
        os.pwrite(self.lock, _size_line(size), 0)

    def _cut(self, seq: int, size: int, written: int, before: Sequence[Record] = ()) -> CorruptRecord:
        why = f'{RECORDS} was cut off after {size:,} of {written:,} bytes, as by a power cut or an incomplete copy'
        error = corrupt_record(self.run, seq, why)
        error.before = before
        return error

    def _missing(self) -> CorruptRecord:
        return CorruptRecord(f'{self._text}{RECORDS} is missing; restore it, or delete the run')

    def append(
        self,
        first: int,
        lines: Sequence[bytes],
        *,
        info: RunInfo | None,
        blobs: Mapping[str, bytes],
        known: Extent | None,
    ) -> Extent:
        """Append the lines of records from number `first` on, unless they exist; with info and blobs, all or none.

        `known` is the extent that the last append has returned, to avoid reading the file.
        """
        try:
            file = os.open(self._text + RECORDS, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        except FileNotFoundError:
            raise self._missing() from None
        try:
            extent = _extent(file, known)
            if extent is not known and extent.size < (written := self._written_size()):
                raise self._cut(extent.count + 1, extent.size, written)
            new = self._new(first, lines, extent)
            added = self._add_blobs(blobs) if blobs else []
            try:
                if len(new) > 1 or info is not None:
                    return self._commit(file, extent, new, None if info is None else encode_info(info))
                return self._extend(file, extent, new)
            except BaseException:
                self._remove(added)
                raise
        finally:
            os.close(file)

    def _new(self, first: int, lines: Sequence[bytes], extent: Extent) -> Sequence[bytes]:
        """The lines that do not exist yet. Raises `LeaseLost` if there is a gap, or different lines exist."""
        if first == extent.count + 1 or not lines:
            return lines
        if not 1 <= first <= extent.count:
            raise lease_lost(self.run)
        existing = self._lines()[first - 1 : first - 1 + len(lines)]
        if list(lines[: len(existing)]) != existing:
            raise lease_lost(self.run)
        return lines[len(existing) :]

    def _extend(self, file: int, extent: Extent, lines: Sequence[bytes]) -> Extent:
        data = b''.join([line + b'\n' for line in lines])
        if not data:
            return extent
        if extent.mark[1] != extent.size:  # a process died in the middle of a line
            os.ftruncate(file, extent.size)
        try:
            _write_all(file, data)
            if self._sync:
                os.fsync(file)
            self._set_written_size(extent.size + len(data))
        except BaseException:
            self._shorten(file, extent.size)
            raise
        return Extent(count=extent.count + len(lines), size=extent.size + len(data), mark=_mark(file))

    def _shorten(self, file: int, size: int) -> None:
        self._set_written_size(size)  # first, so that a process that dies here has not cut off anything
        os.ftruncate(file, size)

    # Atomic appends ---------------------------------------------------------------------------------------------------

    def _commit(self, file: int, extent: Extent, lines: Sequence[bytes], info: str | None) -> Extent:
        """Write a plan to `pending.json` and execute it. Once the plan is written, the append will be completed."""
        plan: dict[str, Json] = {'base': extent.size, 'lines': [line.decode('ascii') for line in lines], 'info': info}
        text = dump(plan)
        self.write(PENDING, f'{_checksum(text)} {text}'.encode('ascii'))
        try:
            done = self._extend(file, extent, lines)
            if info is not None:
                self.write(INFO, info.encode())
        except BaseException:
            os.unlink(self._text + PENDING)
            self._shorten(file, extent.size)
            raise
        os.unlink(self._text + PENDING)
        return done

    def recover(self) -> None:
        """Complete the append of a process that died."""
        data = self.read(PENDING)
        if data is None or not os.access(self.path, os.W_OK):  # who may only read sees the run without that append
            return
        checksum, _, text = data.decode('ascii', 'replace').partition(' ')
        if checksum == _checksum(text):
            plan = json_object(parse(text))
            lines = [line.encode() for line in list_of(str, plan['lines'])]
            self._redo(expect(plan['base'], int), lines, optional(plan['info'], str))
        os.unlink(self._text + PENDING)  # an incomplete plan was never executed

    def _redo(self, base: int, lines: Sequence[bytes], info: str | None) -> None:
        file = os.open(self._text + RECORDS, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        try:
            extent = _extent(file, None)
            if extent.size < base:  # the plan proves that there were more records: leave it to `load` to say so
                self._set_written_size(max(base, self._written_size()))
                return
            if extent.size > base + sum(len(line) + 1 for line in lines):
                return  # a machine crash has restored an old plan: more was written since
            os.ftruncate(file, base)
            if lines:
                self._extend(file, Extent(count=0, size=base, mark=_mark(file)), lines)
            if info is not None:
                self.write(INFO, info.encode())
        finally:
            os.close(file)


def _extent(file: int, known: Extent | None) -> Extent:
    mark = _mark(file)
    if known is not None and known.mark == mark:
        return known
    data = _read_all(file)
    size = data.rfind(b'\n') + 1
    return Extent(count=data.count(b'\n'), size=size, mark=mark)


def _mark(file: int) -> tuple[int, int, int]:
    stat = os.fstat(file)
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _read_all(file: int) -> bytes:
    parts: list[bytes] = []
    os.lseek(file, 0, os.SEEK_SET)
    while part := os.read(file, 1 << 20):
        parts.append(part)
    return b''.join(parts)


def _write_all(file: int, data: bytes) -> None:
    written = os.write(file, data)
    while written < len(data):  # a nearly full disk accepts a part; the next write raises
        written += os.write(file, data[written:])


def _size_line(size: int) -> bytes:
    return b'%0*d\n' % (_SIZE_LENGTH - 1, size)


def sync_path(path: str) -> None:
    """Flush a file, or a folder, so that renames in it survive a power cut."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _checksum(text: str) -> str:
    return f'{zlib.crc32(text.encode()):08x}'
