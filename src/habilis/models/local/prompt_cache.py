"""Cache of evaluated system prompts on disk.

An agent sends the same system prompt with every request. Evaluating it takes seconds to minutes on a small machine, so
the resulting attention state is stored in a file whose name contains its key and the hash of its content. A file that
does not match is ignored and created again.
"""

import contextlib
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from habilis.core.folders import cache_folder
from habilis.models.local.backend import ChatTurn

MIN_CHARACTERS = 400
"""Minimum length of a cached system prompt."""

FIRST_TURNS = 2
"""Number of turns of a new conversation: system prompt and first user message. It starts from exactly the cached system
prompt. Tokens shared with an earlier conversation were evaluated in other batches, so their values differ in the last
digits, and the reply would depend on earlier requests."""

MAX_FILES = 8
MAX_BYTES = 500_000_000


def folder() -> Path:
    """Folder of the cache."""
    return cache_folder() / 'prefixes'


def system_turn(turns: tuple[ChatTurn, ...]) -> ChatTurn | None:
    """The leading system message, if it is long enough to cache."""
    if turns and turns[0]['role'] == 'system' and len(turns[0]['content']) >= MIN_CHARACTERS:
        return turns[0]
    return None


def common_prefix(one: str, other: str) -> str:
    """Common prefix of two texts."""
    return one[: common_length(one, other)]


def common_length(one: Sequence[object], other: Sequence[object]) -> int:
    """Length of the common prefix of two sequences."""
    differ = (index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differ, min(len(one), len(other)))


class PromptCache:
    """Cached prompts of one file of weights and one backend."""

    def __init__(self, weights: Path, backend: str) -> None:
        status = weights.stat()
        self._owner = f'{weights.resolve()} {status.st_size} {status.st_mtime_ns} {backend}'
        with contextlib.suppress(OSError):
            folder().mkdir(parents=True, exist_ok=True, mode=0o700)

    def find(self, text: str) -> Path | None:
        """The file of a prompt, if it exists and its hash matches."""
        for path in folder().glob(f'{self._key(text)}-*.kv'):
            try:
                if path.stem.partition('-')[2] == _digest(path):
                    path.touch()  # for eviction of the least recently used
                    return path
                path.unlink()
            except OSError:
                continue
        return None

    def draft(self, text: str) -> Path:
        """Path of a temporary file for the state."""
        return folder() / f'{self._key(text)}.{os.getpid()}.draft'

    def keep(self, text: str, draft: Path) -> None:
        """Rename a written temporary file to its final name. Errors are ignored: the cache is optional."""
        try:
            draft.replace(folder() / f'{self._key(text)}-{_digest(draft)}.kv')
            _evict()
        except OSError:
            with contextlib.suppress(OSError):
                draft.unlink()

    def _key(self, text: str) -> str:
        return hashlib.sha256(f'{self._owner}\n{text}'.encode()).hexdigest()[:32]


def _digest(path: Path) -> str:
    with path.open('rb') as file:
        return hashlib.file_digest(file, 'sha256').hexdigest()[:32]


def _evict() -> None:
    """Remove the least recently used files above the limits. Keeps at least the newest."""
    found = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in folder().iterdir())
    kept = total = 0
    for _, size, path in reversed(found):
        kept, total = kept + 1, total + size
        if kept > 1 and (kept > MAX_FILES or total > MAX_BYTES):
            with contextlib.suppress(OSError):
                path.unlink()
