"""The outcome of one task, and files of outcomes: one JSON object per line."""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


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


T = TypeVar('T')


def append(path: Path, outcome: 'DataclassInstance') -> None:
    """Add a line to a file."""
    with path.open('a', encoding='utf-8') as file:
        file.write(f'{to_json(outcome)}\n')


def read(path: Path) -> list[Outcome]:
    """All outcomes of a file; none if there is no such file yet."""
    return read_as(Outcome, path)


def read_as(kind: type[T], path: Path) -> list[T]:
    """The same for outcomes of another kind."""
    lines = path.read_text('utf-8').splitlines() if path.exists() else []
    return [kind(**json.loads(line)) for line in lines]


def to_json(outcome: 'DataclassInstance') -> str:
    """The outcome as one line."""
    return json.dumps(dataclasses.asdict(outcome), ensure_ascii=False)


def from_json(line: str) -> Outcome:
    """Reverse of `to_json`."""
    fields: dict[str, Any] = json.loads(line)
    return Outcome(**fields)
