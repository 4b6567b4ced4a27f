"""The workspace and other writable folders, accessed from the host.

Code inside may have created links in it. The host opens paths component by component without following links, so a link
to `/etc/passwd` is an error and not a leak.
"""

import contextlib
import os
import stat
import weakref
from collections.abc import Callable, Generator
from pathlib import Path, PurePosixPath
from typing import cast

from habilis.core.errors import WorkspaceError
from habilis.sandbox.contract import FileChange
from habilis.sandbox.temporary_folders import temporary_folder

MAX_FILES = 10_000
"""Maximum number of files that are scanned for changes."""

WORKSPACE = '/workspace'
FileStates = dict[str, tuple[int, int, int]]
_NO_FOLLOW = getattr(os, 'O_NOFOLLOW', 0) | getattr(os, 'O_CLOEXEC', 0)


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
    ) -> None:
        self.folder = folder
        self.target = target
        self.read_only = read_only
        self._temporary = temporary
        if temporary is not None:
            temporary.users += 1

    @classmethod
    def at(cls, folder: Path, *, must_exist: bool, read_only: bool = False) -> 'Workspace':
        """A workspace in this folder, which is created unless `must_exist`."""
        return cls(usable_folder(folder, 'the workspace', make=not must_exist), read_only=read_only)

    @classmethod
    def temporary(cls, *, read_only: bool = False) -> 'Workspace':
        """A workspace in a new folder, removed when the sandbox and all its forks are closed."""
        folder, remove = temporary_folder()
        return cls(folder, _Temporary(folder, remove), read_only=read_only)

    def shared(self) -> 'Workspace':
        """The same workspace for another sandbox."""
        return Workspace(self.folder, self._temporary, read_only=self.read_only)

    def close(self) -> None:
        """Remove a temporary folder if no other sandbox uses it."""
        temporary, self._temporary = self._temporary, None
        if temporary is not None:
            temporary.users -= 1
            if temporary.users == 0:
                temporary.remove()

    def read(self, path: str, *, limit: int = 1 << 30) -> bytes:
        """The bytes of a file."""
        with self._opened(path, os.O_RDONLY | getattr(os, 'O_NONBLOCK', 0)) as descriptor:
            info = _require_file(path, descriptor)
            if info.st_size > limit:
                msg = f'{path!r} has {info.st_size:,} bytes, more than the {limit:,} allowed'
                raise WorkspaceError(msg)
            with os.fdopen(os.dup(descriptor), 'rb') as file:
                return file.read(limit)

    def write(self, path: str, data: bytes | str) -> None:
        """Create or replace a file, and create its parent folders."""
        if self.read_only:
            msg = f'{path!r} cannot be written: this workspace is read-only (read_only=True)'
            raise WorkspaceError(msg)
        if not isinstance(cast('object', data), str | bytes | bytearray | memoryview):
            msg = f'what is written to {path!r} must be text or bytes, not {type(data).__name__}'
            raise TypeError(msg)
        content = data.encode() if isinstance(data, str) else data
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, 'O_NONBLOCK', 0)
        with self._opened(path, flags, make=True) as descriptor:
            _require_file(path, descriptor)
            view = memoryview(content)
            while view:
                view = view[os.write(descriptor, view) :]

    def files(self) -> list[str]:
        """The paths of all files, sorted."""
        return sorted(self.scan())

    def scan(self) -> FileStates:
        """Size, modification time and inode of the files, for `changes`."""
        seen: FileStates = {}
        folders = ['']
        while folders and len(seen) < MAX_FILES:
            folder = folders.pop()
            with contextlib.suppress(OSError), os.scandir(self.folder / folder) as entries:
                for entry in entries:
                    path = f'{folder}/{entry.name}' if folder else entry.name
                    info = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(info.st_mode):
                        folders.append(path)
                    elif stat.S_ISREG(info.st_mode):
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
        folder = descriptor = -1
        try:
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            for step in parents:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(step, dir_fd=folder)
                below = os.open(step, os.O_RDONLY | os.O_DIRECTORY | _NO_FOLLOW, dir_fd=folder)
                os.close(folder)
                folder = below
            descriptor = os.open(name, flags | _NO_FOLLOW, 0o644, dir_fd=folder)
            yield descriptor
        except OSError as error:
            msg = f'{path!r}: {error.strerror or error} (links are not followed)'
            raise WorkspaceError(msg) from error
        except UnicodeEncodeError as error:
            msg = f'{path!r} is not a valid file name'
            raise WorkspaceError(msg) from error
        finally:
            for opened in (folder, descriptor):
                if opened >= 0:
                    os.close(opened)


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


def _require_file(path: str, descriptor: int) -> os.stat_result:
    """Raise `WorkspaceError` unless it is a regular file."""
    info = os.fstat(descriptor)
    if not stat.S_ISREG(info.st_mode):
        msg = f'{path!r} is not a file'
        raise WorkspaceError(msg)
    return info


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
    return parts
