"""Errors as data for the host, with tracebacks of the user's own frames."""

from __future__ import annotations

import linecache
import sys
import traceback
from collections.abc import Iterable
from typing import Any

from habilis.core.codec import Json
from habilis.sandbox.guest.bridge import CellEnded
from habilis.sandbox.guest.optional_rules import CodeRulesError

CELL_PREFIX = '<cell '
USER_PATHS = (CELL_PREFIX, '/workspace', '/packages', '/mnt')
MAX_CHARACTERS = 20_000
MAX_MARKS = 40

_LIBRARY_PATHS = (
    '<frozen ',
    '/packages/',
    traceback.format_exc.__code__.co_filename.rpartition('/')[0] + '/',
    __file__.partition('habilis/sandbox/guest/')[0],
)

_format = traceback.TracebackException
_COMPACT: dict[str, Any] = {'compact': True} if sys.version_info >= (3, 10) else {}
_sources = linecache.cache


def remember_source(filename: str, source: str) -> None:
    """Let tracebacks and `inspect.getsource` find the lines of a cell."""
    lines = [line + '\n' for line in source.splitlines()]
    _sources[filename] = (len(source), None, lines, filename)


def is_user_file(filename: str) -> bool:
    """Whether a frame belongs to the user: a cell, or a file of theirs."""
    return filename.startswith(USER_PATHS)


def is_library_file(filename: str) -> bool:
    """Whether code is of the standard library, of a package, or of the kernel."""
    return filename.startswith(_LIBRARY_PATHS)


def kind_of(error: BaseException) -> str:
    """Why the cell failed, as `CellError.kind`."""
    if isinstance(error, CellEnded):
        return error.kind
    if isinstance(error, MemoryError) and 'Parser stack' not in str(error):
        return 'memory'
    if isinstance(error, CodeRulesError):
        return 'code_rules'
    if isinstance(error, SyntaxError):
        return 'syntax'
    return 'exception'


def describe(error: BaseException, kind: str, hint: str = '') -> Json:
    """The error as data for the host; a hint is the last line of its traceback."""
    if isinstance(error, SyntaxError) and error.text is None:  # raised by the compiler, which has no source
        error.text = _line_of(error.filename, error.lineno)
    formatted = _format(type(error), error, error.__traceback__, **_COMPACT)
    line = _keep_user_frames(formatted)
    if isinstance(error, SyntaxError) and error.filename and is_user_file(error.filename):
        line = error.lineno
    if kind == 'code_rules':
        line = getattr(error, 'line', None) or line
    text = ''.join([*formatted.format(), f'{hint}\n' if hint else ''])
    return {
        'kind': kind,
        'type': type(error).__name__,
        'message': _shorten(_message(error), 4000),
        'traceback': _shorten(_without_rulers(text), MAX_CHARACTERS),
        'line': line,
    }


def _line_of(filename: str | None, number: int | None) -> str | None:
    if number is None or not 0 < number <= len(lines := linecache.getlines(filename or '')):
        return None
    return lines[number - 1]


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as broken:
        return f'<no message: its __str__ raised {type(broken).__name__}>'


def _keep_user_frames(formatted: traceback.TracebackException) -> int | None:
    """Drop the kernel's and the library's frames everywhere in the chain; the line of the innermost cell frame."""
    line: int | None = None
    for link in _chain(formatted):
        mine = [frame for frame in link.stack if is_user_file(frame.filename)]
        link.stack[:] = mine
        if link is formatted:
            line = next((frame.lineno for frame in reversed(mine) if frame.filename.startswith(CELL_PREFIX)), None)
    return line


def _chain(formatted: traceback.TracebackException) -> Iterable[traceback.TracebackException]:
    todo, seen = [formatted], set[int]()
    while todo:
        link = todo.pop()
        if id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        group = getattr(link, 'exceptions', None) or ()  # of Python 3.11 and later
        todo += [other for other in (link.__cause__, link.__context__, *group) if other is not None]


def _without_rulers(text: str) -> str:
    """The traceback without markers (`^^^^`) that are longer than what a reader takes in, or mark a whole line."""
    lines = text.split('\n')
    return '\n'.join(line for number, line in enumerate(lines) if not _is_ruler(line, lines[number - 1]))


def _is_ruler(line: str, above: str) -> bool:
    marks = line.strip()
    return bool(marks) and not marks.strip('^~') and (len(marks) > MAX_MARKS or len(marks) >= len(above.strip()))


def _shorten(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f'{text[:half]}\n… {len(text) - 2 * half:,} characters truncated …\n{text[-half:]}'
