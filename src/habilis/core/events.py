"""What happens in a run, as it happens. Everything that watches (terminal, page, hooks, traces, memory) reads these."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

EventKind = Literal[
    'run_started',
    'run_resumed',
    'step_started',
    'model_requested',
    'text',
    'thinking',
    'model_replied',
    'code',
    'output',
    'tool_called',
    'tool_returned',
    'tool_logged',
    'approval_asked',
    'approval_answered',
    'question',
    'notice',
    'cell_finished',
    'observation',
    'compacted',
    'retry',
    'hook_failed',
    'step_finished',
    'answer',
    'run_finished',
    'run_failed',
]


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True)
class Event:
    """One thing that happened. `data` holds the domain object it is about, by kind; see `docs/reference/events.md`."""

    kind: EventKind
    run: str = ''
    agent: str = ''
    step: int = 0
    text: str = ''
    """The main thing for people: a token, code, output, an answer."""

    data: object = None
    at: datetime = field(default_factory=_now)


Emit = Callable[[Event], None]
"""Takes an event. Must not block."""
