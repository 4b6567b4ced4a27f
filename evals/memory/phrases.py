"""The texts of `phrases.toml`."""

import tomllib
from pathlib import Path
from typing import Any

_TEXTS: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix('.toml').read_text('utf-8'))

PEOPLE: list[str] = _TEXTS['people']
PLACES: list[str] = _TEXTS['places']
THINGS: list[str] = _TEXTS['things']
SUBJECTS: list[str] = _TEXTS['subjects']
WEEKDAYS: list[str] = _TEXTS['weekdays']
FILLERS: list[str] = _TEXTS['fillers']
REPLIES: list[str] = _TEXTS['replies']
NEVER: list[str] = _TEXTS['never']
PARAPHRASES: list[tuple[str, str]] = _TEXTS['paraphrases']
EVENTS: list[tuple[str, str]] = _TEXTS['events']
UPDATES: list[tuple[str, str, str]] = _TEXTS['updates']
CONTRADICTIONS: list[tuple[str, str, str]] = _TEXTS['contradictions']
ANSWERS: list[tuple[str, str, str]] = _TEXTS['answers']
