"""Names of files that other programs obey: git, shells and editors do what they say when the user works in a folder.

So code inside must not change them in a folder that it shares with the user. `file_guard` sees to that.
"""

from collections.abc import Iterable
from pathlib import PurePosixPath

UNDONE = '.undone'
"""Ending of the name that a change gets when it is undone. No program reads a file for that name."""

_SHELLS = (
    *('.bashrc', '.bash_profile', '.bash_login', '.bash_logout', '.bash_aliases', '.profile', '.inputrc', '.envrc'),
    *('.zshrc', '.zshenv', '.zprofile', '.zlogin', '.zlogout', '.ssh'),
)
_EDITORS = ('.vscode', '.idea', '.vimrc', '.exrc', '.nvimrc', '.emacs', '.emacs.d', '.dir-locals.el')
_TOOLS = ('.gitconfig', '.gitmodules', '.githooks', '.husky', '.ripgreprc')
_AGENTS = ('.mcp.json', '.agents', '.claude', '.cursor', '.habilis', '.skills', 'habilis.toml')
START_FILES = frozenset({*_SHELLS, *_EDITORS, *_TOOLS, *_AGENTS})
"""Files, and folders with all that is in them, at any depth."""

GIT = '.git'
GIT_FILES = frozenset({'config', 'config.worktree', 'hooks', 'commondir', 'gitdir'})
"""Those of a git folder that decide what git runs."""

GIT_DATA = frozenset({'objects', 'refs', 'logs', 'lfs'})
"""Folders of a git folder that hold nothing else."""

_MARKS = (frozenset({'head', 'objects', 'refs'}), frozenset({'head', 'commondir'}))


def is_git_folder(name: str, entries: Iterable[str]) -> bool:
    """Whether git takes a folder for one of its own: by its name, or by what is in it, as with a bare repository."""
    inside = {entry.casefold() for entry in entries}  # file systems may ignore case
    return name.casefold() == GIT or any(marks <= inside for marks in _MARKS)


def protected_part(path: str) -> str | None:
    """The component for which a path is protected, by its names alone; None if it is not."""
    for part in PurePosixPath(path).parts:
        if part.casefold() in START_FILES or part.casefold() == GIT:
            return part
    return None
