"""A report as Markdown. Its addresses are those of pages that were read; each citation leads to its passage."""

import re
from collections.abc import Mapping

from habilis.research.citations import CITED
from habilis.research.contract import Citation, Report

ONE_SITE = 'A statement without a number of sites is what one site says.'
_ACTIVE = re.compile(r'([\\`*_\[\]<>|])')


def render_markdown(report: Report) -> str:
    """The report as Markdown."""
    sources = {citation.id: citation.source for citation in report.citations}
    parts = [f'# {plain(report.title)}']
    for section in report.sections:
        parts.append(f'{"#" * (1 + len(section.place))} {plain(section.title)}')
        if section.text:
            parts.append(linked(section.text, sources))
    parts += [*_remarks(report), *_sources(report)]
    return '\n\n'.join(parts) + '\n'


def linked(text: str, sources: Mapping[str, int]) -> str:
    """The text with its citations as links to the passages below the report."""
    return CITED.sub(lambda found: rf'[\[{sources[found[1]]}\]](#{found[1]})', text)


def plain(text: str) -> str:
    """Text of a page or of a model without Markdown: nothing in it is a link or a tag."""
    return _ACTIVE.sub(r'\\\1', ' '.join(text.split()))


def remarks(report: Report) -> list[str]:
    """What the reader must know: what is one site's word, that it is not complete, and what was not found."""
    stopped = 'This report is not complete: the research was stopped.'
    return [
        *([ONE_SITE] if report.citations else []),
        *([] if report.is_complete else [stopped]),
        *(['Nothing was found.'] if report.is_complete and not report.citations else []),
        *([f'Not answered: {"; ".join(" ".join(goal.split()) for goal in report.open)}'] if report.open else []),
    ]


def _remarks(report: Report) -> list[str]:
    return [f'*{plain(remark)}*' for remark in remarks(report)]


def _sources(report: Report) -> list[str]:
    if not report.sources:
        return []
    lines = ['## Sources']
    for number, page in enumerate(report.sources, 1):
        facts = [*([page.author] if page.author else []), *([page.date] if page.date else [])]
        more = ''.join(f', {plain(fact)}' for fact in facts)
        head = f'{number}. [{plain(page.title)}](<{safe_address(page.url)}>){more}, '
        lines.append(f'{head}accessed {page.accessed}, text `{page.digest}`')
        lines += [_quote(citation) for citation in report.citations if citation.source == number]
    return lines


def _quote(citation: Citation) -> str:
    return f'   <a id="{citation.id}"></a>“{plain(citation.quote)}”'


def safe_address(url: str) -> str:
    """The address without characters that would end it in a document."""
    return re.sub(r'[\s<>"\'`\\]', lambda found: f'%{ord(found[0]):02X}', url)
