"""`Web`: search and read the web through the host."""

import asyncio
import importlib.util
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

from habilis.core.closing import Closing
from habilis.core.errors import ToolCallError
from habilis.core.folders import cache_folder
from habilis.core.settings import Settings, load_settings
from habilis.core.settings_sources import PROJECT_FILES
from habilis.tools.web.contract import PageFailure, SearchResult, WebPage
from habilis.tools.web.downloads import DownloadLimits, Downloads, PageError
from habilis.tools.web.extraction import Extracted, Extraction, ExtractionError
from habilis.tools.web.page_cache import PageCache
from habilis.tools.web.quoting import one_line, visible
from habilis.tools.web.search_engines import MAX_PAGE, GitHub, Repository, SearchEngine, choose_engine

MAX_URLS = 100
"""Maximum number of pages of one call."""

_KEPT = 32
"""Number of pages whose links and text are kept for what is asked about them next."""


class Web(Closing):
    """The public web as a `PageSource`. Needs `habilis[web]`. Close it: it keeps processes that parse pages.

    Robots.txt is obeyed, addresses of private networks are refused, and sizes, times and rates are bounded.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        engine: SearchEngine | None = None,
        limits: DownloadLimits | None = None,
        obeys_robots: bool = True,
        cache: Path | None = None,
    ) -> None:
        """Nothing is fetched or started yet.

        Args:
            settings: for `searxng_url`, `web_hosts` and keys (default: those of the current folder).
            engine: the search engine (default: by the settings).
            limits: sizes, times and rates of downloads.
            obeys_robots: whether the robots.txt of each site is obeyed.
            cache: folder for responses that servers may confirm later (default: `web` in the cache folder).
        """
        if importlib.util.find_spec('trafilatura') is None:  # imported by the processes that parse pages
            msg = 'web tools need more packages: pip install "habilis[web]"'
            raise ImportError(msg)
        settings = settings or load_settings()
        self._engine = engine or choose_engine(settings)
        self._github = GitHub(settings.secret('GITHUB_TOKEN'))
        self._downloads = Downloads(
            hosts=() if settings.origin('web_hosts') in PROJECT_FILES else settings.web_hosts,
            limits=limits or DownloadLimits(),
            obeys_robots=obeys_robots,
            cache=PageCache(cache or cache_folder() / 'web'),
        )
        self._extraction = Extraction()
        self._kept: OrderedDict[tuple[str, bool], tuple[WebPage, Extracted]] = OrderedDict()

    @property
    def description(self) -> str:
        """One line for the user: which search engine is used, and how to get a better one."""
        return self._engine.description

    async def search(self, query: str, page: int = 1) -> list[SearchResult]:
        """A page of results, from 1. Raises `ToolCallError`."""
        _check_search(query, page)
        return await self._engine.search(query, page)

    async def search_github(self, query: str, page: int = 1) -> list[Repository]:
        """Repositories on GitHub, those with the most stars first. Raises `ToolCallError`."""
        _check_search(query, page)
        return await self._github.search(query, page)

    async def fetch(self, urls: Sequence[str], *, whole: bool = False) -> list[WebPage | PageFailure]:
        """The pages in the order of `urls`: the main text, or the `whole` page with menus and footers."""
        if len(urls) > MAX_URLS:
            msg = f'{len(urls)} pages at once; the maximum is {MAX_URLS}'
            raise ToolCallError(msg)
        async with self._downloads.session() as session:

            async def read(url: str) -> WebPage | PageFailure:
                try:
                    document = await self._downloads.get(session, url)
                    found = await self._extraction.extract(
                        document.body, kind=document.type, charset=document.charset, url=document.url, whole=whole
                    )
                except (PageError, ExtractionError) as error:
                    return PageFailure(url, str(error))
                if not found.text.strip():
                    return PageFailure(url, 'it has no text; a PDF may be scanned, a page may need JavaScript')
                return self._keep((url, whole), document.url, found)

            return list(await asyncio.gather(*map(read, urls)))

    async def links(self, url: str) -> list[tuple[str, str]]:
        """Text and URL of the links of a page, each URL once. Raises `ToolCallError`."""
        await self.read(url)
        return list(self._kept[url, False][1].links)

    async def read(self, url: str, *, whole: bool = False) -> WebPage:
        """One page; the one that was read last is not fetched again. Raises `ToolCallError`."""
        if (kept := self._kept.get((url, whole))) is not None:
            return kept[0]
        (found,) = await self.fetch([url], whole=whole)
        if isinstance(found, PageFailure):
            msg = f'{one_line(url, 200)} cannot be read: {found.reason}'
            raise ToolCallError(msg)
        return found

    async def close(self) -> None:
        """End the processes that parse pages. They start again when needed."""
        self._kept.clear()
        await asyncio.to_thread(self._extraction.close)

    def _keep(self, key: tuple[str, bool], url: str, found: Extracted) -> WebPage:
        author = one_line(found.author) if found.author else None
        page = WebPage(url, one_line(found.title), visible(found.text), found.date, author)
        self._kept[key] = page, found
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return page


def _check_search(query: str, page: int) -> None:
    if not query.strip() or len(query) > 1000:
        msg = 'a search needs one to 1,000 characters'
        raise ToolCallError(msg)
    if not 1 <= page <= MAX_PAGE:
        msg = f'page {page} of a search: use 1 to {MAX_PAGE}'
        raise ToolCallError(msg)
