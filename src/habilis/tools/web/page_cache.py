"""Responses of web servers on disk, by URL. They are used again if the server says that nothing has changed."""

import contextlib
import hashlib
import json
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from habilis.core.regular_files import read_regular

MAX_BYTES = 200 << 20
"""Maximum size of the folder; the files that were not used for the longest time are deleted."""


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response that can be asked about again."""

    url: str
    etag: str
    modified: str
    type: str
    body: bytes = b''


class PageCache:
    """A folder of responses. What cannot be read or written counts as not there."""

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self._folder = folder
        self._max_bytes = max_bytes

    def get(self, url: str) -> StoredResponse | None:
        """The response for a URL. May block."""
        with contextlib.suppress(OSError, ValueError, TypeError):
            path = self._path(url)
            head, _, body = read_regular(path).partition(b'\n')
            stored = StoredResponse(**json.loads(head), body=body)
            if stored.url == url:
                os.utime(path)
                return stored
        return None

    def put(self, response: StoredResponse) -> None:
        """Keep a response. May block."""
        head = {name: value for name, value in asdict(response).items() if name != 'body'}
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor, name = tempfile.mkstemp(dir=self._folder)
            with os.fdopen(descriptor, 'wb') as file:
                file.write(json.dumps(head).encode() + b'\n' + response.body)
            os.replace(name, self._path(response.url))
            self._trim()

    def _path(self, url: str) -> Path:
        return self._folder / hashlib.sha256(url.encode()).hexdigest()

    def _trim(self) -> None:
        files = sorted(
            ((entry.stat(), entry.path) for entry in os.scandir(self._folder)), key=lambda each: each[0].st_mtime
        )
        size = sum(info.st_size for info, _ in files)
        for info, path in files:
            if size <= self._max_bytes:
                return
            with contextlib.suppress(FileNotFoundError):  # another process has deleted it
                os.unlink(path)
            size -= info.st_size
