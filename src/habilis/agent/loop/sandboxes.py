"""The sandboxes of a run: one made for it, one that is shared, or several."""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from habilis.agent.context.observation import ROLLED_BACK
from habilis.agent.context.truncation import Bounds, truncate
from habilis.agent.loop.input_files import InputFolder, upload
from habilis.core.errors import AgentError, ToolCallError
from habilis.core.folders import real_path
from habilis.models.files import File
from habilis.sandbox import Sandbox
from habilis.sandbox.files.workspace import WORKSPACE
from habilis.sandbox.options import SandboxSettings
from habilis.tools import Tool, Toolset, tool
from habilis.tools.skills.skill import Skill

SANDBOX_TOOLS = frozenset({'run_in', 'copy_file'})
"""Names of the tools that work across several sandboxes."""

MAX_LISTED = 20
"""Maximum number of files listed by name."""

MAX_SCANNED = 1000
MAX_NAME = 80
READ_ONLY = 'nothing in it can be changed: it is read-only'
WRITABLE = 'Your code can change files in it.'
NOT_SHARED = f'The folder {WORKSPACE} is no longer shared with your code.'

SandboxChoice = str | Sandbox | Mapping[str, Sandbox]
"""Name of a backend (a new sandbox for each run), a sandbox to use, or several by name (the first runs the code)."""


@dataclass(kw_only=True)
class Sandboxes:
    """The sandboxes of one run."""

    main: Sandbox
    """Runs the model's code."""

    others: Mapping[str, Sandbox] = field(default_factory=dict[str, Sandbox])
    main_name: str = 'main'
    is_owned: bool = False
    """Whether `main` was made for this run."""

    settings: SandboxSettings = field(default_factory=SandboxSettings)
    """Those that `main` was made with."""

    inputs: InputFolder | None = None
    """Where the files of the task are; None if there is no such folder."""

    @property
    def by_name(self) -> dict[str, Sandbox]:
        """All sandboxes by name."""
        return {self.main_name: self.main, **self.others}

    def describe_files(self) -> str:
        """The workspace and the files in it, for the model; empty if there is no workspace."""
        return describe_folder(self.main.workspace.folder) if self.main.has_workspace else ''

    def describe_rights(self) -> str:
        """Why code cannot change the files of the workspace, for the model; empty if it can, or if there is none."""
        if not self.main.has_workspace:
            return ''
        advice = self.main.write_advice or (READ_ONLY if self.main.workspace.read_only else '')
        return f'{advice[:1].upper()}{advice[1:]}.' if advice else ''

    async def close(self) -> None:
        """Close the sandbox that was made for this run."""
        if self.is_owned:
            await self.main.close()
            if self.inputs is not None:
                self.inputs.close()

    async def add_file(self, file: File) -> str:
        """Put a file of the task where code can open it. Returns its path inside; empty if there is no place."""
        if self.inputs is None:
            return await upload(self.main, file)
        return await asyncio.to_thread(self.inputs.add, file)

    def tools(self, bounds: Bounds) -> Sequence[Callable[..., object]]:
        """Tools that run code in the other sandboxes and copy files, where there are others."""
        return _sandbox_tools(self, bounds) if self.others else ()


def describe_folder(folder: Path) -> str:
    """The files of a workspace by name. Names are quoted: they come from anywhere."""
    try:
        with os.scandir(folder) as entries:
            listed = sorted(islice(entries, MAX_SCANNED), key=lambda entry: entry.name)
    except OSError:
        return ''
    visible = [entry for entry in listed if not entry.name.startswith('.')]
    if not visible:
        return f'Your code runs in the folder {WORKSPACE}, which has no files yet.'
    names = ', '.join(_describe_entry(entry) for entry in visible[:MAX_LISTED])
    more = len(visible) - MAX_LISTED
    return f'Your code runs in the folder {WORKSPACE}, which has: {names}{f" and {more} more" if more > 0 else ""}.'


def _describe_entry(entry: 'os.DirEntry[str]') -> str:
    name = entry.name if len(entry.name) <= MAX_NAME else f'{entry.name[:MAX_NAME]}…'
    try:
        if entry.is_dir(follow_symlinks=False):
            return f'{name + "/"!r}'
        return f'{name!r} ({entry.stat(follow_symlinks=False).st_size:,} bytes)'
    except OSError:
        return f'{name!r}'


async def open_sandboxes(
    choice: SandboxChoice,
    settings: SandboxSettings,
    tools: Iterable[object],
    files: bool = False,
    skills: Sequence[Skill] = (),
) -> Sandboxes:
    """Create the sandbox of a run, with a folder for the files of its task and its skills, or take those given.

    Code in it cannot change files that its `tools` change only after a person has agreed.
    """
    if isinstance(choice, str):
        if (advice := write_advice(tools, _shared_folders(settings))) and not settings.get('read_only'):
            settings = {**settings, 'read_only': advice}
        inputs = await asyncio.to_thread(InputFolder, skills) if files or skills else None
        settings = settings if inputs is None else inputs.mounted(settings)
        try:
            main = await Sandbox.create(choice, **settings)
        except BaseException:
            if inputs is not None:
                inputs.close()
            raise
        return Sandboxes(main=main, is_owned=True, settings=settings, inputs=inputs)
    if isinstance(choice, Sandbox):
        return Sandboxes(main=choice)
    if not choice:
        msg = 'an agent needs at least one sandbox'
        raise AgentError(msg)
    (name, main), *others = choice.items()
    return Sandboxes(main=main, main_name=name, others=dict(others))


async def open_sandbox(choice: SandboxChoice, settings: SandboxSettings, tools: Iterable[object]) -> Sandbox:
    """A sandbox as runs get it; a copy, if they share one. Raises `AgentError` if they have several."""
    if isinstance(choice, Sandbox):
        return await choice.fork()
    if not isinstance(choice, str):
        msg = 'the runs of this agent have several sandboxes: create those that you need with Sandbox.create'
        raise AgentError(msg)
    return (await open_sandboxes(choice, settings, tools)).main


def write_advice(tools: Iterable[object], folders: Sequence[Path], workspace: Path | None = None) -> str:
    """What code is told that tries to change files in these folders; empty if no tool asks before it does so.

    `workspace` is that of the run, if it is known; else the first of these folders is taken for it.
    """
    names = [name for name, folder in _asking(tools) if _is_in(folder or workspace, folders)]
    if not names:
        return ''
    listed = f'{", ".join(names[:-1])} or {names[-1]}' if names[1:] else names[0]
    return f'files are read-only for your code, because changes need approval: call {listed}'


def _asking(tools: Iterable[object]) -> Iterator[tuple[str, Path | None]]:
    """The tools that ask before they change files in a folder, also those taken out of their toolset."""
    for one in tools:
        for each in one.tools if isinstance(one, Toolset) else (one,):
            if not isinstance(each, Tool):
                continue
            for owner in (one, getattr(each.function, '__self__', None)):
                if isinstance(owner, Toolset) and each.name in owner.asks_to_change:
                    yield each.name, owner.folder
                    break


def _is_in(folder: Path | None, shared: Sequence[Path]) -> bool:
    """Whether a folder, or a part of it, is shared with code. None is the workspace of the run."""
    return folder is None or any(folder.is_relative_to(one) or one.is_relative_to(folder) for one in shared)


def _shared_folders(settings: SandboxSettings) -> list[Path]:
    """The folders of the host that code may change."""
    workspace, mounts = settings.get('workspace'), settings.get('mounts') or ()
    named = [] if workspace is None or isinstance(workspace, bool) else [workspace]
    named += [] if isinstance(mounts, Mapping) else [mount.source for mount in mounts if mount.writable]
    return [real_path(folder) for folder in named]


def check_read_only(sandboxes: Sandboxes, tools: Iterable[object]) -> None:
    """Refuse sandboxes whose code can change files past a tool that asks before it does. Raises `AgentError`."""
    tools, main = list(tools), sandboxes.main
    workspace = main.workspace.folder if main.has_workspace else None
    for name, sandbox in sandboxes.by_name.items():
        folders = sandbox.shared_folders
        if folders and not sandbox.write_advice and (advice := write_advice(tools, folders, workspace)):
            msg = (
                f'a tool asks before it changes files, and code in the sandbox {name!r} can change them without: '
                f'create it with read_only={advice!r}, or pass the toolset to the agent, not to the run'
            )
            raise AgentError(msg)


def _sandbox_tools(sandboxes: Sandboxes, bounds: Bounds) -> Sequence[Callable[..., object]]:
    by_name = sandboxes.by_name

    def find(name: str) -> Sandbox:
        if name not in by_name:
            msg = f'there is no sandbox {name!r}; there is {", ".join(map(repr, by_name))}'
            raise ToolCallError(msg)
        return by_name[name]

    async def run_in(sandbox: str, code: str) -> str:
        """Run Python code in another sandbox; returns what it printed and the value of its last line."""
        if sandbox == sandboxes.main_name:
            msg = f'your code runs in {sandbox!r} already: write it without run_in'
            raise ToolCallError(msg)
        cell = await find(sandbox).run(code)
        if cell.error is not None:
            undone = f'\n{ROLLED_BACK}' if cell.rolled_back else ''
            raise ToolCallError(f'in {sandbox!r}: {cell.error.traceback.strip() or cell.error}{undone}')
        return truncate(f'{cell.stdout}{cell.text or ""}'.rstrip('\n'), bounds).text

    async def copy_file(path: str, source: str, target: str) -> str:
        """Copy a file from the workspace of one sandbox to another's."""
        data = await find(source).download(path)
        if advice := find(target).write_advice:
            msg = f'{path} was not copied: {advice}'
            raise ToolCallError(msg)
        await find(target).upload(path, data)
        return f'{path}: {len(data):,} bytes copied from {source} to {target}'

    others = ', '.join(map(repr, sandboxes.others))
    run_in.__doc__ = f'{run_in.__doc__} Yours is {sandboxes.main_name!r}; there is also {others}.'
    # Not answered from the record: their effects are in the sandboxes, and are restored with those.
    return (tool(as_sync=True, in_memory=True)(run_in), tool(as_sync=True, in_memory=True)(copy_file))
