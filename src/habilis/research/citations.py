"""Checks of what a model wrote: each sentence cites a note that is there, and quotes only what its page says.

Addresses that a model writes are removed: those of the report come from the pages that were read.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest

ADDRESS_REMOVED = '(address removed)'
NO_SOURCE = '*(no source)*'
WRONG_QUOTE = '*(quote not found in its source)*'
CITED = re.compile(r'\[(s\d+)\]')
"""A citation, as `normalized` writes it."""

MIN_QUOTE_WORDS = 3
"""Fewer words in quotation marks are a name or a term, not a quote."""

_LOOSE = re.compile(r'[\[(【]\s*(s\d+(?:\s*(?:,|;|and|&)?\s*s?\d+)*)\s*[\])】]', re.IGNORECASE)
_AFTER_STOP = re.compile(r'([.!?。])((?:\s*\[s\d+\])+)')
_LINK = re.compile(r'!?\[([^\[\]]*)\](?:\([^()\s]*(?:\s[^()]*)?\)|\[[^\[\]]*\])')
_DEFINITION = re.compile(r'^[ \t]*\[[^\]\n]+\]:.*$', re.MULTILINE)
_TAG = re.compile(r'<!--.*?(?:-->|\Z)|</?[a-z][^<>]*>', re.IGNORECASE | re.DOTALL)
_ADDRESS = re.compile(
    r'<?(?:\b[a-z][a-z0-9+.-]*://|\bwww\.|\b(?:mailto|javascript|data):(?=[\w/])|\b(?:[a-z0-9-]+\.)+[a-z]{2,}/)'
    r'[^\s<>\]"”|]*>?',
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(
    r'(?:(?<=\][.!?])|(?<=[^\W\d_]{3}[.!?])|(?<=[\d)%"”’][.!?])|(?<=[.!?]["”’]))\s+(?=["“‘(*_\[]*[^\W_])(?![a-z])|(?<=。)'
)
_QUOTE = re.compile(r'“([^“”]+)”|"([^"]+)"|„([^„“]+)“|«([^«»]+)»')
_GAP = re.compile(r'\s*(?:\[?(?:\.\.\.|…)\]?)\s*')
_RULE = re.compile(r'^\s*\|?[\s:|-]+\|?\s*$')
_ITEM = re.compile(r'^(\s*(?:[-*+]|\d+[.)])\s+)(.*)$')


@dataclass(frozen=True, kw_only=True)
class CheckedText:
    """A text after the check."""

    text: str
    """With a mark behind each sentence that failed."""

    problems: tuple[str, ...]
    """What is wrong, for the model that is to correct it."""


def check_text(text: str, pages: Mapping[str, str]) -> CheckedText:
    """Check what a model wrote. `pages` has the text of the page of each note by the id of the note."""
    text = without_addresses(normalized(text))
    known = {id_: _words(page) for id_, page in pages.items()}
    problems: list[str] = []
    blocks = [*_blocks(text)]
    checked = [
        block if _is_head(block, below) else _check_block(block, known, problems)
        for block, below in zip_longest(blocks, blocks[1:], fillvalue='')
    ]
    return CheckedText(text='\n'.join(checked).strip(), problems=tuple(problems))


def normalized(text: str) -> str:
    """Citations in one form, `[s101][s102]`, each before the end of its sentence."""

    def single(found: re.Match[str]) -> str:
        return ''.join(f'[s{number}]' for number in re.findall(r'\d+', found[1]))

    text = _LOOSE.sub(single, text)
    return _AFTER_STOP.sub(lambda found: f' {"".join(found[2].split())}{found[1]}', text)


def without_addresses(text: str) -> str:
    """The text without links, tags and addresses; the words of a link stay."""
    text = _TAG.sub('', _DEFINITION.sub('', text))
    kept = CITED.sub(r'⟦\1⟧', text)  # a citation is not the text of a link
    kept = _LINK.sub(r'\1', kept)
    return re.sub(r'⟦(s\d+)⟧', r'[\1]', _ADDRESS.sub(ADDRESS_REMOVED, kept))


def cited_ids(text: str) -> list[str]:
    """The ids that a text cites, each once, in order."""
    return list(dict.fromkeys(CITED.findall(text)))


def _blocks(text: str) -> Iterator[str]:
    """Lines, with the lines of one paragraph joined, so that sentences are whole."""
    paragraph: list[str] = []
    for line in text.splitlines():
        is_start = _is_special(line) or _ITEM.match(line) is not None
        if not is_start and paragraph and not _is_special(paragraph[-1]):
            paragraph.append(line.strip())
            continue
        if paragraph:
            yield ' '.join(paragraph)
        paragraph = [line]
    if paragraph:
        yield ' '.join(paragraph)


def _is_special(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith(('#', '|')) or _RULE.match(line) is not None


def _check_block(block: str, pages: Mapping[str, str], problems: list[str]) -> str:
    if not block.strip() or block.lstrip().startswith('#') or _RULE.match(block):
        return block
    if _is_row(block):
        return _check_row(block, pages, problems)
    item = _ITEM.match(block)
    start, rest = (item[1], item[2]) if item else ('', block)
    return start + ' '.join(_check_sentence(one, pages, problems) for one in _SENTENCE_END.split(rest) if one.strip())


def _is_head(block: str, below: str) -> bool:
    """Whether it is the first row of a table, which claims nothing."""
    return _is_row(block) and _is_row(below) and _RULE.match(below) is not None


def _is_row(block: str) -> bool:
    return block.lstrip().startswith('|')


def _check_row(row: str, pages: Mapping[str, str], problems: list[str]) -> str:
    """A row of a table is one claim; its mark is in its last cell."""
    checked = _check_sentence(row, pages, problems)
    for mark in (NO_SOURCE, WRONG_QUOTE):
        if checked.endswith(mark):
            return f'{checked.removesuffix(mark).rstrip().removesuffix("|").rstrip()} {mark} |'
    return checked


def _check_sentence(sentence: str, pages: Mapping[str, str], problems: list[str]) -> str:
    unknown = [id_ for id_ in cited_ids(sentence) if id_ not in pages]
    for id_ in unknown:
        sentence = sentence.replace(f' [{id_}]', '').replace(f'[{id_}]', '')
    ids = cited_ids(sentence)
    if not ids:
        reason = f'there is no note {", ".join(unknown)}' if unknown else 'it cites no note'
        problems.append(f'{reason}: {sentence.strip()}')
        return f'{sentence} {NO_SOURCE}'
    wrong = next((quote for quote in _quotes(sentence) if not _is_quoted(quote, [pages[id_] for id_ in ids])), None)
    if wrong is None:
        return sentence
    problems.append(f'its source does not say “{wrong}”: {sentence.strip()}')
    return f'{sentence} {WRONG_QUOTE}'


def _quotes(sentence: str) -> Iterator[str]:
    for found in _QUOTE.finditer(sentence):
        quote = next(group for group in found.groups() if group)
        if len(quote.split()) >= MIN_QUOTE_WORDS:
            yield CITED.sub('', quote)


def _is_quoted(quote: str, pages: list[str]) -> bool:
    """Whether a page has all parts of the quote, whatever the white space, and the punctuation at its end."""
    parts = [_words(part.strip(' .,;:!?')) for part in _GAP.split(quote)]
    return any(all(part in page for part in parts) for page in pages)


def _words(text: str) -> str:
    return ' '.join(text.split())
