"""Where weights live on this machine, and which are there."""

import contextlib
import os
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import IO

from habilis.core.errors import DownloadError, ModelNotFound, NoModel
from habilis.core.folders import cache_folder
from habilis.models.local import catalogue
from habilis.models.local.catalogue import Entry

MAGIC = b'GGUF'


def folder() -> Path:
    """Of the weights. Whoever writes there makes it."""
    return cache_folder() / 'models'


def place(entry: Entry) -> Path:
    """Where the weights of a model belong."""
    return folder() / entry.file


def partial(entry: Entry) -> Path:
    """Where they are while they come in."""
    return folder() / f'{entry.file}.partial'


def progress_note(entry: Entry) -> Path:
    """How many parts are in, so that an interrupted installation goes on."""
    return folder() / f'{entry.file}.partial.json'


def installed(name: str = '') -> Path | None:
    """The weights of a model of the catalogue, if they are there and whole."""
    entry = catalogue.entry(name)
    path = place(entry)
    try:
        return path if path.stat().st_size == entry.bytes else None
    except OSError:
        return None


def find(name: str) -> Path:
    """The weights that `local:name` stands for: of the catalogue, or any `.gguf` file. Raises `NoModel`."""
    if looks_like_path(name):
        return _own_file(Path(name).expanduser())
    if path := installed(name):
        return path
    entry = catalogue.entry(name)
    msg = f'the model {entry.name} is not installed; `habilis models install {entry.name}` gets it ({entry.size})'
    raise NoModel(msg)


def looks_like_path(name: str) -> bool:
    """Whether a name is a file of weights and not a model of the catalogue."""
    return name.endswith('.gguf') or '/' in name or os.sep in name


def _own_file(path: Path) -> Path:
    try:
        with path.open('rb') as file:
            magic = file.read(len(MAGIC))
    except OSError as error:
        msg = f'cannot read the weights {path}: {error.strerror}. Give the path of a .gguf file'
        raise ModelNotFound(msg) from error
    if magic != MAGIC:
        msg = f'{path} is not a GGUF file, which is what llama.cpp reads'
        raise ModelNotFound(msg)
    return path


def remove(name: str) -> int:
    """Delete the weights of a model and what is left of an installation. Returns how many bytes that freed.

    Raises `DownloadError` for a file that cannot be removed.
    """
    entry = catalogue.entry(name)
    freed = 0
    with locked(entry):
        for path in (place(entry), partial(entry), progress_note(entry)):
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
def locked(entry: Entry, *, wait: Callable[[], None] | None = None) -> Generator[None]:
    """Hold a model's lock, which one process has at a time; the system lets it go if that process dies.

    `wait` is called again and again while another has it, and may raise.
    """
    with _lock_file(entry) as file:
        while not _try_lock(file):
            if wait is not None:
                wait()
            time.sleep(0.1)
        yield


def _lock_file(entry: Entry) -> IO[bytes]:
    try:
        folder().mkdir(parents=True, exist_ok=True, mode=0o700)
        return (folder() / f'.{entry.file}.lock').open('ab')
    except OSError as error:
        msg = f'cannot write in {folder()}: {error.strerror}. Set HABILIS_CACHE to a folder of yours'
        raise DownloadError(msg) from error


def _try_lock(file: IO[bytes]) -> bool:
    """Closing the file unlocks it."""
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
