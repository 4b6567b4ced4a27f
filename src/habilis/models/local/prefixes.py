"""Evaluated beginnings of prompts, kept on disk.

An agent sends the same system prompt every time; to evaluate it takes seconds to minutes on a small machine, and the
result (the attention state) is the same each time. It is kept in a file whose name says what it belongs to and what
its content must hash to. Anything that does not fit is ignored and made again.
"""

import contextlib
import hashlib
import os
from pathlib import Path

from habilis.core.folders import cache_folder
from habilis.models.local.runner import Turn

SHORTEST = 400
"""Characters from which on keeping a beginning is worth a file."""

FIRST_TURNS = 2
"""Of a conversation that begins: the system prompt, and what the user says. It begins with the evaluated system prompt
and nothing else: tokens that another conversation has in common with it were evaluated together with other ones, so
they differ in their last digits, and the reply would depend on what was asked before."""

MOST_FILES = 8
MOST_BYTES = 500_000_000


def folder() -> Path:
    """Of the kept beginnings."""
    return cache_folder() / 'prefixes'


def beginning(turns: tuple[Turn, ...]) -> Turn | None:
    """The leading system message, if it is worth keeping."""
    if turns and turns[0]['role'] == 'system' and len(turns[0]['content']) >= SHORTEST:
        return turns[0]
    return None


def shared(one: str, other: str) -> str:
    """What two texts begin with alike."""
    differ = (index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return one[: next(differ, min(len(one), len(other)))]


class Prefixes:
    """The kept beginnings of one file of weights and one runner."""

    def __init__(self, weights: Path, runner: str) -> None:
        about = weights.stat()
        self._owner = f'{weights.resolve()} {about.st_size} {about.st_mtime_ns} {runner}'
        with contextlib.suppress(OSError):
            folder().mkdir(parents=True, exist_ok=True, mode=0o700)

    def find(self, text: str) -> Path | None:
        """The file for that beginning, if there is one and it is as it was written."""
        for path in folder().glob(f'{self._key(text)}-*.kv'):
            try:
                if path.stem.partition('-')[2] == _digest(path):
                    path.touch()  # the ones not used for longest go first
                    return path
                path.unlink()
            except OSError:
                continue
        return None

    def draft(self, text: str) -> Path:
        """Where the state may be written before it is kept."""
        return folder() / f'{self._key(text)}.{os.getpid()}.draft'

    def keep(self, text: str, draft: Path) -> None:
        """Put a written draft in its place. A cache that cannot be written is no reason to fail."""
        try:
            draft.replace(folder() / f'{self._key(text)}-{_digest(draft)}.kv')
            _forget_old_ones()
        except OSError:
            with contextlib.suppress(OSError):
                draft.unlink()

    def _key(self, text: str) -> str:
        return hashlib.sha256(f'{self._owner}\n{text}'.encode()).hexdigest()[:32]


def _digest(path: Path) -> str:
    with path.open('rb') as file:
        return hashlib.file_digest(file, 'sha256').hexdigest()[:32]


def _forget_old_ones() -> None:
    """The newest stay, as far as number and size allow. The one just made always does."""
    found = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in folder().iterdir())
    kept = total = 0
    for _, size, path in reversed(found):
        kept, total = kept + 1, total + size
        if kept > 1 and (kept > MOST_FILES or total > MOST_BYTES):
            with contextlib.suppress(OSError):
                path.unlink()
