"""Search engines over HTTP. A key goes to its provider alone: no setting moves a provider to another address."""

import asyncio
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from habilis.core.errors import ToolCallError
from habilis.core.narrowing import is_dict, is_list
from habilis.core.settings import Settings
from habilis.tools.web.contract import SearchResult

RESULTS = 10
"""Results of one page."""

MAX_PAGE = 10
MAX_BYTES = 5 << 20
SECONDS = 20.0
_TAG = re.compile(r'</?\w[^<>]*>')


class SearchEngine(Protocol):
    """Finds pages. Raises `ToolCallError` if it cannot."""

    @property
    def description(self) -> str: ...

    async def search(self, query: str, page: int) -> list[SearchResult]: ...


@dataclass(frozen=True)
class SearXNG:
    """A server of the user's choice, which must allow the format JSON."""

    url: str

    @property
    def description(self) -> str:
        return f'searches with SearXNG at {urlsplit(self.url).netloc.rpartition("@")[2]}'

    async def search(self, query: str, page: int) -> list[SearchResult]:
        """A page of results."""
        parameters = {'q': query, 'format': 'json', 'pageno': str(page)}
        advice = 'is the format json enabled in its settings.yml?'
        found = await _json('SearXNG', f'{self.url.rstrip("/")}/search', advice, parameters=parameters)
        return _results(_entries(found, 'results'), 'content')


@dataclass(frozen=True)
class Brave:
    """The Brave Search API."""

    key: str
    url: str = 'https://api.search.brave.com/res/v1/web/search'
    description = 'searches with Brave (BRAVE_API_KEY)'

    async def search(self, query: str, page: int) -> list[SearchResult]:
        """A page of results."""
        parameters = {'q': query, 'count': str(RESULTS), 'offset': str(page - 1)}
        headers = {'X-Subscription-Token': self.key}
        found = await _json('Brave', self.url, 'is BRAVE_API_KEY valid?', parameters=parameters, headers=headers)
        return _results(_entries(found, 'web', 'results'), 'description')


@dataclass(frozen=True)
class Tavily:
    """The Tavily API. It has no pages, but up to 20 results."""

    key: str
    url: str = 'https://api.tavily.com/search'
    description = 'searches with Tavily (TAVILY_API_KEY)'

    async def search(self, query: str, page: int) -> list[SearchResult]:
        """A page of results."""
        if page > 2:
            return []
        headers = {'Authorization': f'Bearer {self.key}'}
        body = {'query': query, 'max_results': RESULTS * page}
        found = await _json('Tavily', self.url, 'is TAVILY_API_KEY valid?', headers=headers, body=body)
        return _results(_entries(found, 'results'), 'content')[RESULTS * (page - 1) :]


@dataclass(frozen=True)
class Ddgs:
    """Public search pages, read by the package `ddgs`: no key, but they refuse whoever asks often."""

    description = (
        'searches with ddgs (DuckDuckGo and others, no key needed, few requests allowed); '
        'for more set searxng_url, BRAVE_API_KEY or TAVILY_API_KEY'
    )

    async def search(self, query: str, page: int) -> list[SearchResult]:
        """A page of results."""
        return await asyncio.to_thread(self._search, query, page)

    def _search(self, query: str, page: int) -> list[SearchResult]:
        try:
            from ddgs.ddgs import DDGS
            from ddgs.exceptions import DDGSException
        except ImportError:
            msg = 'searches without a search server need the package ddgs: pip install "habilis[web]"'
            raise ImportError(msg) from None
        try:
            found: list[dict[str, object]] = DDGS(timeout=int(SECONDS)).text(query, max_results=RESULTS, page=page)
        except DDGSException as error:
            if 'no results' in str(error).lower():
                return []
            msg = f'the search failed ({type(error).__name__}); a search server or key helps: {self.description}'
            raise ToolCallError(msg) from None
        return _results(found, 'body', url='href')


def choose_engine(settings: Settings) -> SearchEngine:
    """The engine that the settings name, or the one that there is a key for."""
    if settings.searxng_url:
        return SearXNG(settings.searxng_url)
    if key := settings.secret('BRAVE_API_KEY'):
        return Brave(key)
    if key := settings.secret('TAVILY_API_KEY'):
        return Tavily(key)
    return Ddgs()


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository on GitHub."""

    name: str
    url: str
    stars: int
    description: str = ''
    language: str = ''


@dataclass(frozen=True)
class GitHub:
    """Search for repositories. Works without a token, but not often."""

    token: str | None = None
    url: str = 'https://api.github.com/search/repositories'

    async def search(self, query: str, page: int) -> list[Repository]:
        """A page of repositories, those with the most stars first."""
        parameters = {'q': query, 'sort': 'stars', 'order': 'desc', 'per_page': str(RESULTS), 'page': str(page)}
        headers = {'Accept': 'application/vnd.github+json'}
        if self.token:
            headers['Authorization'] = f'Bearer {self.token}'
        advice = 'is GITHUB_TOKEN valid?' if self.token else 'set GITHUB_TOKEN to be allowed more requests'
        found = await _json('GitHub', self.url, advice, parameters=parameters, headers=headers)
        return [
            Repository(
                name=_text(each, 'full_name'),
                url=_text(each, 'html_url'),
                stars=stars if isinstance(stars := each.get('stargazers_count'), int) else 0,
                description=_text(each, 'description'),
                language=_text(each, 'language'),
            )
            for each in _entries(found, 'items')
        ]


async def _json(
    engine: str,
    url: str,
    advice: str,
    *,
    parameters: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    body: object = None,
) -> object:
    """The reply of an engine. Redirects are not followed: the request has a key."""
    import httpx2

    data = bytearray()
    try:
        async with (
            httpx2.AsyncClient(timeout=SECONDS) as client,
            client.stream(
                'GET' if body is None else 'POST', url, params=parameters, headers=headers, json=body
            ) as response,
        ):
            if response.status_code != 200:
                msg = f'the search with {engine} failed with HTTP status {response.status_code}; {advice}'
                raise ToolCallError(msg)
            async for chunk in response.aiter_bytes(1 << 16):
                data += chunk
                if len(data) > MAX_BYTES:
                    break
        return json.loads(data)
    except httpx2.HTTPError as error:
        msg = f'the search with {engine} failed: {type(error).__name__}; is the server reachable?'
        raise ToolCallError(msg) from None
    except (ValueError, RecursionError):
        msg = f'the search with {engine} failed: its reply is not JSON; {advice}'
        raise ToolCallError(msg) from None


def _entries(found: object, *path: str) -> Iterator[Mapping[object, object]]:
    """The objects of a list inside a reply; none if it is not there."""
    for name in path:
        found = found.get(name) if is_dict(found) else None
    yield from (each for each in found if is_dict(each)) if is_list(found) else ()


def _results(
    entries: Iterable[Mapping[object, object] | dict[str, object]], snippet: str, url: str = 'url'
) -> list[SearchResult]:
    found = [SearchResult(_text(each, 'title'), _text(each, url), _text(each, snippet)) for each in entries]
    return [each for each in found if each.url.startswith(('http://', 'https://'))]


def _text(entry: Mapping[object, object] | dict[str, object], name: str) -> str:
    value = entry.get(name)
    return html.unescape(_TAG.sub('', value)) if isinstance(value, str) else ''
