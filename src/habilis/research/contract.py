"""The contract of research: its bounds, the plan, what was found, and the report. Read this first.

A *sub-goal* is a question of the plan. Its *artifact* is the text that answers it. *Notes* are passages of pages,
verbatim; they have ids such as `s203` (sub-goal 2, note 3), which are all that a model may cite. A report renders the
ids as addresses of the pages, so that no address and no quote in it can be invented.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal
from urllib.parse import urlsplit

from habilis.core.errors import HabilisError

EffortName = Literal['low', 'medium', 'high']


class ResearchError(HabilisError):
    """A research cannot start, or its report cannot be written in this form."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much a research may do."""

    rounds: int
    """Rounds of planning and reading."""

    goals: int
    """New sub-goals of one round."""

    searches: int
    """Searches for one sub-goal."""

    pages: int
    """Pages that are read after one search."""

    sections: int
    subsections: int
    """Parts of one section; 0 for none."""

    notes: int
    """Characters of notes from which on a researcher may stop before its last search."""

    calls: int
    """Calls of the model, in all."""

    tokens: int
    """Tokens of these calls, in all."""

    @property
    def writing_calls(self) -> int:
        """Calls that are kept for the report: the outline, and each part written, checked and rewritten once."""
        return 1 + self.sections * (1 + 2 * max(1, self.subsections))


EFFORTS: Mapping[EffortName, Effort] = MappingProxyType(
    {
        'low': Effort(
            rounds=1, goals=2, searches=1, pages=2, sections=2, subsections=0, notes=1_000, calls=20, tokens=100_000
        ),
        'medium': Effort(
            rounds=2, goals=3, searches=2, pages=3, sections=4, subsections=2, notes=3_000, calls=100, tokens=600_000
        ),
        'high': Effort(
            rounds=3, goals=5, searches=4, pages=4, sections=6, subsections=4, notes=8_000, calls=400, tokens=3_000_000
        ),
    }
)

# Plan and findings ----------------------------------------------------------------------------------------------------

GoalStatus = Literal['open', 'done', 'dropped']


@dataclass(frozen=True, kw_only=True)
class SubGoal:
    """One question of the plan."""

    id: int
    text: str
    artifact: str = ''
    """What must be there at the end: a number, a list, a comparison."""

    status: GoalStatus = 'open'
    by_user: bool = False
    """Added by a person: the model cannot drop it."""

    finding: str = ''
    """The artifact itself, once it is done."""


@dataclass(frozen=True, kw_only=True)
class PlanChange:
    """A change of the plan by a person."""

    add: str = ''
    """A new sub-goal."""

    drop: int = 0
    """The id of a sub-goal that is not needed."""


@dataclass(frozen=True, kw_only=True)
class ArchivedPage:
    """A page that was read. Its text is a blob of the run."""

    url: str
    title: str
    digest: str
    """The digest of the text, by which the store of the run has it."""

    accessed: str
    """The day on which it was read, such as `2026-11-18`."""

    date: str | None = None
    author: str | None = None

    @property
    def site(self) -> str:
        """Who says what the page says: the host. Each file is a site of its own."""
        return urlsplit(self.url).netloc.removeprefix('www.') or self.url


@dataclass(frozen=True, kw_only=True)
class Note:
    """A passage of a page."""

    id: str
    goal: int
    digest: str
    """Of the text of the page."""

    start: int
    end: int
    text: str
    """`page text[start:end]`."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """A written part of the report."""

    place: tuple[int, ...]
    """Its number, and the number of the sub-section in it: the order of the report."""

    title: str
    text: str
    """Markdown with citations such as `[s203]`."""


# Cost -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What was used so far."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0

    def __add__(self, other: 'Spent') -> 'Spent':
        return Spent(calls=self.calls + other.calls, tokens=self.tokens + other.tokens, cost=self.cost + other.cost)


# Report ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Citation:
    """A note that the report cites, and what is around it on its page."""

    id: str
    source: int
    """The number of the source, from 1."""

    quote: str
    before: str = ''
    after: str = ''


@dataclass(frozen=True, kw_only=True)
class Report:
    """A report as data. `render_markdown`, `render_html` and `render_pdf` make documents of it."""

    title: str
    sections: tuple[Section, ...] = ()
    sources: tuple[ArchivedPage, ...] = ()
    """The pages that are cited, in the order of their first citations."""

    citations: tuple[Citation, ...] = ()
    """The notes that are cited, in the order of their first citations."""

    open: tuple[str, ...] = ()
    """Sub-goals without an answer."""

    is_complete: bool = True
    """False: it was stopped before all was written."""

    spent: Spent = field(default_factory=Spent)
