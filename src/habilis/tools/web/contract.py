"""What the web gives: results of a search, pages, and pages that could not be had."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One result of a search."""

    title: str
    url: str
    snippet: str = ''


@dataclass(frozen=True, slots=True)
class WebPage:
    """The text of a page, as Markdown. It is what a stranger wrote: data, never instructions."""

    url: str
    """Where it was found in the end, after redirects."""
    title: str
    text: str
    date: str | None = None
    author: str | None = None


@dataclass(frozen=True, slots=True)
class PageFailure:
    """A page that could not be had, and why."""

    url: str
    reason: str


class PageSource(Protocol):
    """Somewhere to search and to read: the web, a folder, or several together."""

    @property
    def description(self) -> str:
        """One line for the user: where pages come from, and how to get a better source."""
        ...

    async def search(self, query: str, page: int = 1) -> list[SearchResult]: ...

    async def fetch(self, urls: Sequence[str]) -> list[WebPage | PageFailure]:
        """The pages in the order of `urls`; one that fails does not lose the others."""
        ...
