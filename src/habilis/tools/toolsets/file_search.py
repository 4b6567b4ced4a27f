"""Finds files of a workspace by name and by content."""

import codecs
import contextlib
import fnmatch
import io
import itertools
import json
import re
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from habilis.core.errors import WorkspaceError
from habilis.sandbox.files.workspace import Workspace

SKIPPED = ('.git', '.hg', '.svn', 'node_modules', '.venv', '__pycache__', '.mypy_cache', '.pytest_cache', '.ruff_cache')
"""Folders that are not searched unless their name is given."""

MAX_BYTES = 10 << 20
"""Maximum size of a file that is searched."""

MAX_ENTRIES = 100_000
"""Maximum number of files and folders that are visited."""

MAX_SECONDS = 10.0
"""Time limit of one search."""

MAX_PATTERN = 1000
"""Maximum number of characters of a glob pattern."""

MAX_CHOICES = 64
"""Maximum number of patterns that the braces of one stand for."""

MAX_WORKER_BYTES = 256 << 20
"""Maximum memory of the process that matches lines: some expressions keep a note of every character."""

_WORKER = Path(__file__).with_name('grep_worker.py')
_BRACES = re.compile(r'\{([^{}]*)\}')
_WILD = re.compile(r'[*?[{]')


# By name --------------------------------------------------------------------------------------------------------------


class PathPattern:
    """A pattern such as `src/**/*.py`: `**` stands for any number of folders, `{a,b}` for a or b."""

    def __init__(self, pattern: str) -> None:
        if len(pattern) > MAX_PATTERN:
            msg = f'the pattern {pattern[:50]!r}… is longer than {MAX_PATTERN:,} characters'
            raise WorkspaceError(msg)
        self._choices = [_components(choice) for choice in _without_braces(pattern)]

    def matches(self, path: str) -> bool:
        """Whether the pattern fits the whole path."""
        parts = path.split('/')
        return any(_fits(choice, parts) for choice in self._choices)


_Component = Callable[[str], object] | None
"""Matches one component of a path; None for `**`."""


def _components(pattern: str) -> tuple[_Component, ...]:
    parts = [part for part in pattern.split('/') if part not in ('', '.')]
    if parts[-1:] == ['**']:
        parts.append('*')
    return tuple(None if part == '**' else re.compile(fnmatch.translate(part)).match for part in parts)


def _fits(pattern: Sequence[_Component], parts: Sequence[str]) -> bool:
    """By dynamic programming: many `**` must not take exponential time."""
    reached = {0}
    for component in pattern:
        if component is None:
            reached = set(range(min(reached), len(parts) + 1)) if reached else reached
        else:
            reached = {at + 1 for at in reached if at < len(parts) and component(parts[at])}
    return len(parts) in reached


def _without_braces(pattern: str) -> list[str]:
    done: list[str] = []
    todo = [pattern]
    while todo:
        text = todo.pop()
        braces = _BRACES.search(text)
        if braces is None:
            done.append(text)
            continue
        choices = braces[1].split(',')
        if len(done) + len(todo) + len(choices) > MAX_CHOICES:
            msg = f'the braces of the pattern {pattern[:50]!r} stand for more than {MAX_CHOICES} patterns'
            raise WorkspaceError(msg)
        todo += [text[: braces.start()] + choice + text[braces.end() :] for choice in choices]
    return done


@dataclass(frozen=True, kw_only=True)
class FoundPaths:
    """The paths that match."""

    paths: list[str]
    complete: bool = True
    """False if there was no time to visit all files, or there are too many."""


def find(space: Workspace, pattern: str) -> FoundPaths:
    """Files and folders whose path fits the pattern; folders end with a slash. With one, it fits folders only."""
    parts = _relative(pattern, space).rstrip('/').split('/')
    start = list(itertools.takewhile(lambda part: not _WILD.search(part), parts[:-1]))
    matcher = PathPattern('/'.join(parts))
    names = {*parts}
    paths: list[str] = []
    end = time.monotonic() + MAX_SECONDS
    for count, (path, info) in enumerate(space.walk('/'.join(start), lambda path: _is_skipped(path, names))):
        if count >= MAX_ENTRIES or time.monotonic() > end:
            return FoundPaths(paths=paths, complete=False)
        is_folder = stat.S_ISDIR(info.st_mode)
        if matcher.matches(path) and (is_folder or not pattern.endswith('/')):
            paths.append(f'{path}/' if is_folder else path)
    return FoundPaths(paths=paths)


def _is_skipped(path: str, wanted: set[str]) -> bool:
    name = path.rpartition('/')[2]
    return name in SKIPPED and name not in wanted


def _relative(pattern: str, space: Workspace) -> str:
    text = pattern.removeprefix(f'{space.target}/').removeprefix('./')
    if text in ('', '.') or text.startswith('/') or '..' in text.split('/') or '\0' in text:
        msg = f'{pattern!r} is not a pattern inside the workspace; write it as in src/**/*.py'
        raise WorkspaceError(msg)
    return text


# By content -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Matches:
    """The lines of a file that match."""

    path: str
    count: int
    lines: list[tuple[int, str]]
    """The first of them, with their numbers."""


def search(
    space: Workspace,
    expression: str,
    *,
    path: str = '',
    names: str | None = None,
    ignore_case: bool = False,
    most: int = 1000,
    too_large: Callable[[str], object] = lambda _: None,
) -> Iterator[Matches]:
    """The lines of text files that match a regular expression, by file. Binary and large files are left out.

    Args:
        space: the workspace.
        expression: a regular expression of Python, applied to each line.
        path: a folder to search in; or a file, which may be neither binary nor large.
        names: a pattern for the files; without a slash it is for their names, in any folder.
        ignore_case: whether case is ignored.
        most: maximum number of lines of a file.
        too_large: called with the path of each large file that is left out.
    """
    wanted = None if names is None else PathPattern(_relative(names, space) if '/' in names else f'**/{names}')
    path = '' if path in ('', '.', './', space.target, f'{space.target}/') else _relative(path, space).rstrip('/')
    is_file = bool(path) and space.is_file(path)
    with _worker(expression, ignore_case, most) as matching_lines:
        for file, size in [(path, 0)] if is_file else _files(space, path):
            if wanted is not None and not wanted.matches(file):
                continue
            if size > MAX_BYTES:
                too_large(file)
                continue
            data = _text(space, file, is_required=is_file)
            reply = matching_lines(data) if data else _Reply(0, [])
            if reply.count:
                yield Matches(path=file, count=reply.count, lines=_lines(data, reply.numbers))


@dataclass(frozen=True)
class _Reply:
    """Number of the lines that match, and the first of them."""

    count: int
    numbers: list[int]


def _lines(data: bytes, numbers: list[int]) -> list[tuple[int, str]]:
    wanted = {*numbers}
    lines = io.BytesIO(data.removeprefix(codecs.BOM_UTF8))
    first = enumerate(itertools.islice(lines, max(numbers, default=0)), 1)
    return [(number, line.rstrip(b'\n').decode('utf-8', 'replace')) for number, line in first if number in wanted]


def _files(space: Workspace, path: str) -> Iterator[tuple[str, int]]:
    """The files of a folder, with their sizes."""
    end = time.monotonic() + MAX_SECONDS
    for count, (file, info) in enumerate(space.walk(path, lambda path: _is_skipped(path, set()))):
        if count >= MAX_ENTRIES:
            msg = f'the folder has more than {MAX_ENTRIES:,} files: give a path to search in'
            raise WorkspaceError(msg)
        if time.monotonic() > end:
            raise _took_too_long()
        if stat.S_ISREG(info.st_mode):
            yield file, info.st_size


def _took_too_long() -> WorkspaceError:
    return WorkspaceError(f'the search took longer than {MAX_SECONDS:g} s: use a simpler expression, or give a path')


def _text(space: Workspace, path: str, *, is_required: bool) -> bytes:
    """The bytes of a text file; empty for a binary one, and for one that cannot be read, unless it is required."""
    try:
        data = space.read(path, limit=MAX_BYTES)
    except WorkspaceError:
        if is_required:
            raise
        return b''
    if b'\0' not in data:
        return data
    if is_required:
        msg = f'{path!r} is not a text file, but binary data: search it with code'
        raise WorkspaceError(msg)
    return b''


@contextlib.contextmanager
def _worker(expression: str, ignore_case: bool, most: int) -> Generator[Callable[[bytes], _Reply]]:
    """Start the process that matches lines. It is killed at the end, or when it takes too long."""
    command = [sys.executable, '-I', '-S', str(_WORKER)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        requests, replies = process.stdin, process.stdout

        def ask(message: bytes) -> str | tuple[int, list[int]]:
            try:
                requests.write(message)
                requests.flush()
                return json.loads(replies.readline())
            except (BrokenPipeError, json.JSONDecodeError):
                raise _took_too_long() from None

        def matching_lines(data: bytes) -> _Reply:
            answer = ask(f'{len(data)}\n'.encode() + data)
            if isinstance(answer, str):
                msg = (
                    f'the search needs more than {MAX_WORKER_BYTES >> 20} MB: use a simpler expression, or give a path'
                )
                raise WorkspaceError(msg)
            return _Reply(*answer)

        timer = threading.Timer(MAX_SECONDS, process.kill)
        timer.start()
        try:
            if problem := ask(f'{json.dumps([expression, ignore_case, most, MAX_WORKER_BYTES])}\n'.encode()):
                msg = f'{expression[:100]!r} is not a regular expression: {problem}'
                raise WorkspaceError(msg)
            yield matching_lines
        finally:
            timer.cancel()
            process.kill()
            with contextlib.suppress(BrokenPipeError):  # what it has not read is discarded
                requests.close()
