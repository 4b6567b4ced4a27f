"""The data types and protocols of the memory. Read this first.

A *turn* is one message of a conversation, kept verbatim. A *fact* is a short statement drawn from a turn, and there are
few of them. A newer fact replaces an older one, which stays in the history. A *task* is something to do. All of them
belong to one user, and to one *project* or to all: what was said about one is not recalled in another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal, Protocol

FactKind = Literal['fact', 'preference', 'instruction', 'decision']
"""What a fact is about. Preferences and instructions matter for every task, the others for related ones."""

TaskState = Literal['pending', 'in_progress', 'completed', 'cancelled']

OPEN_STATES: tuple[TaskState, ...] = ('pending', 'in_progress')


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One message of a conversation."""

    id: str
    session: str
    role: str
    """Who said it: `user`, `assistant`, or the name of a person."""

    text: str
    """What was said, verbatim."""

    time: float
    """When, in seconds since 1970."""

    position: int
    """Number of the turn in its session, from 1. It orders turns of the same moment."""

    project: str = ''
    """The work that it belongs to, such as a folder; empty if to all."""


@dataclass(frozen=True, kw_only=True)
class Fact:
    """A short statement to remember."""

    id: str
    text: str
    kind: FactKind = 'fact'
    source: str | None = None
    """Id of the turn that it was drawn from."""

    time: float
    superseded_by: str | None = None
    """Id of the newer fact that replaced it."""

    project: str = ''
    """As for a turn. Preferences belong to all."""


Entry = Turn | Fact
"""What search finds."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """Something to do."""

    number: int
    """Counts the tasks of a user, from 1."""

    title: str
    state: TaskState = 'pending'
    after: tuple[int, ...] = ()
    """Numbers of the tasks that must be completed before."""

    due: date | None = None
    notes: str = ''
    created: float = 0.0
    updated: float = 0.0
    project: str = ''
    """As for a turn."""


@dataclass(frozen=True, kw_only=True)
class SessionInfo:
    """A conversation."""

    session: str
    turns: int
    first: float
    """Time of its first turn."""

    last: float
    title: str
    """The start of its first turn."""

    project: str = ''
    """That of its first turn."""


@dataclass(frozen=True, kw_only=True)
class Hit:
    """An entry that search has found, and why."""

    entry: Entry
    score: float
    """By which hits are ordered, 0 to about 1.5."""

    words: float = 0.0
    """Share of the query's weight that its own words match; rare words weigh more. About 0.5 if it has all of them."""

    nearby: float = 0.0
    """The same for the better one of the turns before and after it."""

    meaning: float | None = None
    """Similarity by the embedder, -1 to 1; None without an embedder, or if the entry is not embedded yet."""

    matched: tuple[str, ...] = ()
    """Stems of the words of the query that it has."""

    around: tuple[Turn, ...] = ()
    """The turns directly before and after it, if asked for."""


@dataclass(frozen=True, kw_only=True)
class SessionHit:
    """A conversation that fits a query, with its best turns."""

    session: str
    score: float
    hits: tuple[Hit, ...]


class Embedder(Protocol):
    """Turns texts into vectors, for search by meaning. Search works without one."""

    @property
    def name(self) -> str:
        """Names the model and its version. Vectors of another name are made again."""
        ...

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector per text, all of the same length."""
        ...
