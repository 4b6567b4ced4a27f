"""`PageArchive`: the pages of a run. What a source gives is recorded: the text as a blob, by its digest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from habilis.journal import Codec, Journal, fingerprint, recording_scope
from habilis.journal.encoding import digest_of
from habilis.research.contract import ArchivedPage, ResearchError
from habilis.tools.web.contract import PageFailure, PageSource, WebPage

FETCH = 'fetch'
"""The name of the step."""


@dataclass(frozen=True, kw_only=True)
class FetchedPages:
    """What came of a fetch."""

    pages: tuple[ArchivedPage, ...]
    failures: tuple[PageFailure, ...]


FETCHED: Codec[FetchedPages] = Codec(FetchedPages, what='the pages')


class PageArchive:
    """The pages of the run of the current flow."""

    def __init__(self, source: PageSource) -> None:
        scope = recording_scope()
        if scope is None:
            msg = 'pages are archived in the journal of a run: call this inside a flow'
            raise ResearchError(msg)
        self._journal: Journal = scope.journal
        self._source = source
        self._texts: dict[str, str] = {}

    async def fetch(self, urls: Sequence[str]) -> FetchedPages:
        """The pages at these addresses, as recorded where they are."""
        scope = recording_scope()
        assert scope is not None  # checked when it was made, in the same flow
        new: dict[str, bytes] = {}

        async def work() -> FetchedPages:
            found = await self._source.fetch(urls)
            pages = [page for page in found if isinstance(page, WebPage) and page.text.strip()]
            new.update({f'page {number}': page.text.encode() for number, page in enumerate(pages, 1)})
            failures = tuple(page for page in found if isinstance(page, PageFailure))
            return FetchedPages(pages=tuple(map(self._archived, pages)), failures=failures)

        async def blobs() -> Mapping[str, bytes]:
            return new

        return await scope.step(FETCH, work, key=fingerprint(list(urls)), codec=FETCHED, attach=blobs)

    def _archived(self, page: WebPage) -> ArchivedPage:
        digest = digest_of(page.text.encode())
        self._texts[digest] = page.text
        return ArchivedPage(
            url=page.url,
            title=page.title or page.url,
            digest=digest,
            accessed=datetime.now(UTC).date().isoformat(),
            date=page.date,
            author=page.author,
        )

    async def text(self, digest: str) -> str:
        """The text of a page that was fetched in this run, in this process or before."""
        if digest not in self._texts:
            self._texts[digest] = (await self._journal.store.blob(self._journal.run, digest)).decode()
        return self._texts[digest]
