"""A report as Markdown, HTML and PDF."""

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from pypdf import PdfReader

from habilis.research import pdf_report
from habilis.research.contract import ArchivedPage, Citation, Report, ResearchError, Section
from habilis.research.documents import write_report
from habilis.research.html_report import render_html
from habilis.research.markdown_report import render_markdown
from habilis.research.pdf_report import render_pdf

PAGE = ArchivedPage(
    url='https://one.example/a_(b)?q="x"', title='One [page] <b>', digest='d1', accessed='2026-11-18', author='A. Lee'
)
REPORT = Report(
    title='Łódź & <script>',
    sections=(
        Section(place=(1,), title='First', text=''),
        Section(
            place=(1, 1),
            title='Inner <i>',
            text='Straße und Łódź [s101][s102].\n\n| a | b |\n|---|---|\n| 1 | [s201] |',
        ),
    ),
    sources=(PAGE, replace(PAGE, url='file:///two.txt', title='Two', digest='d2')),
    citations=(
        Citation(id='s101', source=1, quote='Łódź <img src=x>', before='before ', after=' after'),
        Citation(id='s102', source=1, quote='*two*'),
        Citation(id='s201', source=2, quote='three'),
    ),
    open=('What else?',),
)


def test_every_citation_of_the_html_opens_its_passage_and_nothing_in_it_is_active() -> None:
    page = render_html(REPORT)
    assert re.findall(r'<a href="#(s\d+)">\[(\d)\]</a>', page) == [('s101', '1'), ('s102', '1'), ('s201', '2')]
    for citation in REPORT.citations:
        assert page.count(f'<blockquote id="{citation.id}">') == 1
    assert '<span class="around">before </span><mark>Łódź &lt;img src=x&gt;</mark>' in page
    assert set(re.findall(r'href="([^#"]+)"', page)) == {'https://one.example/a_(b)?q=%22x%22', 'file:///two.txt'}
    assert not re.search(r'<(script|img|i|link|iframe)\b|\bsrc=(?!x)', page)
    assert '<td>' in page
    assert 'Not answered: What else?' in page


def test_every_citation_of_the_markdown_leads_to_its_passage() -> None:
    text = render_markdown(REPORT)
    page = MarkdownIt('commonmark', {'html': True}).render(text)
    for id_ in re.findall(r'href="#(s\d+)"', page):
        assert f'<a id="{id_}">' in page
    assert 'accessed 2026-11-18, text <code>d1</code>' in page
    assert '<script>' not in page
    assert '<img' not in page


def test_the_pdf_has_all_letters_and_links_to_passages_and_pages() -> None:
    reader = PdfReader(io.BytesIO(render_pdf(REPORT)))
    text = '\n'.join(page.extract_text() for page in reader.pages)
    assert 'Straße und Łódź' in text
    assert 'three' in text
    links = [link.get_object() for page in reader.pages for link in page.get('/Annots', [])]
    assert sum('/Dest' in link for link in links) == 3
    assert {link['/A']['/URI'] for link in links if '/A' in link} == {
        'https://one.example/a_(b)?q=%22x%22',
        'file:///two.txt',
    }


def test_a_pdf_without_a_font_for_its_letters_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pdf_report, 'FONT_FOLDERS', (str(tmp_path),))
    with pytest.raises(ResearchError, match=r'letters \(Łź\).*install DejaVu Sans.*\.html'):
        write_report(REPORT, str(tmp_path / 'report.pdf'))
    latin = replace(
        REPORT, title='Plain', citations=(), sources=(), sections=(Section(place=(1,), title='é', text='ß'),)
    )
    write_report(latin, str(tmp_path / 'report.pdf'))
    assert 'ß' in PdfReader(tmp_path / 'report.pdf').pages[0].extract_text()
