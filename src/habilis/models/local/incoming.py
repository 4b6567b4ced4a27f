"""A file of weights while it comes in: hashed as it is written, and never longer than it should be."""

import hashlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO

Progress = Callable[[int, int], None]
"""Told how many bytes are in, and how many there will be. Called on a thread."""

CHUNK = 1 << 20


class SourceFailed(Exception):
    """One source cannot give the weights; another may."""

    def __init__(self, reason: str, *, network: bool = False) -> None:
        super().__init__(reason)
        self.network = network
        """Whether it could not be reached at all."""


class DiskFailed(Exception):
    """The file cannot be written, whatever the source."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


class Stopped(Exception):
    """Somebody has asked for an end. What is in stays, for the next time."""


class Incoming:
    """Appends to a file. Use as a context manager."""

    def __init__(self, path: Path, total: int, *, on_progress: Progress | None, stop: threading.Event) -> None:
        self._path = path
        self.total = total
        self.stop = stop
        self._on_progress = on_progress
        self._shown = -1
        self._hash = hashlib.sha256()
        self._file: IO[bytes] = path.open('a+b')
        self.offset = 0
        """How much is in and hashed."""

    def __enter__(self) -> 'Incoming':
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def on_disk(self) -> int:
        """How much an earlier try has left."""
        return self._path.stat().st_size

    @property
    def sha256(self) -> str:
        """Of what is in."""
        return self._hash.hexdigest()

    def go_on_from(self, offset: int) -> None:
        """Keep that many bytes of what is there, and forget the rest."""
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
            self.show()
        self._file.seek(0, 2)

    def write(self, chunk: bytes) -> None:
        """Add to it. Raises `SourceFailed` if it becomes too long."""
        if self.offset + len(chunk) > self.total:
            msg = f'it is longer than the {self.total:,} bytes it should have'
            raise SourceFailed(msg)
        try:
            self._file.write(chunk)
            self._file.flush()  # a killed process loses none of it
        except OSError as error:
            raise DiskFailed(error) from error
        self._hash.update(chunk)
        self.offset += len(chunk)
        self.show()

    def show(self, coming: int = 0) -> None:
        """Tell how far it is; `coming` is what has arrived but is not yet in. The number never goes down."""
        if self.stop.is_set():
            raise Stopped
        done = min(self.offset + coming, self.total)
        if self._on_progress is not None and done > self._shown:
            self._shown = done
            self._on_progress(done, self.total)
