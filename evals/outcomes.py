"""The outcome of one task, and files of outcomes: one JSON object per line."""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One task, as one side solved it or not."""

    set: str
    task: str
    side: str
    solved: bool
    answer: str
    """Its `repr`, or why there is none."""

    seconds: float
    steps: int = 0
    tokens: int = 0
    """Output tokens."""

    model: str = ''
    transcript: Sequence[Sequence[str]] = ()
    """Pairs of role and text, for tasks that were not solved."""


def append(path: Path, outcome: Outcome) -> None:
    """Add a line to a file."""
    with path.open('a', encoding='utf-8') as file:
        file.write(f'{to_json(outcome)}\n')


def read(path: Path) -> list[Outcome]:
    """All outcomes of a file; none if there is no such file yet."""
    lines = path.read_text('utf-8').splitlines() if path.exists() else []
    return [from_json(line) for line in lines]


def to_json(outcome: Outcome) -> str:
    """The outcome as one line."""
    return json.dumps(dataclasses.asdict(outcome), ensure_ascii=False)


def from_json(line: str) -> Outcome:
    """Reverse of `to_json`."""
    fields: dict[str, Any] = json.loads(line)
    return Outcome(**fields)
