"""Public sets in one form, from a folder: `NAME.jsonl`, one conversation a line.

{"turns": [{"session": "s1", "role": "Ann", "text": "…", "time": 1700000000, "id": "t1"}, …],
 "questions": [{"kind": "date", "text": "…", "gold": ["t1", …]}, …]}

`gold` are the ids of the turns that have the answer. Each conversation is searched alone.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class PublicQuestion:
    """A question about a conversation."""

    kind: str
    text: str
    gold: tuple[str, ...]
    """Ids of the turns that have the answer."""


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """The turns of one memory, and what is asked."""

    turns: tuple[dict[str, Any], ...]
    questions: tuple[PublicQuestion, ...]


def read_sets(folder: Path) -> Iterator[tuple[str, list[Conversation]]]:
    """The sets of a folder with their names."""
    files = sorted(folder.glob('*.jsonl'))
    if not files:
        msg = f'there is no .jsonl file in {folder}'
        raise SystemExit(msg)
    for file in files:
        yield file.stem, [_conversation(json.loads(line)) for line in file.read_text().splitlines() if line.strip()]


def _conversation(data: dict[str, Any]) -> Conversation:
    asked = [one for one in data['questions'] if one['gold']]
    questions = [PublicQuestion(kind=one['kind'], text=one['text'], gold=tuple(one['gold'])) for one in asked]
    return Conversation(turns=tuple(data['turns']), questions=tuple(questions))
