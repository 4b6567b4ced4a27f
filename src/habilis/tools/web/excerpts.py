"""Excerpts of a page that help to reach a goal, chosen by a model and taken from the page by the host.

    entry = await extract(page, goal, ask, count_tokens=count_tokens)

The model sees numbered lines and answers with numbers. So whatever the model, or the page, says: each excerpt is
verbatim text of the page. A page of 100,000 tokens costs four calls of `ask`, one for each chunk of 32,000.
"""

import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files

from habilis.tools.web.contract import WebPage
from habilis.tools.web.quoting import one_line, unmarked

CHUNK_TOKENS = 32_000
MAX_LINE = 600
"""Maximum number of characters of a line that has a number; longer ones are divided, after a sentence if possible."""

Ask = Callable[[str], Awaitable[str]]
"""Takes a prompt and returns the reply of a model."""

_NUMBERS = re.compile(r'\bL(\d{1,9})(?:\s*[-–]\s*L?(\d{1,9}))?', re.IGNORECASE)
_SENTENCE = re.compile(r'[.!?…。]["»”)\]]*\s+')


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of a page: `page.text[start:end]`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class ScratchpadEntry:
    """What one page has to say about a goal, and where it says so."""

    url: str
    title: str
    excerpts: tuple[Excerpt, ...]


async def extract(
    page: WebPage, goal: str, ask: Ask, *, count_tokens: Callable[[str], int], chunk_tokens: int = CHUNK_TOKENS
) -> ScratchpadEntry:
    """The excerpts of a page that help to reach a goal, in the order of the page; none if nothing helps.

    Args:
        page: the page.
        goal: what is looked for, in words.
        ask: asks a model; called once for each chunk, one after the other.
        count_tokens: counts or estimates the tokens of a text.
        chunk_tokens: maximum number of tokens of the page in one prompt.
    """
    template = files('habilis.tools.web').joinpath('excerpts.md').read_text('utf-8')
    chunks = _chunks(page.text, count_tokens, chunk_tokens)
    spans: list[tuple[int, int]] = []
    for part, chunk in enumerate(chunks, 1):
        prompt = template.format(
            goal=goal,
            title=one_line(page.title),
            url=one_line(page.url),
            part=part,
            parts=len(chunks),
            lines='\n'.join(f'L{number}: {_shown(page.text[a:b])}' for number, (a, b) in enumerate(chunk, 1)),
        )
        chosen = _chosen(await ask(prompt), len(chunk))
        spans += [chunk[number] for number in chosen]
    excerpts = tuple(Excerpt(start, end, page.text[start:end]) for start, end in _joined(page.text, spans))
    return ScratchpadEntry(url=page.url, title=page.title, excerpts=excerpts)


def _shown(line: str) -> str:
    return unmarked(line).replace('\n', ' ')  # a page may have other line ends than `\n`


def _chosen(reply: str, count: int) -> list[int]:
    """The lines that a reply names, from 0, in order. Numbers of lines that are not there are ignored."""
    chosen: set[int] = set()
    for first, last in _NUMBERS.findall(reply):
        chosen.update(range(max(int(first), 1), min(int(last or first), count) + 1))
    return sorted(number - 1 for number in chosen)


def _joined(text: str, spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The spans, in order; those with only space between them become one."""
    begin = end = -1
    for start, stop in spans:
        if end >= 0 and not text[end:start].strip():
            end = stop
            continue
        if end >= 0:
            yield begin, end
        begin, end = start, stop
    if end >= 0:
        yield begin, end


def _chunks(text: str, count_tokens: Callable[[str], int], most: int) -> list[list[tuple[int, int]]]:
    """The lines of a text, as offsets, in groups of at most so many tokens."""
    chunks: list[list[tuple[int, int]]] = []
    room = 0
    for start, end in _lines(text):
        cost = count_tokens(text[start:end])
        if cost > room:
            chunks.append([])
            room = most
        chunks[-1].append((start, end))
        room -= cost
    return chunks


def _lines(text: str) -> Iterator[tuple[int, int]]:
    """Offsets of the lines that are not empty."""
    start = 0
    for line in text.split('\n'):
        end = start + len(line)
        begin = start
        while end - begin > MAX_LINE:
            cuts = [found.end() for found in _SENTENCE.finditer(text, begin, begin + MAX_LINE)]
            cut = cuts[-1] if cuts else begin + MAX_LINE
            yield begin, cut
            begin = cut
        if text[begin:end].strip():
            yield begin, end
        start = end + 1
