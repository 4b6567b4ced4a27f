"""`Files`: tools that read, change and search the files of a workspace, and no others."""

import functools
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

from habilis.core.errors import ToolCallError
from habilis.sandbox.contract import Side
from habilis.sandbox.files.workspace import Workspace
from habilis.tools.logs import log, sandbox
from habilis.tools.tool import tool
from habilis.tools.toolset import Toolset
from habilis.tools.toolsets.diffs import unified_diff
from habilis.tools.toolsets.file_search import Matches, find, search
from habilis.tools.toolsets.file_text import (
    encoded,
    read_text,
    read_text_or_none,
    replaced,
    selected_lines,
    size_or_none,
)

MAX_PATHS = 1000
"""Maximum number of paths that `find_files` returns."""

MAX_MATCHES = 1000
"""Maximum number of lines that `grep` returns."""

MAX_LINE = 500
"""Maximum number of characters of a line that `grep` returns."""

FilePath = Annotated[str, 'inside the workspace, such as notes/today.txt']


class Files(Toolset):
    """The toolset `files`: `read_file`, `write_file`, `update_file`, `find_files` and `grep`.

    They work from the host, whatever the backend of the sandbox is. No path and no link leads out of the workspace.
    """

    def __init__(
        self,
        workspace: Workspace | Path | str | None = None,
        *,
        needs_approval: bool = False,
        enabled: bool = True,
        side: Side = 'code',
        protect: bool = True,
    ) -> None:
        """Create the toolset.

        Args:
            workspace: a folder that exists; by default the workspace of the run.
            needs_approval: a person sees the diff of each change and must approve it. Then code cannot make one.
            enabled: whether it is enabled at the start.
            side: who may call its tools, as for `@tool`.
            protect: refuse to write `.git`, and start files of shells and editors; for a folder that is named here.
        """
        if isinstance(workspace, str | Path):
            workspace = Workspace.at(Path(workspace), must_exist=True, protected=protect)
        self._own = workspace
        reads = tool(side=side, read_only=True)
        changes = functools.partial(tool, needs_approval=needs_approval, side=side)
        tools = [
            reads(self.read_file),
            changes(preview=self._preview_write)(self.write_file),
            changes(preview=self._preview_update, idempotent=False)(self.update_file),
            reads(self.find_files),
            reads(self.grep),
        ]
        super().__init__('files', tools, enabled=enabled)
        self.needs_workspace = workspace is None
        self.folder = None if workspace is None else workspace.folder
        self.asks_to_change = ('write_file', 'update_file') if needs_approval else ()

    def read_file(
        self,
        path: FilePath,
        start_line: Annotated[int, 'from 1'] = 1,
        max_lines: int | None = None,
        numbers: Annotated[bool, 'put the line number before each line'] = False,
    ) -> str:
        """Read a text file, or some of its lines."""
        if (start_line, max_lines, numbers) == (1, None, False):
            return read_text(self._space, path)
        return selected_lines(self._space, path, start_line, max_lines, numbers=numbers)

    def write_file(self, path: FilePath, text: str | bytes, create_dirs: bool = True) -> str:
        """Make a file, or replace a whole one. Folders are made as needed."""
        space = self._space
        if isinstance(text, bytes):
            is_new, data = size_or_none(space, path) is None, text
        else:
            is_new, data = read_text_or_none(space, path) is None, encoded(path, text)
        space.write(path, data, create_dirs=create_dirs)
        return f'{"made" if is_new else "replaced"} {path} ({len(data):,} bytes)'

    def update_file(
        self,
        path: FilePath,
        old: Annotated[str, 'text that is in the file, exactly'],
        new: str,
        expected_matches: Annotated[int, 'how often old occurs; all are replaced'] = 1,
    ) -> str:
        """Replace a part of a text file."""
        space = self._space
        data = encoded(path, replaced(path, read_text(space, path), old, new, expected_matches))
        space.write(path, data)
        return f'changed {path} ({len(data):,} bytes)'

    def find_files(
        self, pattern: Annotated[str, 'such as *.csv or src/**/*.py; ** is any number of folders']
    ) -> list[str]:
        """Paths of the files and folders that match a glob pattern. Folders end with a slash."""
        found = find(self._space, pattern)
        if not found.complete:
            log('there are too many files, and not all were visited: start the pattern with a folder')
        elif len(found.paths) > MAX_PATHS:
            log(f'the first {MAX_PATHS:,} of {len(found.paths):,} paths: use a narrower pattern')
        return found.paths[:MAX_PATHS]

    def grep(
        self,
        pattern: Annotated[str, 'a regular expression, for each line'],
        path: Annotated[str, 'a file, or a folder to search in'] = '.',
        glob: Annotated[str | None, 'only these files, such as *.py or src/**'] = None,
        ignore_case: bool = False,
        output: Annotated[
            Literal['content', 'files', 'count'], 'lines as path:line:text, paths, or path:number of lines'
        ] = 'content',
    ) -> str:
        """Search text files for a regular expression. Returns one line for each match; empty if nothing matches."""
        large: list[str] = []
        space = self._space
        most = MAX_MATCHES + 1 if output == 'content' else 0
        found = search(
            space, pattern, path=path, names=glob, ignore_case=ignore_case, most=most, too_large=large.append
        )
        if output == 'content':
            lines = list(islice(_matching_lines(found), most))
            if len(lines) > MAX_MATCHES:
                log(f'only the first {MAX_MATCHES:,} lines: search for something more specific')
                lines.pop()
        else:
            lines = [_shown(file.path) if output == 'files' else f'{_shown(file.path)}:{file.count}' for file in found]
        if large:
            log(f'too large, and not searched: {", ".join(map(_shown, large[:5]))}{", …" if large[5:] else ""}')
        return '\n'.join(lines)

    @property
    def _space(self) -> Workspace:
        if self._own is not None:
            return self._own
        current = sandbox()
        if current is None or not current.has_workspace:
            msg = 'there is no workspace: pass Agent(workspace=…), or name a folder: Files("folder")'
            raise ToolCallError(msg)
        return current.workspace

    def _preview_write(self, path: str, text: str | bytes, create_dirs: bool = True) -> str:
        self._space.check_writable(path)
        if isinstance(text, bytes):
            size = size_or_none(self._space, path)
            return f'{_shown(path)}: {len(text):,} bytes, {"new" if size is None else f"instead of {size:,}"}'
        encoded(path, text)
        return unified_diff(path, read_text_or_none(self._space, path), text)

    def _preview_update(self, path: str, old: str, new: str, expected_matches: int = 1) -> str:
        self._space.check_writable(path)
        before = read_text(self._space, path)
        after = replaced(path, before, old, new, expected_matches)
        encoded(path, after)
        return unified_diff(path, before, after)


def _matching_lines(found: Iterator[Matches]) -> Iterator[str]:
    for file in found:
        yield from (f'{_shown(file.path)}:{number}:{_cut(text)}' for number, text in file.lines)


def _shown(path: str) -> str:
    """A path in one line."""
    return path if path.isprintable() else repr(path)


def _cut(line: str) -> str:
    return line if len(line) <= MAX_LINE else f'{line[:MAX_LINE]}… ({len(line):,} characters)'
