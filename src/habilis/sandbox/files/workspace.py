"""The workspace and other writable folders, accessed from the host.

Code inside may have created links in it. The host opens paths component by component without following links, so a link
to `/etc/passwd` is an error and not a leak.
"""

import contextlib
import errno
import itertools
import os
import secrets
import stat
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from habilis.core.errors import WorkspaceError, WorkspaceFileNotFound
from habilis.core.similar_names import similar_names
from habilis.sandbox.contract import FileChange
from habilis.sandbox.files.protected_files import GIT_FILES, is_git_folder, protected_part
from habilis.sandbox.files.temporary_folders import temporary_folder

MAX_FILES = 10_000
"""Maximum number of files, folders and links that are scanned for changes."""

MAX_DEPTH = 100
"""Maximum depth of folders that are visited: each level keeps one descriptor open."""

WORKSPACE = '/workspace'
Skip = Callable[[str], bool]
FileStates = dict[str, tuple[int, int, int]]
_NO_FOLLOW = getattr(os, 'O_NOFOLLOW', 0) | getattr(os, 'O_CLOEXEC', 0)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | _NO_FOLLOW
_SET_ID = stat.S_ISUID | stat.S_ISGID


class _Temporary:
    """A temporary folder with a reference count. It is removed with its last user, or at exit."""

    def __init__(self, folder: Path, remove: Callable[[], None]) -> None:
        self.folder = folder
        self.users = 0
        self.remove = weakref.finalize(self, remove)


class Workspace:
    """A folder of the host, mounted at `/workspace`, or at another `target`."""

    def __init__(
        self,
        folder: Path,
        temporary: _Temporary | None = None,
        *,
        target: str = WORKSPACE,
        read_only: bool = False,
        protected: bool = False,
    ) -> None:
        self.folder = folder
        self.target = target
        self.read_only = read_only
        self.protected = protected
        """Whether the files that other programs obey are refused: see `protected_files`."""

        self._temporary = temporary
        if temporary is not None:
            temporary.users += 1

    @classmethod
    def at(cls, folder: Path, *, must_exist: bool, read_only: bool = False, protected: bool = False) -> 'Workspace':
        """A workspace in this folder, which is created unless `must_exist`."""
        usable = usable_folder(folder, 'the workspace', make=not must_exist)
        return cls(usable, read_only=read_only, protected=protected)

    @classmethod
    def temporary(cls, *, read_only: bool = False) -> 'Workspace':
        """A workspace in a new folder, removed when the sandbox and all its forks are closed."""
        folder, remove = temporary_folder()
        return cls(folder, _Temporary(folder, remove), read_only=read_only)

    def shared(self, *, read_only: bool = False) -> 'Workspace':
        """The same workspace for another sandbox."""
        return Workspace(self.folder, self._temporary, read_only=read_only or self.read_only, protected=self.protected)

    @property
    def is_temporary(self) -> bool:
        """Whether it is a folder of the sandbox itself."""
        return self._temporary is not None

    @property
    def is_guarded(self) -> bool:
        """Whether changes of protected files must be undone: not in a folder of the sandbox itself."""
        return self.protected and not self.read_only and not self.is_temporary

    def close(self) -> None:
        """Remove a temporary folder if no other sandbox uses it."""
        temporary, self._temporary = self._temporary, None
        if temporary is not None:
            temporary.users -= 1
            if temporary.users == 0:
                temporary.remove()

    def is_file(self, path: str) -> bool:
        """Whether it is a regular file. Raises `WorkspaceError` if there is nothing at this path."""
        with self._opened(path, os.O_RDONLY | getattr(os, 'O_NONBLOCK', 0)) as descriptor:
            return stat.S_ISREG(os.fstat(descriptor).st_mode)

    @contextlib.contextmanager
    def opened(self, path: str) -> Generator[BinaryIO]:
        """A file, open for reading."""
        with self._opened(path, os.O_RDONLY | getattr(os, 'O_NONBLOCK', 0)) as descriptor:
            _require_file(path, descriptor)
            with os.fdopen(os.dup(descriptor), 'rb') as file:
                yield file

    def read(self, path: str, *, limit: int = 1 << 30) -> bytes:
        """The bytes of a file."""
        with self.opened(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > limit:
                msg = f'{path!r} has {size:,} bytes, more than the {limit:,} allowed'
                raise WorkspaceError(msg)
            return file.read(limit)

    def write(self, path: str, data: bytes | str, *, create_dirs: bool = True) -> None:
        """Create or replace a file, and create its parent folders unless told otherwise. It is not setuid then."""
        self.check_writable(path)
        if not isinstance(cast('object', data), str | bytes | bytearray | memoryview):
            msg = f'what is written to {path!r} must be text or bytes, not {type(data).__name__}'
            raise TypeError(msg)
        content = data.encode() if isinstance(data, str) else data
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, 'O_NONBLOCK', 0)
        with self._opened(path, flags, make=create_dirs) as descriptor:
            _require_file(path, descriptor)
            _clear_set_id(descriptor)
            view = memoryview(content)
            while view:
                view = view[os.write(descriptor, view) :]

    def replace(self, path: str, data: bytes, mode: int, permissions: int | None = None) -> None:
        """Put a file or link in the place of another, atomically. The data of a link is its target.

        By default, a file gets the permissions of any new one: what the umask leaves; executable if `mode` says so.
        """
        self.check_writable(path)
        *parents, name = _steps(path, self.target)
        temporary = f'.habilis-{secrets.token_hex(6)}'
        with self._folder(path, parents, make=True) as folder:
            try:
                if stat.S_ISLNK(mode):
                    os.symlink(data, temporary, dir_fd=folder)
                else:
                    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW
                    usual = 0o777 if mode & 0o100 else 0o666
                    initial = usual if permissions is None else 0o600
                    with os.fdopen(os.open(temporary, flags, initial, dir_fd=folder), 'wb') as file:
                        file.write(data)
                        if permissions is not None:
                            os.fchmod(file.fileno(), permissions & ~_SET_ID)
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError as error:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)
                raise _explained(path, name, folder, error) from error

    def remove(self, path: str) -> None:
        """Remove a file or a link, and the folders that are empty then."""
        self.check_writable(path)
        *parents, name = _steps(path, self.target)
        with self._folder(path, parents) as folder:
            try:
                os.unlink(name, dir_fd=folder)
            except OSError as error:
                raise _explained(path, name, folder, error) from error
        while parents:
            last = parents.pop()
            with self._folder(path, parents) as folder:
                try:
                    os.rmdir(last, dir_fd=folder)
                except OSError:  # not empty
                    return

    def remove_empty_folders(self, path: str) -> None:
        """Remove a folder if there is no file in it, but at most other such folders."""
        with contextlib.suppress(WorkspaceError):  # it is not a folder, or not there
            entries = list(self.walk(path))
            if all(stat.S_ISDIR(info.st_mode) for _, info in entries):
                for folder in reversed([path, *(below for below, _ in entries)]):
                    *parents, name = _steps(folder, self.target)
                    with self._folder(folder, parents) as above, contextlib.suppress(OSError):
                        os.rmdir(name, dir_fd=above)

    def read_link(self, path: str) -> bytes:
        """The target of a link."""
        *parents, name = _steps(path, self.target)
        with self._folder(path, parents) as folder:
            try:
                return os.fsencode(os.readlink(name, dir_fd=folder))
            except OSError as error:
                raise _explained(path, name, folder, error) from error

    def check_writable(self, path: str) -> None:
        """Raise `WorkspaceError` if the workspace is read-only, or the file is protected."""
        if self.read_only:
            msg = f'{path!r} cannot be written: this workspace is read-only (read_only=True)'
            raise WorkspaceError(msg)
        if self.protected and (part := self._protected_part(_steps(path, self.target))):
            msg = f'{path!r} cannot be written: {part!r} is protected, because other programs obey it (protect=False)'
            raise WorkspaceError(msg)

    def _protected_part(self, steps: Sequence[str]) -> str | None:
        if found := protected_part('/'.join(steps)):
            return found
        for depth, step in enumerate(steps):  # of a folder that git would take for a repository, then or already
            try:
                with self.opened_folder('/'.join(steps[:depth])) as folder:
                    names = os.listdir(folder)
            except WorkspaceError:
                return None
            if not is_git_folder('', [*names, step]):
                continue
            if step.casefold() in GIT_FILES or not is_git_folder('', names):
                return step
        return None

    def files(self) -> list[str]:
        """The paths of all files, sorted."""
        return sorted(self.scan())

    def walk(
        self, path: str = '', skip: Callable[[str], bool] = lambda _: False, *, limit: int | None = None
    ) -> Iterator[tuple[str, os.stat_result]]:
        """The paths below a folder with their states, parents first, sorted in each folder. No link is followed.

        Args:
            path: the folder; the whole workspace by default.
            skip: takes the path of a folder; what is in it is left out if it returns True.
            limit: maximum number of paths; the others are left out.
        """
        steps = _steps(path, self.target) if path else ()
        with self._folder(path, steps) as descriptor:
            budget = itertools.repeat(0) if limit is None else iter(range(limit))
            yield from _walk(descriptor, '/'.join(steps), skip, MAX_DEPTH, budget)

    @contextlib.contextmanager
    def opened_folder(self, path: str) -> Generator[int]:
        """A descriptor of a folder, opened without following links; empty for the workspace itself."""
        with self._folder(path, _steps(path, self.target) if path else ()) as descriptor:
            yield descriptor

    def scan(self) -> FileStates:
        """Size, modification time and inode of the files, for `changes`."""
        seen: FileStates = {}
        with contextlib.suppress(WorkspaceError):  # the folder was removed
            for path, info in self.walk(limit=MAX_FILES):
                if stat.S_ISREG(info.st_mode):
                    seen[path] = (info.st_size, info.st_mtime_ns, info.st_ino)
        return seen

    def changes(self, before: FileStates) -> tuple[FileChange, ...]:
        """The files that are new or changed since a scan."""
        prefix = '' if self.target == WORKSPACE else f'{self.target}/'
        found: list[FileChange] = []
        for path, now in sorted(self.scan().items()):
            if path not in before:
                found.append(FileChange(path=prefix + path, size=now[0], change='new'))
            elif before[path] != now:
                found.append(FileChange(path=prefix + path, size=now[0], change='changed'))
        return tuple(found)

    def contains(self, path: str) -> bool:
        """Whether an absolute path inside the sandbox is one of this folder."""
        return PurePosixPath(path).is_relative_to(self.target)

    @contextlib.contextmanager
    def _opened(self, path: str, flags: int, *, make: bool = False) -> Generator[int]:
        """Open a file of the folder, component by component, without following links."""
        *parents, name = _steps(path, self.target)
        with self._folder(path, parents, make=make) as folder:
            try:
                descriptor = os.open(name, flags | _NO_FOLLOW, 0o644, dir_fd=folder)
            except OSError as error:
                raise _explained(path, name, folder, error) from error
            try:
                yield descriptor
            except OSError as error:
                msg = f'{path!r}: {error.strerror or error}'
                raise WorkspaceError(msg) from error
            finally:
                os.close(descriptor)

    @contextlib.contextmanager
    def _folder(self, path: str, steps: Sequence[str], *, make: bool = False) -> Generator[int]:
        """Open a folder component by component, without following links. `path` is for errors."""
        try:
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            msg = f'{path!r}: the workspace cannot be opened: {error.strerror or error}'
            raise WorkspaceError(msg) from error
        try:
            for step in steps:
                try:
                    if make:
                        with contextlib.suppress(FileExistsError):
                            os.mkdir(step, dir_fd=folder)
                    below = os.open(step, _FOLDER, dir_fd=folder)
                except OSError as error:
                    raise _explained(path, step, folder, error) from error
                os.close(folder)
                folder = below
            yield folder
        finally:
            os.close(folder)


def _walk(
    folder: int, prefix: str, skip: Skip, depth: int, budget: Iterator[int]
) -> Iterator[tuple[str, os.stat_result]]:
    """What is in an open folder and below. Entries that vanish meanwhile are left out. Each takes one of the budget."""
    with os.scandir(folder) as found:
        entries = sorted((entry for entry, _ in zip(found, budget, strict=False)), key=lambda entry: entry.name)
    for entry in entries:
        path = f'{prefix}/{entry.name}' if prefix else entry.name
        try:
            info = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        yield path, info
        if stat.S_ISDIR(info.st_mode) and depth and not skip(path):
            try:
                below = os.open(entry.name, _FOLDER, dir_fd=folder)
            except OSError:  # a link by now, or not readable
                continue
            try:
                yield from _walk(below, path, skip, depth - 1, budget)
            finally:
                os.close(below)


def _explained(path: str, step: str, folder: int, error: OSError) -> WorkspaceError:
    """What is wrong with the component `step` of a path, which is in this open folder."""
    if isinstance(error, FileNotFoundError):
        with os.scandir(folder) as entries:
            near = similar_names(step, (entry.name for entry in entries))
        at = path.rfind(step)
        advice = f'; did you mean {path[:at] + near[0] + path[at + len(step) :]!r}?' if near else ''
        return WorkspaceFileNotFound(f'{path!r}: no such file or folder{advice}')
    if isinstance(error, IsADirectoryError):
        return WorkspaceError(f'{path!r} is a folder, not a file')
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        what = 'a link, and links are not followed' if _is_link(step, folder) else 'a file, not a folder'
        return WorkspaceError(f'{path!r}: {step!r} is {what}')
    return WorkspaceError(f'{path!r}: {error.strerror or error}')


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def usable_folder(folder: Path, role: str, *, make: bool) -> Path:
    """The real path of a folder that this process can list and enter. Raises `WorkspaceError`."""
    try:
        folder = folder.expanduser()
        folder = folder.resolve(strict=not make or folder.is_symlink())  # nothing is created behind a dangling link
        str(folder).encode()
        if make:
            folder.mkdir(parents=True, exist_ok=True)
        with os.scandir(folder) as entries:
            next(entries, None)
        os.stat(f'{folder}/.')  # needs the right to enter it, which listing does not
    except FileNotFoundError as error:
        msg = f'{role} {str(folder)!r} does not exist; create it, or name another folder'
        raise WorkspaceError(msg) from error
    except (NotADirectoryError, FileExistsError) as error:
        msg = f'{role} {str(folder)!r} is not a folder; name a folder'
        raise WorkspaceError(msg) from error
    except (OSError, RuntimeError) as error:  # a loop of links, no home folder
        reason = getattr(error, 'strerror', None) or error
        msg = f'{role} {str(folder)!r} cannot be used: {reason}; name a folder that this user can read'
        raise WorkspaceError(msg) from error
    except ValueError as error:  # a null character, or text that is no file name
        msg = f'{role} {str(folder)!r} is not the name of a folder: {error}'
        raise WorkspaceError(msg) from error
    return folder


def _require_file(path: str, descriptor: int) -> None:
    """Raise `WorkspaceError` unless it is a regular file."""
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        msg = f'{path!r} is a folder, not a file' if stat.S_ISDIR(mode) else f'{path!r} is not a file'
        raise WorkspaceError(msg)


def _clear_set_id(descriptor: int) -> None:
    """Let nobody run a file as its owner. For root the kernel would keep these bits when the file is written to."""
    mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
    if mode & _SET_ID:
        with contextlib.suppress(PermissionError):  # of another user's file; then writing clears them
            os.fchmod(descriptor, mode & ~_SET_ID)


def _steps(path: str, target: str) -> tuple[str, ...]:
    """The components of a path inside the folder; `/workspace/x` and `x` are the same."""
    if not isinstance(cast('object', path), str):
        msg = f'a path inside the workspace must be text, not {path!r:.100}'
        raise TypeError(msg)
    parts, above = PurePosixPath(path).parts, PurePosixPath(target).parts
    if parts[: len(above)] == above:
        parts = parts[len(above) :]
    if not parts or parts[0].startswith('/') or '..' in parts or '\0' in path:
        msg = f'{path!r} is not a path inside the workspace'
        raise WorkspaceError(msg)
    try:
        os.fsencode(path)
    except UnicodeEncodeError as error:
        msg = f'{path!r} is not a valid file name'
        raise WorkspaceError(msg) from error
    return parts
