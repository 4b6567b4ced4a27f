"""Sources of pages beside the web: folders and files of this machine, and several sources together."""

import asyncio
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from html.parser import HTMLParser
from itertools import zip_longest
from pathlib import Path

from habilis.core.stems import Stemmer
from habilis.research.contract import ResearchError
from habilis.tools.web.contract import PageFailure, PageSource, SearchResult, WebPage

RESULTS_PER_PAGE = 10
MAX_BYTES = 50_000_000
"""Larger files are not read."""

TEXT_SUFFIXES = frozenset('.txt .md .markdown .rst .csv .tsv .json .log .tex .org .adoc'.split())
HTML_SUFFIXES = frozenset({'.html', '.htm', '.xhtml'})
SUFFIXES = TEXT_SUFFIXES | HTML_SUFFIXES | {'.pdf'}
_SPACE = re.compile(r'[ \t\r\f\v]+')
_EMPTY_LINES = re.compile(r'\n\s*\n\s*')


class Folder:
    """A folder, or one file: text, Markdown, HTML and PDF. Addresses are those of its files (`file:///…`)."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path).expanduser().resolve()
        if not self._path.exists():
            msg = f'no such file or folder: {path}'
            raise ResearchError(msg)
        self._stemmer = Stemmer()
        self._problems: dict[str, str] = {}

    @property
    def description(self) -> str:
        """What it has."""
        return f'{len(self._files)} files of {self._path}'

    async def search(self, query: str, page: int = 1) -> list[SearchResult]:
        """The files that share most words with the query."""
        return await asyncio.to_thread(self._search, query, page)

    async def fetch(self, urls: Sequence[str]) -> list[WebPage | PageFailure]:
        """The texts of files of this folder, and of no others."""
        pages = await asyncio.to_thread(lambda: self._pages)
        return [
            pages[url] if url in pages else PageFailure(url, self._problems.get(url, f'not a file of {self._path}'))
            for url in urls
        ]

    def has(self, url: str) -> bool:
        """Whether the address is one of this folder's."""
        return url in self._files

    def _search(self, query: str, page: int) -> list[SearchResult]:
        wanted = set(self._stemmer.terms(query))
        known = self._terms
        having = {term: sum(term in terms for terms in known.values()) for term in wanted}
        weights = {term: math.log(1 + len(known) / count) for term, count in having.items() if count}
        scores = {
            url: sum(weight * terms[term] / (terms[term] + 1) for term, weight in weights.items())
            for url, terms in known.items()
        }
        best = sorted((url for url, score in scores.items() if score), key=lambda url: (-scores[url], url))
        first = (page - 1) * RESULTS_PER_PAGE
        found = [self._pages[url] for url in best[first : first + RESULTS_PER_PAGE]]
        return [SearchResult(one.title, one.url, ' '.join(one.text[:200].split())) for one in found]

    @cached_property
    def _files(self) -> Mapping[str, Path]:
        paths = [self._path] if self._path.is_file() else sorted(self._path.rglob('*'))
        inside = [path for path in paths if path.suffix.lower() in SUFFIXES and path.is_file()]
        return {path.as_uri(): path for path in inside if path.resolve().is_relative_to(self._path)}

    @cached_property
    def _pages(self) -> Mapping[str, WebPage]:
        pages: dict[str, WebPage] = {}
        for url, path in self._files.items():
            try:
                title, text = _read(path)
                pages[url] = WebPage(url=url, title=title or path.name, text=text)
            except (OSError, ValueError) as error:
                self._problems[url] = f'{path.name}: {error}'
        return pages

    @cached_property
    def _terms(self) -> Mapping[str, Counter[str]]:
        return {url: Counter(self._stemmer.terms(f'{page.title} {page.text}')) for url, page in self._pages.items()}


class Together:
    """Several sources: their results take turns, and each page comes from the source that named it."""

    def __init__(self, folders: Sequence[Folder], rest: PageSource | None = None) -> None:
        self._folders = folders
        self._rest = rest

    @property
    def _sources(self) -> list[PageSource]:
        return [*self._folders, *([] if self._rest is None else [self._rest])]

    @property
    def description(self) -> str:
        """All of them."""
        return '; '.join(source.description for source in self._sources)

    async def search(self, query: str, page: int = 1) -> list[SearchResult]:
        """The first result of each, then the second of each, and so on."""
        found = await asyncio.gather(*(source.search(query, page) for source in self._sources))
        return [result for results in zip_longest(*found) for result in results if result is not None]

    async def fetch(self, urls: Sequence[str]) -> list[WebPage | PageFailure]:
        """Each page from its source."""
        groups: dict[PageSource | None, list[str]] = {}
        for url in urls:
            owner = next((folder for folder in self._folders if folder.has(url)), self._rest)
            groups.setdefault(owner, []).append(url)
        found: dict[str, WebPage | PageFailure] = {}
        for owner, wanted in groups.items():
            got = (
                [PageFailure(url, 'no source has it') for url in wanted] if owner is None else await owner.fetch(wanted)
            )
            found.update(zip(wanted, got, strict=True))
        return [found[url] for url in urls]


# Files as text --------------------------------------------------------------------------------------------------------


def _read(path: Path) -> tuple[str, str]:
    """The title and the text of a file. Raises `OSError`, and `ValueError` for a file that is not what it seems."""
    if path.stat().st_size > MAX_BYTES:
        msg = f'larger than {MAX_BYTES:,} bytes'
        raise ValueError(msg)
    suffix = path.suffix.lower()
    readers: Mapping[str, Callable[[Path], tuple[str, str]]] = {'.pdf': _read_pdf}
    read = readers.get(suffix, _read_html if suffix in HTML_SUFFIXES else _read_text)
    return read(path)


def _read_text(path: Path) -> tuple[str, str]:
    text = path.read_bytes().decode('utf-8-sig', 'replace').replace('\r\n', '\n')
    heading = next((line.lstrip('#').strip() for line in text.splitlines() if line.startswith('# ')), '')
    return heading, text


def _read_html(path: Path) -> tuple[str, str]:
    parser = _HtmlText()
    parser.feed(path.read_bytes().decode('utf-8', 'replace'))
    parser.close()
    return ' '.join(parser.title.split()), parser.text


def _read_pdf(path: Path) -> tuple[str, str]:
    try:
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError
    except ImportError as error:
        msg = "PDF files need pypdf: pip install 'habilis[web]'"
        raise ResearchError(msg) from error
    try:
        reader = PdfReader(path)
        title = reader.metadata.title if reader.metadata else ''
        return title or '', '\n\n'.join(page.extract_text() for page in reader.pages)
    except (PyPdfError, RecursionError, KeyError, TypeError, AttributeError) as error:  # of damaged files
        msg = f'not a PDF that can be read: {error}'
        raise ValueError(msg) from error


class _HtmlText(HTMLParser):
    """The visible text of a page, one block per line."""

    BLOCKS = frozenset('p div li tr h1 h2 h3 h4 h5 h6 br section article ul ol table td th pre blockquote'.split())
    HIDDEN = frozenset({'script', 'style', 'template', 'noscript', 'svg'})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._hidden = 0
        self._in_title = False
        self.title = ''

    @property
    def text(self) -> str:
        lines = _SPACE.sub(' ', ''.join(self._parts))
        return _EMPTY_LINES.sub('\n\n', lines).strip()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in self.HIDDEN
        self._in_title = tag == 'title' and not self.title
        if tag in self.BLOCKS:
            self._parts.append('\n')

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in self.HIDDEN and self._hidden > 0
        self._in_title = False
        if tag in self.BLOCKS:
            self._parts.append('\n')

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
        elif not self._hidden:
            self._parts.append(data)
