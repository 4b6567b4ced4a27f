"""What a turn changes in the files of a shared folder, as diffs: without a repository, and without checkpoints."""

import asyncio
import contextlib
import functools
import os
import stat
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from habilis.agent.events import AgentEvent, ApprovalAsked, CellFinished, ToolReturned
from habilis.agent.options import WorkOptions
from habilis.core.errors import WorkspaceError
from habilis.core.folders import data_folder
from habilis.core.previews import format_size
from habilis.sandbox.files.workspace import WORKSPACE, Workspace
from habilis.tools.toolsets.diffs import unified_diff
from habilis.tools.toolsets.file_search import SKIPPED

MAX_FILES = 10_000
MAX_FILE_BYTES = 128 << 10
"""Maximum size of a file of which a diff is made."""

MAX_BYTES = 32 << 20
"""Maximum size of all files that are kept, to make diffs of them."""

RECENT_SECONDS = 0.1
"""A file that changed so shortly before it was read is read again: it may change twice within one tick of its clock."""


@dataclass(frozen=True, kw_only=True)
class FileEdit:
    """One file of a shared folder that is new, changed or gone."""

    path: str
    size: int | None
    """In bytes; None if it is gone."""

    before: str | None = None
    after: str | None = None
    """The text; None if there was no such file, or if it is binary or large."""

    is_new: bool = False

    @functools.cached_property
    def diff(self) -> str:
        """A unified diff; empty for a binary file, and one that is large."""
        is_text = (self.is_new or self.before is not None) and (self.size is None or self.after is not None)
        return unified_diff(self.path, self.before, self.after) if is_text else ''

    @property
    def lines(self) -> tuple[int, int]:
        """How many were added and removed."""
        marks = [line[:1] for line in self.diff.split('\n')[2:]]
        return marks.count('+'), marks.count('-')

    def __str__(self) -> str:
        """The path with what happened to the file, on one line."""
        state = 'deleted' if self.size is None else 'new' if self.is_new else ''
        added, removed = self.lines
        much = f'+{added} −{removed}' if self.diff else '' if self.size is None else format_size(self.size)
        name = self.path if self.path.isprintable() else repr(self.path)
        return f'{name} {", ".join(filter(None, (state, much)))}'


@dataclass(frozen=True, kw_only=True)
class _KeptFile:
    state: tuple[int, int, int]
    """Size, modification time and inode."""

    is_recent: bool
    data: bytes | None
    """None if it is too large."""

    @property
    def text(self) -> str | None:
        """None if it is binary."""
        if self.data is None or b'\0' in self.data:
            return None
        try:
            return self.data.decode()
        except UnicodeDecodeError:
            return None


class FolderEdits:
    """Compares the files of a folder with what they were at the start of a turn, and when it looked last."""

    def __init__(self, folder: str | os.PathLike[str] | None, ours: Iterable[Path] = ()) -> None:
        """Without a folder there are no edits. `ours` are files and folders that the session itself writes."""
        self._workspace = Workspace(Path(folder or os.devnull).resolve())  # which has no files
        self._ours = tuple(f'{path.resolve()}{end}' for path in ours for end in ('/', '-'))
        self._is_partial = False
        """Whether there are too many files to know all of them."""

        self._files: dict[str, _KeptFile] = {}
        self._before: dict[str, _KeptFile] = {}
        self._asked: set[tuple[str, int]] = set()
        """Calls of tools whose diff a person has seen."""

    @classmethod
    def of(cls, options: WorkOptions, ours: Iterable[object]) -> 'FolderEdits':
        """Those of the folder that an agent with these options may change, if there is one."""
        paths = [path for path in (data_folder(), *ours) if isinstance(path, Path)]
        settings = options.get('sandbox_settings') or {}
        folder = options.get('workspace') or settings.get('workspace')
        return cls(None if isinstance(folder, bool) or settings.get('read_only') is True else folder, paths)

    async def begin(self) -> None:
        """Read the files, before a turn."""
        self._files = await asyncio.to_thread(self._read_all)
        self._before, self._asked = dict(self._files), set()

    def after(self, event: AgentEvent) -> list[FileEdit]:
        """What has changed since the last look, if this event may have changed it, and nobody has seen the diff."""
        match event:
            case CellFinished():
                return self._look()
            case ToolReturned(call=call) if call.ok and isinstance(path := (call.arguments or {}).get('path'), str):
                found = self._look_at(path)
                return [] if (event.run, call.id) in self._asked else found
            case ApprovalAsked(request=request) if request.diff:
                self._asked.add((event.run, request.id))
            case _:
                pass
        return []

    def end(self) -> list[FileEdit]:
        """All that has changed since the start of the turn."""
        self._look()
        return _compare(self._before, self._files)

    def _look(self) -> list[FileEdit]:
        """What has changed since the last look."""
        before, was_partial = self._files, self._is_partial
        found = self._read_all()
        if was_partial:  # what was not seen before need not be new
            found = {path: file for path, file in found.items() if path in before}
        if self._is_partial:  # what is not seen now need not be gone
            found |= {path: before[path] for path in before.keys() - found.keys() if self._has(path)}
        self._files = found
        return _compare(before, found)

    def _look_at(self, path: str) -> list[FileEdit]:
        """What has changed in one file, which is there."""
        name = str(PurePosixPath(path)).removeprefix(f'{WORKSPACE}/')
        before = {name: self._files[name]} if name in self._files else {}
        with contextlib.suppress(WorkspaceError), self._workspace.opened(name) as file:
            self._files[name] = self._read(name, os.fstat(file.fileno()), MAX_FILE_BYTES)
            found = _compare(before, {name: self._files[name]})
            return [replace(edit, is_new=edit.is_new and not self._is_partial) for edit in found]
        return []

    def _read_all(self) -> dict[str, _KeptFile]:
        found: dict[str, _KeptFile] = {}
        listed: list[tuple[str, os.stat_result]] = []
        with contextlib.suppress(WorkspaceError):  # the folder was removed
            listed += self._workspace.walk(skip=_is_skipped, limit=MAX_FILES)
        self._is_partial |= len(listed) >= MAX_FILES
        start, room = f'{self._workspace.folder}/', MAX_BYTES
        for path, info in listed:
            if stat.S_ISREG(info.st_mode) and not f'{start}{path}/'.startswith(self._ours):
                found[path] = file = self._read(path, info, room)
                room -= len(file.data or b'')
        return found

    def _has(self, path: str) -> bool:
        try:
            return self._workspace.is_file(path)
        except WorkspaceError:
            return False

    def _read(self, path: str, info: os.stat_result, room: int) -> _KeptFile:
        state = (info.st_size, info.st_mtime_ns, info.st_ino)
        known = self._files.get(path)
        if known is not None and known.state == state and not known.is_recent:
            return known
        data = None
        if info.st_size <= min(room, MAX_FILE_BYTES):
            with contextlib.suppress(WorkspaceError):  # it vanished, or cannot be read
                data = self._workspace.read(path, limit=MAX_FILE_BYTES)
        return _KeptFile(state=state, is_recent=time.time() - info.st_mtime < RECENT_SECONDS, data=data)


def _compare(before: Mapping[str, _KeptFile], after: Mapping[str, _KeptFile]) -> list[FileEdit]:
    found: list[FileEdit] = []
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        if old is not new and not _is_same(old, new):
            size = None if new is None else new.state[0]
            texts = [None if file is None else file.text for file in (old, new)]
            found.append(FileEdit(path=path, size=size, before=texts[0], after=texts[1], is_new=old is None))
    return found


def _is_same(old: _KeptFile | None, new: _KeptFile | None) -> bool:
    if old is None or new is None:
        return False
    return old.data == new.data if old.data is not None or new.data is not None else old.state == new.state


def _is_skipped(folder: str) -> bool:
    return folder.rpartition('/')[2] in SKIPPED
