"""The files of a task inside the sandbox: read-only folders, or the workspace of a sandbox that was passed in."""

import codecs
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import cast

from habilis.core.errors import AgentError, WorkspaceError
from habilis.models.files import File, Image
from habilis.sandbox import Sandbox
from habilis.sandbox.contract import Mount
from habilis.sandbox.files.temporary_folders import temporary_folder
from habilis.sandbox.options import PathLike, SandboxSettings
from habilis.tools.skills.skill import PAGE, Skill
from habilis.tools.skills.writing import write_files

INPUTS = '/inputs'
SKILLS = '/skills'
MAX_NAME = 80
MAX_HEAD = 4000
"""Characters of the start of a text that the model is shown."""


class InputFolder:
    """Folders of the host that are mounted read-only; files can be added while the sandbox runs."""

    def __init__(self, skills: Sequence[Skill] = ()) -> None:
        self._parent, self._remove = temporary_folder()
        self._folders = {target: self._parent / target[1:] for target in ([INPUTS, SKILLS] if skills else [INPUTS])}
        self.folder = self._folders[INPUTS]
        try:
            self.folder.mkdir()
            for skill in skills:
                write_files(self._folders[SKILLS] / skill.name, {PAGE: skill.page().encode(), **skill.files})
        except BaseException:
            self.close()
            raise
        self._paths: dict[tuple[str, str], str] = {}

    def mounted(self, settings: SandboxSettings) -> SandboxSettings:
        """The settings of a sandbox with these folders in it."""
        mounts = settings.get('mounts') or ()
        if isinstance(mounts, Mapping):
            pairs = cast('Mapping[str, PathLike]', mounts).items()
            mounts = [Mount(source=Path(source), target=target) for target, source in pairs]
        own = [Mount(source=folder, target=target) for target, folder in self._folders.items()]
        return SandboxSettings(**{**settings, 'mounts': [*mounts, *own]})  # pyright: ignore[reportArgumentType]

    def add(self, file: File) -> str:
        """Put a file into the folder, unless it is there. Returns its path inside."""
        key = (file.name, file.digest)
        if key not in self._paths:
            name = _free_name(safe_name(file.name), {PurePosixPath(path).name for path in self._paths.values()})
            (self.folder / name).write_bytes(file.data)
            self._paths[key] = f'{INPUTS}/{name}'
        return self._paths[key]

    def close(self) -> None:
        """Remove the folders."""
        self._remove()


async def upload(sandbox: Sandbox, file: File) -> str:
    """Put a file into the workspace of a sandbox that was passed in, beside what is there. Returns its path inside."""
    if not sandbox.has_workspace:
        if isinstance(file, Image):
            return ''
        msg = f'{file.name} cannot be put into a sandbox without a workspace: create it with workspace=True'
        raise AgentError(msg)
    taken: set[str] = set()
    while True:
        name = _free_name(safe_name(file.name), taken)
        path = f'{INPUTS[1:]}/{name}'
        try:
            there = await sandbox.download(path)
        except WorkspaceError:
            await sandbox.upload(path, file.data)
            return f'{sandbox.workspace.target}/{path}'
        if there == file.data:
            return f'{sandbox.workspace.target}/{path}'
        taken.add(name)


def safe_name(name: str) -> str:
    """A name for a file inside: letters, digits, dots, dashes and underscores."""
    letters = ''.join(letter if letter.isalnum() or letter in '._-' else '_' for letter in name).lstrip('.-')
    stem, dot, end = letters.rpartition('.')
    return f'{stem[: MAX_NAME - len(end)]}{dot}{end}' if stem and len(end) <= 8 else letters[:MAX_NAME] or 'file'


def _free_name(name: str, taken: Iterable[str]) -> str:
    taken, number, path = set(taken), 1, PurePosixPath(name)
    while name in taken:
        number += 1
        name = f'{path.stem}-{number}{path.suffix}'
    return name


def check_files(files: Sequence[File], *, python: bool) -> None:
    """Refuse files that nothing could read. Raises `AgentError`."""
    unread = next((file for file in files if not isinstance(file, Image)), None)
    if unread is not None and not python:
        msg = f'{unread.name} is for code, and this agent writes none (python=False): put its text into the task'
        raise AgentError(msg)


def describe_file(file: File, path: str) -> str:
    """Path, type and size of a file, and the start of a text."""
    about = f'{path} ({file.media_type}, {len(file.data):,} bytes)'
    head = '' if isinstance(file, Image) else text_head(file.data)
    if not head.strip():
        return about
    is_whole = len(head.encode()) == len(file.data)
    return f'{about}{"" if is_whole else ", the start"}:\n<text>\n{head.rstrip()}\n</text>'


def text_head(data: bytes) -> str:
    """The start of a text, in whole lines if it has several; empty if the data is no text."""
    try:
        text = codecs.getincrementaldecoder('utf-8')().decode(data[: MAX_HEAD * 4], final=len(data) <= MAX_HEAD * 4)
    except UnicodeDecodeError:
        return ''
    if '\0' in text:
        return ''
    if len(text) <= MAX_HEAD:
        return text
    head, newline, _ = text[:MAX_HEAD].rpartition('\n')
    return f'{head}{newline}' or text[:MAX_HEAD]
