"""Reads files of folders that a stranger may have filled: a pipe there must not block, nor a giant fill the memory."""

import errno
import os
import stat
from pathlib import Path

MAX_BYTES = 64 << 20
"""Maximum size of a file, by default."""


def read_regular(path: str | os.PathLike[str], *, limit: int = MAX_BYTES) -> bytes:
    """The bytes of a regular file. Raises `OSError`, also if it is something else or larger than the limit."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, 'O_NONBLOCK', 0) | getattr(os, 'O_CLOEXEC', 0))
    with os.fdopen(descriptor, 'rb') as file:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(errno.EINVAL, 'it is not a regular file', str(Path(path)))
        if info.st_size > limit:
            raise OSError(errno.EFBIG, f'it has {info.st_size:,} bytes, more than {limit:,}', str(Path(path)))
        return file.read(limit)


def read_regular_text(path: str | os.PathLike[str], *, encoding: str = 'utf-8') -> str:
    """The text of a regular file, with `\\n` at the end of each line. Raises `OSError` and `UnicodeDecodeError`."""
    return read_regular(path).decode(encoding).replace('\r\n', '\n').replace('\r', '\n')
