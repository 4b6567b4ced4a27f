"""Temporary folders that are removed even if their process was killed.

A killed process cannot remove its folders. Each folder is locked while its process lives. The next process that creates
one finds the folders without a lock, and removes them.
"""

import contextlib
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

_MADE = 'habilis-new-'
"""Prefix of a folder that is not locked yet."""

_LOCKED = 'habilis-workspace-'
_swept: set[str] = set()
"""Parent folders in which this process has removed abandoned folders."""


def temporary_folder() -> tuple[Path, Callable[[], None]]:
    """A new folder, and a function that removes it."""
    while True:
        made = Path(tempfile.mkdtemp(prefix=_MADE))
        with contextlib.suppress(FileNotFoundError, BlockingIOError):  # another process took it for an abandoned one
            folder, lock = _lock_and_rename(made)
            break
    if str(folder.parent) not in _swept:
        _swept.add(str(folder.parent))
        _remove_abandoned(folder.parent)
    return folder, functools.partial(_remove, folder, lock)


def _lock_and_rename(made: Path) -> tuple[Path, int | None]:
    """Lock a new folder and give it its final name. Returns the folder and its lock."""
    lock = os.open(made, os.O_RDONLY | os.O_CLOEXEC) if os.name == 'posix' else None
    folder = made.with_name(_LOCKED + made.name.removeprefix(_MADE))
    try:
        if lock is not None:
            _lock_if_possible(lock)
        made.rename(folder)
    except BaseException:
        if lock is not None:
            os.close(lock)
        raise
    return folder, lock


def _lock_if_possible(file: int) -> None:
    try:
        _lock(file)
    except BlockingIOError:
        raise
    except OSError:  # without locks on this disk, no other process removes it either
        return


def _remove(folder: Path, lock: int | None) -> None:
    _remove_tree(folder)
    if lock is not None:
        os.close(lock)


def _remove_tree(folder: Path) -> None:
    """Remove a folder that may be hostile: with folders that nobody may enter, or nested too deep for Python."""
    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists() and os.name == 'posix':
        for command in (['chmod', '-R', 'u+rwx'], ['rm', '-rf']):
            subprocess.run([*command, '--', str(folder)], capture_output=True, check=False)


def _remove_abandoned(place: Path) -> None:
    """Remove the folders of processes that were killed."""
    if os.name != 'posix':
        return
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.name.startswith((_LOCKED, _MADE)):
                with contextlib.suppress(OSError):  # in use, or another user's
                    _remove_if_unlocked(entry)


def _remove_if_unlocked(entry: 'os.DirEntry[str]') -> None:
    """Raises `OSError` for a folder that is in use."""
    lock = os.open(entry.path, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(lock).st_uid != os.geteuid():
            return
        _lock(lock)
        _remove_tree(Path(entry.path))
    finally:
        os.close(lock)


def _lock(file: int) -> None:
    """Lock until the descriptor is closed. Raises `BlockingIOError` if another process has the lock.

    On a disk without locks it raises another `OSError`.
    """
    import fcntl

    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
