"""The paths of mounts, where there are no mount namespaces: the functions of Python find them at their places.

Such a path behaves like a link: `realpath` leads to the place itself, for native code, which does not know the path.
It is no boundary: Landlock decides which places may be read and written.
"""

import _io
import builtins
import contextlib
import functools
import io
import os
from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]
FilePath = str | bytes | os.PathLike[str]

_PATHS = frozenset({'path', 'file', 'filename', 'database', 'src', 'dst'})
"""Names of the parameters of these functions that are paths."""

_OF_ONE_PATH = (
    *('access', 'chdir', 'chmod', 'chown', 'getxattr', 'lchown', 'listdir', 'listxattr', 'lstat', 'mkdir', 'mkfifo'),
    *('mknod', 'open', 'pathconf', 'readlink', 'remove', 'rmdir', 'scandir', 'stat', 'statvfs', 'truncate', 'unlink'),
    'utime',
)
_OF_TWO_PATHS = ('link', 'rename', 'replace', 'symlink')
_FEATURES = (os.supports_dir_fd, os.supports_effective_ids, os.supports_fd, os.supports_follow_symlinks)
"""Functions are in these sets if they have such arguments."""


def install(places: dict[str, str]) -> None:
    """Let the functions for files find these places: path inside -> path on the host."""
    resolve = functools.partial(_resolve, sorted(places.items(), key=lambda pair: -len(pair[0])))  # inner ones first
    for name in (*_OF_ONE_PATH, *_OF_TWO_PATHS):
        original = getattr(os, name, None)
        if original is None:
            continue
        found = _finding(original, resolve, 2 if name in _OF_TWO_PATHS else 1)
        if original in os.supports_effective_ids:  # else the real user is asked about, not that of files
            found = functools.wraps(original)(functools.partial(found, effective_ids=True))
        found.__module__ = 'os'  # so that a snapshot can name it
        for features in _FEATURES:
            if original in features:
                features.add(found)
        setattr(os, name, found)
    setattr(os, 'scandir', _scanning(os.scandir))  # noqa: B010 - its type is more special
    os.path.realpath = _finding(os.path.realpath, resolve, 1)
    builtins.open = io.open = _io.open = _finding(_io.open, resolve, 1)  # type: ignore[assignment]
    with contextlib.suppress(ImportError):
        import _sqlite3  # pyright: ignore[reportMissingModuleSource]

        _sqlite3.connect = _finding(_sqlite3.connect, resolve, 1)  # pyright: ignore[reportAttributeAccessIssue]


def _resolve(places: list[tuple[str, str]], path: object) -> object:
    """The path on the host, of what is the path of a place or below one; anything else as it is."""
    try:
        text = os.fsdecode(path)  # type: ignore[arg-type]
    except TypeError:  # a descriptor, or None
        return path
    if not text.startswith('/'):
        return path
    text = '/' + os.path.normpath(text).lstrip('/')
    for target, place in places:
        if text == target or text.startswith(f'{target}/'):
            found = place + text[len(target) :]
            return os.fsencode(found) if isinstance(path, bytes) else found
    return path


def _finding(original: Function, resolve: Callable[[object], object], count: int) -> Function:
    """The function, with so many first arguments resolved. Errors name the paths that it was given."""

    @functools.wraps(original)
    def call(*args: object, **named: object) -> object:
        given: dict[str, object] = {}

        def find(path: object) -> object:
            found = resolve(path)
            given[str(found)] = path
            return found

        named = {name: find(value) if name in _PATHS else value for name, value in named.items()}
        try:
            return original(*map(find, args[:count]), *args[count:], **named)
        except OSError as error:
            for name in ('filename', 'filename2'):
                if (path := str(getattr(error, name))) in given:
                    setattr(error, name, given[path])
            raise

    return call


def _scanning(scandir: Function) -> Function:
    """`os.scandir`, whose entries have the path that it was given, and not that of the place."""

    @functools.wraps(scandir)
    def call(path: FilePath | int = '.') -> object:
        entries = scandir(path)
        return entries if isinstance(path, int) else _Entries(entries, os.fspath(path))

    return call


class _Entries:
    def __init__(self, entries: Any, path: str | bytes) -> None:
        self._entries, self._path = entries, path
        self.close = entries.close

    def __iter__(self) -> '_Entries':
        return self

    def __next__(self) -> '_ListedEntry':
        entry = next(self._entries)
        return _ListedEntry(entry, os.path.join(self._path, entry.name))

    def __enter__(self) -> '_Entries':
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _ListedEntry:
    def __init__(self, entry: object, path: str | bytes) -> None:
        self._entry, self.path = entry, path

    def __getattr__(self, name: str) -> object:
        return getattr(self._entry, name)

    def __fspath__(self) -> str | bytes:
        return self.path

    def __repr__(self) -> str:
        return repr(self._entry)
