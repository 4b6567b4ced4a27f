"""Sources of pages beside the web: folders and files of this machine, and several sources together."""

import asyncio
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path

from habilis.core.closing import Closing
from habilis.core.stems import Stemmer
from habilis.research.contract import ResearchError
from habilis.tools.web.contract import PageFailure, PageSource, SearchResult, WebPage
from habilis.tools.web.extraction import Extraction, ExtractionError
from habilis.tools.web.quoting import visible

RESULTS_PER_PAGE = 10
MAX_BYTES = 50_000_000
"""Larger files are not read."""

TEXT = 'text/plain'
TYPES: Mapping[str, str] = {
    **dict.fromkeys('.txt .md .markdown .rst .csv .tsv .json .log .tex .org .adoc'.split(), TEXT),
    **dict.fromkeys(('.html', '.htm', '.xhtml'), 'text/html'),
    '.pdf': 'application/pdf',
}
"""The files that are read, by their suffixes."""


@dataclass(frozen=True, kw_only=True)
class _FolderContents:
    """What the files of a folder say."""

    pages: Mapping[str, WebPage]
    failures: Mapping[str, PageFailure]
    terms: Mapping[str, Counter[str]]
    """How often each page has each word."""


class Folder:
    """A folder, or one file: text, Markdown, HTML and PDF (with `habilis[web]`). Its addresses are `file:///…`."""

    def __init__(self, path: str | Path) -> None:
        """Choose the folder, or the file. Nothing is read yet."""
        self._path = Path(path).expanduser().resolve()
        if not self._path.exists():
            msg = f'no such file or folder: {path}'
            raise ResearchError(msg)
        self._stemmer = Stemmer()
        self._contents: asyncio.Task[_FolderContents] | None = None

    @property
    def description(self) -> str:
        """How many files it has."""
        count = len(self._files)
        return f'{count} {"file" if count == 1 else "files"} of {self._path}'

    async def search(self, query: str, page: int = 1) -> list[SearchResult]:
        """The files that share most words with the query; rare words count more."""
        contents = await self._read()
        having = {term: sum(term in terms for terms in contents.terms.values()) for term in self._stemmer.terms(query)}
        weights = {term: math.log(1 + len(contents.terms) / count) for term, count in having.items() if count}
        scores = {
            url: sum(weight * terms[term] / (terms[term] + 1) for term, weight in weights.items())
            for url, terms in contents.terms.items()
        }
        best = sorted((url for url, score in scores.items() if score), key=lambda url: (-scores[url], url))
        first = (page - 1) * RESULTS_PER_PAGE
        found = [contents.pages[url] for url in best[first : first + RESULTS_PER_PAGE]]
        return [SearchResult(one.title, one.url, ' '.join(one.text[:200].split())) for one in found]

    async def fetch(self, urls: Sequence[str]) -> list[WebPage | PageFailure]:
        """The texts of files of this folder, and of no others."""
        contents = await self._read()
        known = {**contents.failures, **contents.pages}
        return [known.get(url) or PageFailure(url, f'not a file of {self._path}') for url in urls]

    def has(self, url: str) -> bool:
        """Whether the address is one of this folder's."""
        return url in self._files

    @cached_property
    def _files(self) -> Mapping[str, Path]:
        paths = [self._path] if self._path.is_file() else sorted(self._path.rglob('*'))
        inside = [path for path in paths if path.suffix.lower() in TYPES and path.is_file()]
        return {path.as_uri(): path for path in inside if path.resolve().is_relative_to(self._path)}

    async def _read(self) -> _FolderContents:
        """The contents, which are read once."""
        if self._contents is None or self._contents.get_loop() is not asyncio.get_running_loop():
            self._contents = asyncio.create_task(self._read_all())
        return await asyncio.shield(self._contents)

    async def _read_all(self) -> _FolderContents:
        extraction = Extraction()
        try:
            found = await asyncio.gather(*(_read_file(url, path, extraction) for url, path in self._files.items()))
        finally:
            extraction.close()
        pages = {page.url: page for page in found if isinstance(page, WebPage)}
        terms = {url: Counter(self._stemmer.terms(f'{page.title} {page.text}')) for url, page in pages.items()}
        failures = {page.url: page for page in found if isinstance(page, PageFailure)}
        return _FolderContents(pages=pages, failures=failures, terms=terms)


async def _read_file(url: str, path: Path, extraction: Extraction) -> WebPage | PageFailure:
    kind = TYPES[path.suffix.lower()]
    try:
        data = await asyncio.to_thread(_read_bytes, path)
        if kind == TEXT:
            text = visible(data.decode('utf-8-sig', 'replace'))
            title = next((line[2:].strip() for line in text.split('\n') if line.startswith('# ')), '')
            return WebPage(url=url, title=title or path.name, text=text)
        found = await extraction.extract(data, kind=kind, charset='', url=url, whole=False)
    except (OSError, ExtractionError) as error:
        return PageFailure(url, str(error))
    return WebPage(
        url=url,
        title=found.title or path.name,
        text=visible(found.text),
        date=found.date,
        author=found.author,
    )


def _read_bytes(path: Path) -> bytes:
    if path.stat().st_size > MAX_BYTES:
        msg = f'larger than {MAX_BYTES:,} bytes'
        raise OSError(msg)
    return path.read_bytes()


class Together(Closing):
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

    async def close(self) -> None:
        """Close all of them that can be closed."""
        for source in self._sources:
            if isinstance(source, Closing):
                await source.close()
