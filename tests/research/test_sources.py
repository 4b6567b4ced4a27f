"""Folders and files as sources, and several sources together."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from fpdf import FPDF

from habilis.research import Folder, ResearchError, Together
from habilis.tools.web.contract import PageFailure, SearchResult, WebPage
from tests.research.script import make_pages


class OneSite:
    """A source with one page."""

    description = 'one site'

    async def search(self, query: str, page: int = 1) -> list[SearchResult]:
        return [SearchResult('Site', 'https://one.example/', query)]

    async def fetch(self, urls: Sequence[str]) -> list[WebPage | PageFailure]:
        return [WebPage(url=url, title='Site', text='text') for url in urls]


async def test_a_folder_finds_and_reads_text_markdown_html_and_pdf(tmp_path: Path) -> None:
    folder = make_pages(tmp_path / 'pages')
    document = FPDF()
    document.add_page()
    document.set_font('Helvetica')
    document.write(5, 'The glacier of Morn feeds the Tovar.')
    document.output(str(folder / 'glacier.pdf'))
    (folder / 'broken.pdf').write_bytes(b'%PDF-1.7 nothing')
    (folder / 'picture.png').write_bytes(b'x')
    source = Folder(folder)
    assert source.description == f'6 files of {folder}'
    results = await source.search('rivers named Tovar')
    pages = await source.fetch([result.url for result in results])
    texts = {page.url.rpartition('/')[2]: page.text for page in pages if isinstance(page, WebPage)}
    assert 'The glacier of Morn feeds the Tovar.' in texts['glacier.pdf']
    assert 'The Tovar is a river of 287 km.' in texts['tovar.html']
    [failure] = await source.fetch([(folder / 'broken.pdf').as_uri()])
    assert isinstance(failure, PageFailure)
    assert failure.reason == 'it is a damaged PDF'


async def test_nothing_outside_of_the_folder_is_read(tmp_path: Path) -> None:
    folder = make_pages(tmp_path / 'pages')
    secret = tmp_path / 'secret.txt'
    secret.write_text('Kelda secret', encoding='utf-8')
    (folder / 'link.txt').symlink_to(secret)
    source = Folder(folder)
    assert not [one for one in await source.search('secret') if 'link' in one.url or 'secret' in one.url]
    urls = [secret.as_uri(), (folder / 'link.txt').as_uri(), f'{folder.as_uri()}/../secret.txt']
    assert all(isinstance(page, PageFailure) for page in await source.fetch(urls))


async def test_sources_together_take_turns_and_read_their_own_pages(tmp_path: Path) -> None:
    folder = Folder(make_pages(tmp_path / 'pages') / 'kelda.md')
    source = Together([folder], OneSite())
    assert source.description == f'1 file of {tmp_path / "pages" / "kelda.md"}; one site'
    urls = [result.url for result in await source.search('Kelda')]
    assert urls == [(tmp_path / 'pages' / 'kelda.md').as_uri(), 'https://one.example/']
    pages = await source.fetch([*reversed(urls), 'file:///elsewhere'])
    assert [page.title if isinstance(page, WebPage) else page.reason for page in pages][:2] == [
        'Site',
        'The river Kelda',
    ]
    assert all(isinstance(page, PageFailure) for page in await Together([folder]).fetch(['https://one.example/']))


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResearchError, match='no such file or folder'):
        Folder(tmp_path / 'nothing')
