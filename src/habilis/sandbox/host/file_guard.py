"""`FileGuard`: undoes what code inside has done to protected files of a shared folder.

It works from the host and the same for every backend: it looks at the protected files before a request, and compares
them after it. What is new or different is renamed, so that no program obeys it and nothing is lost; what was there
before is written again. Links are never followed. A file is known by the folder that holds it (its inode) and the path
from there, so that a folder may be moved with all that is in it.
"""

import contextlib
import logging
import os
import secrets
import stat
import threading
import weakref
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from habilis.core.errors import WorkspaceError
from habilis.sandbox.files.protected_files import GIT, GIT_DATA, GIT_FILES, START_FILES, UNDONE, is_git_folder
from habilis.sandbox.files.workspace import Workspace
from habilis.sandbox.host.workers import after_fork

MAX_FOLDERS = 2000
"""Maximum number of folders that are looked into, those near the top first."""

MAX_DEPTH = 30
MAX_BYTES = 1 << 20
"""Maximum size of a file that can be restored."""

SKIPPED = frozenset({'node_modules', '.venv', '__pycache__'})
"""Folders that are not looked into: they hold programs of the user anyway, which code may change."""

_READ = os.O_RDONLY | getattr(os, 'O_NOFOLLOW', 0) | getattr(os, 'O_NONBLOCK', 0) | getattr(os, 'O_CLOEXEC', 0)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | getattr(os, 'O_NOFOLLOW', 0) | getattr(os, 'O_CLOEXEC', 0)
_log = logging.getLogger(__name__)
_Holder = tuple[int, int] | str
_Key = tuple[_Holder, str]


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """A protected file or link."""

    path: str
    info: os.stat_result
    data: bytes | None
    """The bytes of a file, or the target of a link; None if it is something else, or too large."""

    @property
    def stamp(self) -> tuple[int, ...]:
        info = self.info
        return info.st_ino, info.st_mode, info.st_size, info.st_mtime_ns, info.st_ctime_ns

    def is_like(self, other: '_Entry') -> bool:
        if self.stamp == other.stamp:
            return True
        return self.data is not None and self.data == other.data and self.info.st_mode == other.info.st_mode


@dataclass(frozen=True)
class _ProtectedFiles:
    entries: dict[_Key, _Entry] = field(default_factory=dict[_Key, _Entry])
    holders: dict[_Holder, str] = field(default_factory=dict[_Holder, str])
    """Paths of the folders that were looked into."""


class FileGuard:
    """Guards one folder, for all sandboxes of this process that share it."""

    def __init__(self, folder: Path, *, by_path: bool = False) -> None:
        """`by_path`: know folders by their paths, because files are written anew, and inodes are used again."""
        self._space = Workspace(folder)
        self._by_path = by_path
        self._lock = threading.Lock()
        self._before = _ProtectedFiles()
        self._running: weakref.WeakSet[object] = weakref.WeakSet()
        """Those whose code may be running: during a request, and in some backends until they are closed."""

    def begin(self, who: object) -> None:
        """Note how the files are, unless other code may be changing them already."""
        with self._lock:
            if not self._running:
                self._before = self._scan(self._before)
            self._running.add(who)

    def end(self, who: object, *, still_running: bool) -> list[str]:
        """Undo all changes, and return their paths."""
        with self._lock:
            if who not in self._running:
                return []
            if not still_running:
                self._running.discard(who)
            return self._undo()

    def _scan(self, known: _ProtectedFiles) -> _ProtectedFiles:
        """The protected files: first of the folders that had some, as code may make many others to hide one."""
        found = _ProtectedFiles()
        first = {known.holders[holder]: None for holder, _ in known.entries}
        folders = deque([*first, ''])
        limit = MAX_FOLDERS + len(first)
        while folders and len(found.holders) < limit:
            path = folders.popleft()
            with contextlib.suppress(WorkspaceError, OSError), self._readable(path) as folder:
                info = os.fstat(folder)
                holder = path if self._by_path else (info.st_dev, info.st_ino)
                if holder not in found.holders:
                    found.holders[holder] = path
                    folders += self._look_into(folder, path, holder, known, found)
        return found

    @contextlib.contextmanager
    def _readable(self, path: str) -> Generator[int]:
        """Open a folder, also if code has taken away the rights of its owner."""
        with contextlib.ExitStack() as stack:
            try:
                folder = stack.enter_context(self._space.opened_folder(path))
            except WorkspaceError as error:
                if not isinstance(error.__cause__, PermissionError):
                    raise
                folder = stack.enter_context(self._writable(path))
            yield folder

    @contextlib.contextmanager
    def _writable(self, path: str) -> Generator[int]:
        """Open a folder whose owner may change it, from now on."""
        parent, _, name = path.rpartition('/')
        if name:
            with self._readable(parent) as above:
                _give_rights(name, above)
        with self._space.opened_folder(path) as folder:
            yield folder

    def _look_into(
        self, folder: int, path: str, holder: _Holder, known: _ProtectedFiles, found: _ProtectedFiles
    ) -> list[str]:
        """Add the protected files of a folder, and return the folders in it that may have others."""
        with os.scandir(folder) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
        is_git = is_git_folder(path.rpartition('/')[2], (entry.name for entry in entries))
        below: list[str] = []
        for entry in entries:
            name, is_folder = entry.name.casefold(), entry.is_dir(follow_symlinks=False)
            if name.endswith(UNDONE):
                continue
            if name in START_FILES or (is_git and name in GIT_FILES) or (name == GIT and not is_folder):
                for rel, info, parent in _files(folder, entry.name):
                    key = holder, rel
                    whole = f'{path}/{rel}' if path else rel
                    found.entries[key] = _entry(whole, info, parent, known.entries.get(key))
            elif is_folder and name not in SKIPPED and not (is_git and name in GIT_DATA):
                whole = f'{path}/{entry.name}' if path else entry.name
                below.insert(0, whole) if name == GIT else below.append(whole)
        return [path for path in below if path.count('/') < MAX_DEPTH]

    def _undo(self) -> list[str]:
        before, after = self._before, self._scan(self._before)
        undone: list[str] = []
        for key, now in after.entries.items():
            was = before.entries.get(key)
            if was is None or not now.is_like(was):
                self._put_aside(now.path)
                undone.append(now.path)
        for key, was in before.entries.items():
            holder = after.holders.get(key[0])
            if holder is None:  # the whole folder is gone
                continue
            path = f'{holder}/{key[1]}' if holder else key[1]
            if path in undone or key not in after.entries:
                self._restore(path, was)
                if path not in undone:
                    undone.append(path)
        return undone

    def _put_aside(self, path: str) -> None:
        parent, _, name = path.rpartition('/')
        try:
            with self._writable(parent) as folder:
                aside = f'{name}{UNDONE}'
                if _exists(aside, folder):
                    aside = f'{name}.{secrets.token_hex(3)}{UNDONE}'
                os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)
        except (WorkspaceError, OSError) as error:
            _log.error('the change of %s in %s could not be undone: %s', path, self._space.folder, error)

    def _restore(self, path: str, was: _Entry) -> None:
        if was.data is None:
            return
        info, (parent, _, name) = was.info, path.rpartition('/')
        try:
            with contextlib.suppress(WorkspaceError), self._writable(parent):  # it may have to be made
                pass
            self._space.replace(path, was.data, info.st_mode, stat.S_IMODE(info.st_mode) & 0o777)
            if os.geteuid() == 0:
                with self._space.opened_folder(parent) as folder:
                    os.chown(name, info.st_uid, info.st_gid, dir_fd=folder, follow_symlinks=False)
        except (WorkspaceError, OSError) as error:
            _log.error('%s in %s could not be restored: %s', path, self._space.folder, error)


def _files(folder: int, name: str, depth: int = 20) -> Iterator[tuple[str, os.stat_result, int]]:
    """A file, or all files in a folder: the path from the open folder, the state, and the open folder it is in."""
    with contextlib.suppress(OSError):
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISDIR(info.st_mode):
            yield name, info, folder
            return
        if not depth:
            return
        _give_rights(name, folder)
        below = os.open(name, _FOLDER, dir_fd=folder)
        try:
            for entry in sorted(os.listdir(below)):
                if not entry.endswith(UNDONE):
                    for rel, state, parent in _files(below, entry, depth - 1):
                        yield f'{name}/{rel}', state, parent
        finally:
            os.close(below)


def _entry(path: str, info: os.stat_result, folder: int, known: _Entry | None) -> _Entry:
    entry = _Entry(path=path, info=info, data=known.data if known else None)
    if known is not None and known.stamp == entry.stamp:
        return entry
    data = None
    name = path.rpartition('/')[2]
    with contextlib.suppress(OSError):
        if stat.S_ISLNK(info.st_mode):
            data = os.fsencode(os.readlink(name, dir_fd=folder))
        elif stat.S_ISREG(info.st_mode) and info.st_size <= MAX_BYTES:
            with os.fdopen(os.open(name, _READ, dir_fd=folder), 'rb') as file:
                data = file.read(MAX_BYTES)
    return _Entry(path=path, info=info, data=data)


def _give_rights(name: str, above: int) -> None:
    """Let the owner of a folder use it."""
    with contextlib.suppress(OSError, AttributeError):  # only on Linux
        info = os.stat(name, dir_fd=above, follow_symlinks=False)
        if not stat.S_ISDIR(info.st_mode) or info.st_mode & 0o700 == 0o700:
            return
        folder = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
        try:  # through the descriptor: the name may be that of a link by now
            os.chmod(f'/proc/self/fd/{folder}', stat.S_IMODE(os.fstat(folder).st_mode) | 0o700)
        finally:
            os.close(folder)


def _exists(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


class _Guards:
    """The one guard of each folder: with two, each would take the changes of the other's code for the user's. Backends
    that copy files have another one, by path."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_folder: weakref.WeakValueDictionary[tuple[Path, bool], FileGuard] = weakref.WeakValueDictionary()

    def of(self, folder: Path, *, by_path: bool) -> FileGuard:
        """The guard of a folder."""
        with self._lock:
            guard = self._by_folder.get((folder, by_path))
            if guard is None:
                guard = self._by_folder[folder, by_path] = FileGuard(folder, by_path=by_path)
            return guard


_guards = _Guards()
after_fork(_guards.__init__)
guard_of = _guards.of
