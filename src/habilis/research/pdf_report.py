"""A report as PDF, with fpdf2 (extra `web`). Each citation leads to its passage."""

import re
from collections.abc import Iterator
from pathlib import Path

from habilis.research.citations import CITED
from habilis.research.contract import Report, ResearchError
from habilis.research.markdown_report import remarks, safe_address

try:
    from fpdf import FPDF
    from fpdf.errors import FPDFException
except ImportError as error:
    msg = "a report as PDF needs fpdf2: pip install 'habilis[web]'"
    raise ImportError(msg) from error

CORE_FONT = 'Helvetica'
FONT_FOLDERS = (
    '/usr/share/fonts',
    '/usr/local/share/fonts',
    '~/.local/share/fonts',
    '/Library/Fonts',
    '/System/Library/Fonts/Supplemental',
    '~/Library/Fonts',
    'C:/Windows/Fonts',
)
FONTS = ('DejaVuSans.ttf', 'NotoSans-Regular.ttf', 'Arial Unicode.ttf', 'LiberationSans-Regular.ttf', 'arial.ttf')
"""Fonts that have the letters of many scripts, the first that is found."""

_EMPHASIS = re.compile(r'(\*\*|__|\*|`)(?=\S)(.+?)(?<=\S)\1')
_HEAD = re.compile(r'^#+\s*')


def render_pdf(report: Report) -> bytes:
    """The report as PDF. Raises `ResearchError` if it has letters that no font of this machine has."""
    document = FPDF()
    document.set_title(report.title)
    document.set_margins(22, 20)
    font = _font(document, report)
    document.add_page()
    links = {citation.id: document.add_link() for citation in report.citations}
    numbers = {citation.id: citation.source for citation in report.citations}

    def write(text: str, size: float, gap: float = 2) -> None:
        document.set_font(font, size=size)
        for part in CITED.split(text):
            document.write(size / 2, f'[{numbers[part]}]' if part in links else part, links.get(part, ''))
        document.ln(size / 2 + gap)

    try:
        write(report.title, 18, 4)
        for section in report.sections:
            write(section.title, 15 - 2 * len(section.place), 3)
            for line in filter(None, map(str.strip, section.text.splitlines())):
                write(_EMPHASIS.sub(r'\2', _HEAD.sub('', line)), 10.5)
        for remark in remarks(report):
            write(remark, 10.5)
        if report.sources:
            write('Sources', 13, 3)
        for number, page in enumerate(report.sources, 1):
            document.set_font(font, size=10)
            document.write(5, f'{number}. ')
            document.write(5, page.title, safe_address(page.url))
            write(f', accessed {page.accessed}, text {page.digest}', 10)
            for citation in (one for one in report.citations if one.source == number):
                document.set_link(links[citation.id], y=document.get_y(), page=document.page)
                write(_quoted(citation.quote, font), 9)
    except FPDFException as error:
        msg = f'the report cannot be written as PDF: {error}; write it as .html or .md'
        raise ResearchError(msg) from error
    return bytes(document.output())


def _quoted(quote: str, font: str) -> str:
    words = ' '.join(quote.split())
    return f'“{words}”' if font != CORE_FONT else f'"{words}"'


def _font(document: FPDF, report: Report) -> str:
    """A font of this machine with many letters, or one that every PDF viewer has."""
    path = next(_fonts(), None)
    if path is not None:
        document.add_font('unicode', fname=path)
        return 'unicode'
    texts = (report.title, *(f'{one.title}{one.text}' for one in report.sections), *(c.quote for c in report.citations))
    beyond = sorted({letter for text in texts for letter in text if ord(letter) > 255})
    if beyond:
        msg = (
            f'the report has letters ({"".join(beyond[:10])}) that need a font, and none was found: install '
            'DejaVu Sans (Debian: fonts-dejavu-core), or write the report as .html or .md'
        )
        raise ResearchError(msg)
    return CORE_FONT


def _fonts() -> Iterator[Path]:
    folders = [Path(folder).expanduser() for folder in FONT_FOLDERS]
    for name in FONTS:
        for folder in folders:
            yield from sorted(folder.rglob(name)) if folder.is_dir() else ()
