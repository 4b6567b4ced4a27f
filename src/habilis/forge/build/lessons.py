"""Reasons of failed builds: given to the next build of a similar tool, and dropped if they did not help."""

import json
import os
import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from habilis.core.regular_files import read_regular_text

MAX_TRIES = 2
"""A lesson that was given so often without success is dropped."""

_SIMILAR = 0.5
"""Share of common words of two requests for the same kind of tool."""


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """One failure."""

    request: str
    reason: str
    tried: int = 0
    """How often it was given to an attempt that failed too."""


class Lessons:
    """The lessons of one library, in a file of JSON lines."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> list[Lesson]:
        """All lessons. Lines that cannot be read are skipped."""
        try:
            lines = read_regular_text(self._path).splitlines()
        except (OSError, UnicodeDecodeError):
            return []
        return [lesson for line in lines if (lesson := _parse(line)) is not None]

    def similar_to(self, request: str, *, limit: int = 3) -> list[Lesson]:
        """The lessons of similar requests, newest first."""
        words = _words(request)
        found = [one for one in self.read() if _overlap(words, _words(one.request)) >= _SIMILAR]
        return found[::-1][:limit]

    def failed(self, request: str, reason: str, given: list[Lesson]) -> None:
        """Keep why an attempt failed. The lessons that it was given did not help."""
        others = [one for one in self.read() if one not in given]
        kept = [replace(one, tried=one.tried + 1) for one in given if one.tried + 1 < MAX_TRIES]
        self._write([*others, *kept, Lesson(request=request, reason=reason[:500])])

    def succeeded(self, given: list[Lesson]) -> None:
        """Keep the lessons that a successful attempt was given; they count as new."""
        if given:
            self._write([replace(one, tried=0) if one in given else one for one in self.read()])

    def _write(self, lessons: list[Lesson]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = self._path.with_name(f'{self._path.name}.{os.getpid()}')
        new.write_text(''.join(f'{json.dumps(asdict(one))}\n' for one in lessons[-500:]), encoding='utf-8')
        new.replace(self._path)


def _parse(line: str) -> Lesson | None:
    try:
        return Lesson(**json.loads(line))
    except (ValueError, TypeError):
        return None


def _words(text: str) -> set[str]:
    return set(re.findall(r'[a-z]{3,}', text.lower()))


def _overlap(one: set[str], other: set[str]) -> float:
    return len(one & other) / (len(one | other) or 1)
