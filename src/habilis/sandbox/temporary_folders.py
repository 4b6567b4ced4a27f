"""Temporary folders that go when their process does, however it ends.

A process that is killed cannot remove its folders. Each is locked for as long as its process lives, so the next one
that makes such a folder sees which of them have nobody any more, and removes those.
"""

import contextlib
import functools
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

_MADE = 'habilis-new-'
"""Begins the name of a folder that is not locked yet."""

_LOCKED = 'habilis-workspace-'
_swept: set[str] = set()
"""Where this process has looked for what others have left."""


def temporary_folder() -> tuple[Path, Callable[[], None]]:
    """A new folder, and what removes it."""
    while True:
        made = Path(tempfile.mkdtemp(prefix=_MADE))
        with contextlib.suppress(FileNotFoundError, BlockingIOError):  # another process took it for one that was left
            folder, lock = _claimed(made)
            break
    if str(folder.parent) not in _swept:
        _swept.add(str(folder.parent))
        _sweep(folder.parent)
    return folder, functools.partial(_remove, folder, lock)


def _claimed(made: Path) -> tuple[Path, int | None]:
    """The folder under the name by which others see that it is locked, and its lock."""
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
    except OSError:  # where nobody can lock it, nobody will remove it either
        return


def _remove(folder: Path, lock: int | None) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if lock is not None:
        os.close(lock)


def _sweep(place: Path) -> None:
    """Remove what those who were killed have left behind."""
    if os.name != 'posix':
        return
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.name.startswith((_LOCKED, _MADE)):
                with contextlib.suppress(OSError):  # in use, or another user's
                    _remove_if_left(entry)


def _remove_if_left(entry: 'os.DirEntry[str]') -> None:
    """Raises `OSError` for one that is somebody's."""
    lock = os.open(entry.path, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(lock).st_uid != os.geteuid():
            return
        _lock(lock)
        shutil.rmtree(entry.path, ignore_errors=True)
    finally:
        os.close(lock)


def _lock(file: int) -> None:
    """Until it is closed, or its process ends. Raises `BlockingIOError` if somebody else has locked it.

    On a disk without locks it raises another `OSError`.
    """
    import fcntl

    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
