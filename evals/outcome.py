"""What came of one task."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One task, done by one framework."""

    task: str
    solved: bool
    answer: str
    seconds: float
    steps: int = 0
    tokens: int = 0
