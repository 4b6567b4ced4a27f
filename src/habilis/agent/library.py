"""What a run needs of a library of tools, and how one is opened. `habilis.forge` has the library itself."""

import importlib.metadata
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol, cast

from habilis.core.errors import AgentError
from habilis.core.settings import Settings
from habilis.models.contract import Model
from habilis.sandbox import ToolCall
from habilis.sandbox.options import PathLike
from habilis.tools import Tool
from habilis.tools.catalog import SearchableTools

GROUP = 'habilis.libraries'
"""The entry point group of what opens a library. This room comes before the one that has it."""


class ToolFolder(Protocol):
    """A library by its folder: `habilis.forge.library.library.Library`."""

    @property
    def folder(self) -> Path: ...


LibraryChoice = PathLike | ToolFolder | bool
"""The folder of a library, a `Library`, or True for that of the settings."""


class ToolLibrary(SearchableTools, Protocol):
    """A library as runs use it."""

    def find(self, task: str, taken: Collection[str]) -> Sequence[str]:
        """The names of the few tools that fit a task, best first; none of those that are taken."""
        ...

    def helpers(self, model: Model) -> Sequence[Tool[..., object]]:
        """Tools with which code has new tools built by this model."""
        ...

    def finished(self, task: str, calls: Sequence[ToolCall], *, ok: bool, run_id: str) -> None:
        """A run has ended, having called these tools."""
        ...


class OpenLibrary(Protocol):
    """What the entry point is."""

    def __call__(self, settings: Settings, folder: Path | None, /) -> ToolLibrary: ...


def open_library(choice: LibraryChoice, settings: Settings) -> ToolLibrary:
    """Open a library."""
    for entry in importlib.metadata.entry_points(group=GROUP):
        opener = cast('OpenLibrary', entry.load())
        return opener(settings, library_folder(choice))
    msg = f'no library can be opened: the installation of habilis lacks its entry point {GROUP!r}; install it again'
    raise AgentError(msg)


def library_folder(choice: LibraryChoice) -> Path | None:
    """The folder of a library; None for that of the settings."""
    if isinstance(choice, bool):
        return None
    return Path(choice).expanduser() if isinstance(choice, str | os.PathLike) else choice.folder


def is_library_choice(value: object) -> bool:
    """Whether this is a `LibraryChoice`."""
    return isinstance(value, bool | str | os.PathLike) or isinstance(getattr(value, 'folder', None), Path)
