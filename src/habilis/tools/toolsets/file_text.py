"""Text files of a workspace: whole, some of their lines, with a part replaced."""

import os

from habilis.core.errors import WorkspaceError
from habilis.core.similar_names import MAX_LENGTH, similar_names
from habilis.sandbox.files.workspace import Workspace

MAX_BYTES = 10 << 20
"""Maximum size of a file, or of the lines that are read of a larger one."""

MAX_SCANNED = 1 << 30
"""Maximum number of bytes that are read to find a line: a file may have a hole, or grow."""

MAX_PLACES = 10
"""Maximum number of places that an error names."""

MIN_SIMILARITY = 0.7
"""How similar a line must be, from 0 to 1, to be quoted in place of one that was not found."""


def read_text(space: Workspace, path: str) -> str:
    """The text of a file. Raises `WorkspaceError` for binary data."""
    with space.opened(path) as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        msg = (
            f'{path!r} has more than {MAX_BYTES:,} bytes: read some of its lines, with start_line and max_lines, '
            'or change it with code'
        )
        raise WorkspaceError(msg)
    return _decoded(path, data)


def read_text_or_none(space: Workspace, path: str) -> str | None:
    """The text, or None if the file does not exist."""
    return None if size_or_none(space, path) is None else read_text(space, path)


def size_or_none(space: Workspace, path: str) -> int | None:
    """The number of bytes, or None if the file does not exist."""
    try:
        with space.opened(path) as file:
            return file.seek(0, os.SEEK_END)
    except WorkspaceError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise


def selected_lines(space: Workspace, path: str, start: int, most: int | None, *, numbers: bool) -> str:
    """Lines of a file, which may be larger than what is returned."""
    if start < 1 or (most is not None and most < 1):
        msg = 'start_line and max_lines must be 1 or more'
        raise WorkspaceError(msg)
    found: list[bytes] = []
    size = scanned = last = 0
    in_line = False  # a line that is too long comes in chunks
    with space.opened(path) as file:
        while most is None or last + (not in_line) < start + most:
            chunk = file.readline(MAX_BYTES + 1)
            if not chunk:
                break
            last += not in_line
            in_line = not chunk.endswith(b'\n')
            scanned += len(chunk)
            if last >= start:
                found.append(chunk)
                size += len(chunk)
            if size > MAX_BYTES:
                msg = f'{path!r}: these lines have more than {MAX_BYTES:,} bytes; read fewer lines'
                raise WorkspaceError(msg)
            if scanned > MAX_SCANNED:
                msg = f'{path!r}: line {start:,} is not in the first {MAX_SCANNED:,} bytes; read it with code'
                raise WorkspaceError(msg)
    if last < start and (last or start > 1):
        msg = f'{path!r} has {last:,} lines, and none at {start:,}'
        raise WorkspaceError(msg)
    texts = [_decoded(path, line) for line in found]
    return ''.join(f'{at:>6}\t{text}' for at, text in enumerate(texts, start)) if numbers else ''.join(texts)


def _decoded(path: str, data: bytes) -> str:
    try:
        text = data.decode('utf-8')
    except UnicodeDecodeError:
        text = '\0'
    if '\0' in text:
        msg = f'{path!r} is not a text file in UTF-8, but binary data: read it with open(…, "rb") in the sandbox'
        raise WorkspaceError(msg)
    return text


def encoded(path: str, text: str) -> bytes:
    """The text in UTF-8. Raises `WorkspaceError` if it cannot be encoded."""
    try:
        data = text.encode('utf-8')
    except UnicodeEncodeError as error:
        msg = f'{path!r} was not written: the text has a lone surrogate at {error.start}, which cannot be encoded'
        raise WorkspaceError(msg) from None
    if b'\0' in data:
        msg = f'{path!r} was not written: the text has a NUL character: pass binary data as bytes'
        raise WorkspaceError(msg)
    return data


def replaced(path: str, text: str, old: str, new: str, expected: int) -> str:
    """The text with `old` replaced everywhere. Raises `WorkspaceError` unless it occurs as often as expected."""
    if not old:
        msg = f'{path!r} was not changed: `old` is empty; give the text to replace'
        raise WorkspaceError(msg)
    if old == new:
        msg = f'{path!r} was not changed: `old` and `new` are the same'
        raise WorkspaceError(msg)
    if '\r\n' in text and (old not in text or text.count('\r\n') == text.count('\n')):  # line endings of Windows
        old, new = _with_crlf(old), _with_crlf(new)
    found = text.count(old)
    if found != expected or not found:
        advice = 'give more of the text around it' if found else 'read the file again and copy the text exactly'
        where = _places(text, old) if found else _almost(text, old)
        msg = f'{path!r} was not changed: `old` occurs {found} times, not {expected}; {advice}, or set expected_matches'
        raise WorkspaceError(f'{msg}{where}')
    return text.replace(old, new)


def _places(text: str, old: str) -> str:
    """The lines where `old` begins."""
    lines: list[int] = []
    at = text.find(old)
    while at >= 0 and len(lines) <= MAX_PLACES:
        lines.append(text.count('\n', 0, at) + 1)
        at = text.find(old, at + len(old))
    named = ', '.join(map(str, lines[:MAX_PLACES]))
    return f' (found in line {named}{", …" if len(lines) > MAX_PLACES else ""})'


def _almost(text: str, old: str) -> str:
    """Where `old` occurs with other white space, a frequent mistake; else the line most like its first other line."""
    lines = [' '.join(line.split()) for line in text.split('\n')]
    wanted = [' '.join(line.split()) for line in old.strip().split('\n')]
    for at in range(len(lines) - len(wanted) + 1):
        if wanted[0] and lines[at : at + len(wanted)] == wanted:
            return f' (line {at + 1} differs in white space: {_quoted(text, at)})'
    return _nearest(text, old)


def _nearest(text: str, old: str) -> str:
    lines = [line[:MAX_LENGTH] for line in text.split('\n')]
    known = set(lines)
    wanted = next((line for line in (line[:MAX_LENGTH] for line in old.split('\n')) if line not in known), '')
    near = similar_names(wanted, lines, cutoff=MIN_SIMILARITY)
    return f' (the most similar is line {(at := lines.index(near[0])) + 1}: {_quoted(text, at)})' if near else ''


def _quoted(text: str, at: int) -> str:
    line = text.split('\n', at + 1)[at]
    return repr(line if len(line) <= MAX_LENGTH else f'{line[:MAX_LENGTH]}…')


def _with_crlf(text: str) -> str:
    return text.replace('\r\n', '\n').replace('\n', '\r\n')
