"""A file of weights during its download: hashed as it is written, and limited to its expected size."""

import hashlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO

Progress = Callable[[int, int], None]
"""Called with the downloaded and the total bytes, on a thread."""

CHUNK = 1 << 20


class SourceFailed(Exception):
    """A source failed; another one may succeed."""

    def __init__(self, reason: str, *, network: bool = False) -> None:
        super().__init__(reason)
        self.network = network
        """Whether the source could not be reached."""


class DiskFailed(Exception):
    """The file cannot be written; no other source can help."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


class Cancelled(Exception):
    """The installation was cancelled. The partial file stays, for the next attempt."""


class PartialFile:
    """An append-only file with a running hash. Use as a context manager."""

    def __init__(self, path: Path, total: int, *, on_progress: Progress | None, stop: threading.Event) -> None:
        self._path = path
        self.total = total
        self.stop = stop
        self._on_progress = on_progress
        self._reported = -1
        self._hash = hashlib.sha256()
        self._file: IO[bytes] = path.open('a+b')
        self.offset = 0
        """Number of bytes written and hashed."""

    def __enter__(self) -> 'PartialFile':
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def on_disk(self) -> int:
        """Size of the file, including what an earlier attempt has left."""
        return self._path.stat().st_size

    @property
    def sha256(self) -> str:
        """Hash of the bytes written so far."""
        return self._hash.hexdigest()

    def resume_from(self, offset: int) -> None:
        """Truncate the file to `offset` bytes and hash them."""
        if offset == self.offset == self.on_disk:
            return
        self._file.truncate(offset)
        self._file.seek(0)
        self._hash = hashlib.sha256()
        self.offset = 0
        while self.offset < offset:
            chunk = self._file.read(min(CHUNK, offset - self.offset))
            if not chunk:
                break
            self._hash.update(chunk)
            self.offset += len(chunk)
            self.report_progress()
        self._file.seek(0, 2)

    def write(self, chunk: bytes) -> None:
        """Append a chunk. Raises `SourceFailed` if the file becomes too long."""
        if self.offset + len(chunk) > self.total:
            msg = f'the file is longer than the expected {self.total:,} bytes'
            raise SourceFailed(msg)
        try:
            self._file.write(chunk)
            self._file.flush()  # survives a killed process
        except OSError as error:
            raise DiskFailed(error) from error
        self._hash.update(chunk)
        self.offset += len(chunk)
        self.report_progress()

    def report_progress(self, pending: int = 0) -> None:
        """Report progress; `pending` bytes are downloaded but not yet written. The reported number never decreases."""
        if self.stop.is_set():
            raise Cancelled
        done = min(self.offset + pending, self.total)
        if self._on_progress is not None and done > self._reported:
            self._reported = done
            self._on_progress(done, self.total)
