"""A lock between processes that create the same entry of the cache."""

import contextlib
import time
from collections.abc import Generator
from pathlib import Path
from typing import IO

from habilis.core.errors import SandboxError
from habilis.sandbox.progress import progress


@contextlib.contextmanager
def file_lock(path: Path) -> Generator[None]:
    """Hold a lock between processes; the system releases it if the process dies."""
    try:
        import fcntl
    except ImportError:  # not on this platform; at worst the work is done twice
        yield
        return
    try:
        file = path.open('w')
    except OSError as error:
        msg = f'cannot write the cache: {error}. Set HABILIS_CACHE to a folder that you own'
        raise SandboxError(msg) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with progress('Waiting for another process that prepares the sandbox', after=2.0):
                _wait_for_lock(file, path)
        yield


def _wait_for_lock(file: IO[str], path: Path) -> None:
    import fcntl

    end = time.monotonic() + 600
    while time.monotonic() < end:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(0.1)
    msg = f'another process has held {path} for ten minutes; remove that file if none is running'
    raise SandboxError(msg)
