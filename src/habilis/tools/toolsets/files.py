"""The toolset `files`: reads and changes files of a workspace folder on the host, and no others."""

from functools import partial
from pathlib import Path
from typing import Annotated

from habilis.core.errors import WorkspaceError
from habilis.sandbox.contract import Side
from habilis.sandbox.workspace import Workspace
from habilis.tools.tool import tool
from habilis.tools.toolset import Toolset
from habilis.tools.toolsets.diffs import unified_diff

MAX_BYTES = 10 << 20
"""Maximum size of a file."""

FilePath = Annotated[str, 'inside the workspace, such as notes/today.txt']


def files_toolset(
    workspace: Workspace | Path | str, *, needs_approval: bool = False, enabled: bool = True, side: Side = 'code'
) -> Toolset:
    """The toolset `files`: `read_file`, `write_file` and `update_file`.

    Args:
        workspace: the folder. A path must exist.
        needs_approval: a person sees the diff of each change and must approve it.
        enabled: whether it is enabled at the start.
        side: who may call its tools, as for `@tool`.
    """
    space = workspace if isinstance(workspace, Workspace) else Workspace.at(Path(workspace), must_exist=True)

    @tool(side=side)
    def read_file(path: FilePath) -> str:
        """Read a text file."""
        return _text(space, path)

    @tool(needs_approval=needs_approval, preview=partial(_preview_write, space), side=side)
    def write_file(path: FilePath, text: str) -> str:
        """Make a text file, or replace a whole one. Folders are made as needed."""
        is_new = _text_or_none(space, path) is None
        size = _write(space, path, text)
        return f'{"made" if is_new else "replaced"} {path} ({size:,} bytes)'

    @tool(needs_approval=needs_approval, preview=partial(_preview_update, space), idempotent=False, side=side)
    def update_file(
        path: FilePath,
        old: Annotated[str, 'text that is in the file, exactly'],
        new: str,
        expected_matches: Annotated[int, 'how often old occurs; all are replaced'] = 1,
    ) -> str:
        """Replace a part of a text file."""
        after = _replaced(path, _text(space, path), old, new, expected_matches)
        size = _write(space, path, after)
        return f'changed {path} ({size:,} bytes)'

    return Toolset('files', [read_file, write_file, update_file], enabled=enabled)


def _preview_write(space: Workspace, path: str, text: str) -> str:
    _data(path, text)
    return unified_diff(path, _text_or_none(space, path), text)


def _preview_update(space: Workspace, path: str, old: str, new: str, expected_matches: int = 1) -> str:
    before = _text(space, path)
    after = _replaced(path, before, old, new, expected_matches)
    _data(path, after)
    return unified_diff(path, before, after)


def _text(space: Workspace, path: str) -> str:
    data = space.read(path, limit=MAX_BYTES)
    try:
        text = data.decode('utf-8')
    except UnicodeDecodeError:
        text = '\0'
    if '\0' in text:
        msg = f'{path!r} is not a text file in UTF-8, but binary data: read it with open(…, "rb") in the sandbox'
        raise WorkspaceError(msg)
    return text


def _text_or_none(space: Workspace, path: str) -> str | None:
    """The text, or None if the file does not exist."""
    try:
        return _text(space, path)
    except WorkspaceError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise


def _write(space: Workspace, path: str, text: str) -> int:
    data = _data(path, text)
    space.write(path, data)
    return len(data)


def _data(path: str, text: str) -> bytes:
    """The text in UTF-8. Raises `WorkspaceError` if it cannot be encoded."""
    try:
        data = text.encode('utf-8')
    except UnicodeEncodeError as error:
        msg = f'{path!r} was not written: the text has a lone surrogate at {error.start}, which cannot be encoded'
        raise WorkspaceError(msg) from None
    if b'\0' in data:
        msg = f'{path!r} was not written: the text has a NUL character, so it is binary data'
        raise WorkspaceError(msg)
    return data


def _replaced(path: str, text: str, old: str, new: str, expected: int) -> str:
    if not old:
        msg = f'{path!r} was not changed: `old` is empty; give the text to replace'
        raise WorkspaceError(msg)
    if old not in text and '\r\n' in text:  # the file has Windows line endings
        old, new = _with_crlf(old), _with_crlf(new)
    found = text.count(old)
    if found != expected or not found:
        advice = 'read the file again and copy the text exactly' if not found else 'give more of the text around it'
        msg = f'{path!r} was not changed: `old` occurs {found} times, not {expected}; {advice}, or set expected_matches'
        raise WorkspaceError(msg)
    return text.replace(old, new)


def _with_crlf(text: str) -> str:
    return text.replace('\r\n', '\n').replace('\n', '\r\n')
