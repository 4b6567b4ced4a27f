"""The base class of all events. Each room defines the events it emits: `tools.events`, `agent.events`."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened in a run. Each kind is a subclass with fields of its own."""

    kind: ClassVar[str]
    """Name of the kind in logs, traces and JSON."""

    run: str = ''
    agent: str = ''
    step: int = 0
    at: datetime = field(default_factory=_now)

    @property
    def text(self) -> str:
        """The event's content as text for people: a token, code, output, an answer."""
        return ''
