"""The base class of all events. Each room defines the events it emits: `tools.events`, `agent.events`."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar

from habilis.core.previews import short_repr

SHOWN_LENGTH = 200
"""Max characters of a field in the `repr` of an event."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True, repr=False)
class Event:
    """Something that happened in a run. Each kind is a subclass with fields of its own."""

    kind: ClassVar[str]
    """Name of the kind in logs, traces and JSON."""

    run: str = field(default='', repr=False)
    parent: str = field(default='', repr=False)
    """Id of the run whose tool started this run; empty for a run of its own."""

    agent: str = field(default='', repr=False)
    step: int = 0
    at: datetime = field(default_factory=_now, repr=False)

    def __init_subclass__(cls, **options: object) -> None:
        """Events of every kind are printed in short."""
        super().__init_subclass__(**options)
        cls.__repr__ = Event.__repr__  # before `@dataclass` makes a longer one

    def __repr__(self) -> str:
        return short_repr(self, SHOWN_LENGTH)

    @property
    def text(self) -> str:
        """The event's content as text for people: a token, code, output, an answer."""
        return ''
