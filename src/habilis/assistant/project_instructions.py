"""Instructions of a project for assistants: `AGENTS.md` and its kin in a folder that the user has shared.

They are the last part of the system prompt, so all before them stays cached. They are read once for each run and
recorded with it: a changed file counts from the next run on, and a resumed run sends what it has sent before.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from habilis.core.folders import real_path
from habilis.core.previews import format_size
from habilis.core.regular_files import read_regular

NAMES = ('AGENTS.md', 'CLAUDE.md', 'HABILIS.md')
MAX_CHARACTERS = 12_000
"""Of all files together, and a model with a small context gets fewer."""

MAX_BYTES = 1_000_000
_HEADING = 'Instructions of the project'


@dataclass(frozen=True, kw_only=True)
class InstructionFile:
    """A file with instructions, as the model gets it."""

    name: str
    """Relative to the shared folder."""

    bytes: int
    text: str
    is_cut: bool

    def __str__(self) -> str:
        cut = f', the first {len(self.text):,} characters' if self.is_cut else ''
        return f'{self.name} ({format_size(self.bytes)}{cut})'


class ProjectInstructions:
    """The instructions of a shared folder, and of its folders down to the current one: the nearest first."""

    def __init__(self, folder: str | os.PathLike[str], *, context_tokens: int) -> None:
        """`context_tokens`: of the model. The instructions take about an eighth of them at most."""
        self._folder = real_path(folder)
        self._budget = min(MAX_CHARACTERS, context_tokens // 2)

    def files(self) -> Sequence[InstructionFile]:
        """The files as they are now."""
        found, left = list[InstructionFile](), self._budget
        for name, data in _read_all(self._folder):
            text = data.decode(errors='replace').strip()
            if text and left > 0 and all(not one.text.startswith(text[:left]) for one in found):
                kept = text[:left]
                found.append(InstructionFile(name=name, bytes=len(data), text=kept, is_cut=len(kept) < len(text)))
                left -= len(kept)
        return tuple(found)

    def text(self) -> str:
        """For the system prompt; empty if there are none."""
        return '\n\n'.join(f'{_HEADING}, from {one.name}:\n{one.text}' for one in self.files())


def _read_all(folder: Path) -> Iterator[tuple[str, bytes]]:
    for place in _folders(folder):
        for name in NAMES:
            path = place / name
            try:  # a link must not bring in something from a folder that is not shared
                if Path(os.path.realpath(path)).is_relative_to(folder):
                    yield str(path.relative_to(folder)), read_regular(path, limit=MAX_BYTES)
            except OSError:  # not there, too large, or no file
                continue


def _folders(folder: Path) -> list[Path]:
    """The current folder, if it is in the shared one, and its parents up to that; else the shared folder alone."""
    current = real_path(os.getcwd())
    upwards = [current, *current.parents]
    return upwards[: upwards.index(folder) + 1] if folder in upwards else [folder]


def repository_of(folder: Path) -> Path | None:
    """The root of the repository that a folder is in. One around the home folder does not count."""
    root = next((one for one in (folder, *folder.parents) if os.path.exists(one / '.git')), None)
    is_around_home = root is not None and Path.home().resolve().is_relative_to(root)
    return None if is_around_home else root
