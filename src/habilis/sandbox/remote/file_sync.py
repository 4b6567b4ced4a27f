"""Copies of folders on another machine, brought up to date with every message.

Each side keeps what it knows of its folder since the last message, finds what has changed, and sends it. Files and
folders are copied, links and other things are not. If both sides change a file between two messages, the later message
wins. What comes from the other side is untrusted: it is written below the folder, and no link is followed.
"""

import base64
import binascii
import contextlib
import os
import stat
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path, PurePosixPath

from habilis.core.codec import CodecError, Json, dump, parse
from habilis.core.errors import WorkspaceError
from habilis.core.narrowing import expect

MAX_FILES = 10_000
MAX_BYTES = 256 << 20
"""Maximum size of all files of a folder."""

MAX_FILE_BYTES = 64 << 20
BATCH = 8 << 20
"""Bytes of files after which a new frame is started."""

_FOLDER_FLAGS = os.O_RDONLY | getattr(os, 'O_DIRECTORY', 0) | getattr(os, 'O_NOFOLLOW', 0) | getattr(os, 'O_CLOEXEC', 0)
_State = tuple[int, int, int]


class SyncedFolder:
    """One side of a folder. Only a `writable` one is changed by the side of the guest.

    `owner` gets what is made here, if this process is root and the guest is not.
    """

    def __init__(self, folder: Path, *, writable: bool, owner: tuple[int, int] | None = None) -> None:
        self._folder = folder
        self.writable = writable
        self._owner = owner
        self._files: dict[str, _State] = {}
        self._folders: set[str] = set()

    def changes(self) -> Iterator[list[Json]]:
        """What has changed here since the last message. Raises `WorkspaceError` if it is too much."""
        files, folders = self._scan()
        for path in sorted(self._files.keys() - files.keys()):
            yield ['remove', path]
        for path in sorted(self._folders - folders, reverse=True):  # the innermost first
            yield ['remove-folder', path]
        for path in sorted(folders - self._folders):
            yield ['folder', path]
        for path, state in sorted(files.items()):
            if self._files.get(path) != state:
                with contextlib.suppress(OSError):  # it is gone already, and its removal comes with the next message
                    yield ['file', path, base64.b64encode(self._read(path)).decode()]
        self._files, self._folders = files, folders

    def apply(self, change: Sequence[Json]) -> None:
        """Make a change of the other side. Raises `CodecError` if it is malformed, `WorkspaceError` if it fails."""
        match change:
            case ['file', str(path), str(data)]:
                self._write(path, _decode(data))
            case ['folder', str(path)]:
                with self._above(path) as (parent, name), contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=parent)
                    if self._owner:
                        os.chown(name, *self._owner, dir_fd=parent, follow_symlinks=False)
                self._folders.add(path)
            case ['remove', str(path)]:
                with self._above(path) as (parent, name), contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=parent)
                self._files.pop(path, None)
            case ['remove-folder', str(path)]:
                with self._above(path) as (parent, name), contextlib.suppress(OSError):  # something new may be in it
                    os.rmdir(name, dir_fd=parent)
                self._folders.discard(path)
            case _:
                msg = 'malformed change of a file'
                raise CodecError(msg)

    def _scan(self) -> tuple[dict[str, _State], set[str]]:
        files: dict[str, _State] = {}
        folders: set[str] = set()
        left = ['']
        size = seen = 0
        while left:
            folder = left.pop()
            with contextlib.suppress(OSError), os.scandir(self._folder / folder) as entries:
                for entry in entries:
                    seen += 1
                    if seen > MAX_FILES:
                        msg = f'a folder of a remote sandbox is copied, and may have {MAX_FILES:,} files; it has more'
                        raise WorkspaceError(msg)
                    path = f'{folder}/{entry.name}' if folder else entry.name
                    info = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(info.st_mode):
                        folders.add(path)
                        left.append(path)
                    elif stat.S_ISREG(info.st_mode):
                        files[path] = (info.st_size, info.st_mtime_ns, info.st_ino)
                        size += info.st_size
                        _check_size(path, info.st_size, MAX_FILE_BYTES)
            _check_size('the folder', size, MAX_BYTES)
        return files, folders

    def _read(self, path: str) -> bytes:
        with self._above(path) as (parent, name):
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
            with os.fdopen(descriptor, 'rb') as file:
                return file.read(MAX_FILE_BYTES)

    def _write(self, path: str, data: bytes) -> None:
        held = sum(size for size, _, _ in self._files.values())
        _check_size('the folder', held + len(data), MAX_BYTES)
        if len(self._files) + len(self._folders) > MAX_FILES:
            msg = f'the other side has sent more than {MAX_FILES:,} files'
            raise WorkspaceError(msg)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with self._above(path) as (parent, name):
            descriptor = os.open(name, flags, 0o644, dir_fd=parent)
            with os.fdopen(descriptor, 'wb') as file:
                file.write(data)
                file.flush()
                if self._owner:
                    os.fchown(file.fileno(), *self._owner)
                info = os.fstat(file.fileno())
        self._files[path] = (info.st_size, info.st_mtime_ns, info.st_ino)

    @contextlib.contextmanager
    def _above(self, path: str) -> Generator[tuple[int, str]]:
        """The descriptor of the folder that holds a path, and the name in it."""
        parts = PurePosixPath(path).parts
        if not parts or '..' in parts or '\0' in path or path != '/'.join(parts) or path.startswith('/'):
            msg = f'{path[:100]!r} is not a path inside the folder'
            raise CodecError(msg)
        descriptor = os.open(self._folder, _FOLDER_FLAGS)
        try:
            for part in parts[:-1]:
                below = os.open(part, _FOLDER_FLAGS, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = below
            yield descriptor, parts[-1]
        except OSError as error:
            msg = f'{path!r} cannot be synchronized: {error.strerror or error}'
            raise WorkspaceError(msg) from error
        finally:
            os.close(descriptor)


def collect(folders: Sequence[SyncedFolder], *, writable_only: bool = False) -> Iterator[str]:
    """The bodies of `files` frames with all that has changed here."""
    batch: list[Json] = []
    size = 0
    for number, folder in enumerate(folders):
        if writable_only and not folder.writable:
            continue
        for change in folder.changes():
            batch.append([number, *change])
            size += len(expect(change[-1], str))
            if size > BATCH:
                yield dump(batch)
                batch, size = [], 0
    if batch:
        yield dump(batch)


def apply(folders: Sequence[SyncedFolder], body: str, *, writable_only: bool = False) -> None:
    """Make the changes of a `files` frame."""
    changes = parse(body)
    for change in changes if isinstance(changes, list) else [None]:
        if (
            not isinstance(change, list)
            or not change
            or type(change[0]) is not int
            or change[0] not in range(len(folders))
        ):
            msg = 'malformed change of a file'
            raise CodecError(msg)
        folder = folders[change[0]]
        if writable_only and not folder.writable:
            msg = 'the other side may not change this folder'
            raise CodecError(msg)
        folder.apply(change[1:])


def _check_size(what: str, size: int, limit: int) -> None:
    if size > limit:
        msg = f'{what} has {size:,} bytes; a remote sandbox copies its folders, and may have {limit:,}'
        raise WorkspaceError(msg)


def _decode(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        msg = 'malformed file'
        raise CodecError(msg) from error
