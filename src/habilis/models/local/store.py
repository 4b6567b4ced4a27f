"""Files of installed weights on this machine."""

import contextlib
import os
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import IO

from habilis.core.errors import DownloadError, ModelNotFound, NoModel
from habilis.core.folders import cache_folder
from habilis.models.local import catalogue
from habilis.models.local.catalogue import Artifact

MAGIC = b'GGUF'


def folder() -> Path:
    """Folder of the weights. May not exist yet."""
    return cache_folder() / 'models'


def weights_path(entry: Artifact) -> Path:
    """Path of the weights of a model."""
    return entry.folder / entry.file


def partial_path(entry: Artifact) -> Path:
    """Path of the weights during the download."""
    return entry.folder / f'{entry.file}.partial'


def progress_path(entry: Artifact) -> Path:
    """Path of the record of complete parts, for resuming an installation."""
    return entry.folder / f'{entry.file}.partial.json'


def installed(name: str = '') -> Path | None:
    """The weights of a model of the catalogue; None if they are missing or incomplete."""
    return complete(catalogue.entry(name))


def complete(entry: Artifact) -> Path | None:
    """The installed file; None if it is missing or incomplete."""
    path = weights_path(entry)
    try:
        return path if path.stat().st_size == entry.bytes else None
    except OSError:
        return None


def find(name: str) -> Path:
    """The weights of `local:name`: a model of the catalogue, or the path of a `.gguf` file. Raises `NoModel`."""
    if looks_like_path(name):
        return _user_file(Path(name).expanduser())
    if path := installed(name):
        return path
    entry = catalogue.entry(name)
    msg = f'the model {entry.name} is not installed; run `habilis models install {entry.name}` ({entry.size})'
    raise NoModel(msg)


def looks_like_path(name: str) -> bool:
    """Whether a name is a path and not a model of the catalogue."""
    return name.endswith('.gguf') or '/' in name or os.sep in name


def _user_file(path: Path) -> Path:
    try:
        with path.open('rb') as file:
            magic = file.read(len(MAGIC))
    except OSError as error:
        msg = f'cannot read the weights {path}: {error.strerror}. Use the path of a .gguf file'
        raise ModelNotFound(msg) from error
    if magic != MAGIC:
        msg = f'{path} is not a GGUF file'
        raise ModelNotFound(msg)
    return path


def remove(name: str) -> int:
    """Delete the weights and partial downloads of a model. Returns the number of freed bytes.

    Raises `DownloadError` if a file cannot be removed.
    """
    entry = catalogue.entry(name)
    freed = 0
    with locked(entry):
        for path in (weights_path(entry), partial_path(entry), progress_path(entry)):
            try:
                size = path.stat().st_size
                path.unlink()
            except FileNotFoundError:
                continue
            except OSError as error:
                msg = f'cannot remove {path}: {error.strerror}'
                raise DownloadError(msg) from error
            freed += size
    return freed


@contextlib.contextmanager
def locked(entry: Artifact, *, wait: Callable[[], None] | None = None) -> Generator[None]:
    """Hold the inter-process lock of a model; the system releases it if the process dies.

    `wait` is called repeatedly while another process holds the lock, and may raise.
    """
    with _lock_file(entry) as file:
        while not _try_lock(file):
            if wait is not None:
                wait()
            time.sleep(0.1)
        yield


def _lock_file(entry: Artifact) -> IO[bytes]:
    try:
        entry.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return (entry.folder / f'.{entry.file}.lock').open('ab')
    except OSError as error:
        msg = f'cannot write to {entry.folder}: {error.strerror}. Set HABILIS_CACHE to a writable folder'
        raise DownloadError(msg) from error


def _try_lock(file: IO[bytes]) -> bool:
    """Try to lock the file. Closing it releases the lock."""
    try:
        import fcntl
    except ImportError:
        import msvcrt

        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
