"""`Web` over the loopback web: pages of all kinds, and pages that are traps."""

import asyncio
from pathlib import Path

import pytest

from habilis.core.errors import ToolCallError
from habilis.core.settings import load_settings
from habilis.tools.web.contract import PageFailure, PageSource, WebPage
from habilis.tools.web.downloads import USER_AGENT, DownloadLimits
from habilis.tools.web.web import Web
from tests.tools.web.loopback import Answer, LoopbackWeb, article, html
from tests.waiting import until


async def page(web: Web, url: str, *, whole: bool = False) -> WebPage:
    (found,) = await web.fetch([url], whole=whole)
    assert isinstance(found, WebPage), found
    return found


async def failure(web: Web, url: str) -> str:
    (found,) = await web.fetch([url])
    assert isinstance(found, PageFailure), found
    assert found.url == url
    return found.reason


# Pages ----------------------------------------------------------------------------------------------------------------


async def test_a_search_leads_to_pages_with_title_date_and_author(site: LoopbackWeb, web: Web) -> None:
    source: PageSource = web
    results = await source.search('Kelda river atlas')
    assert results[0].url == site.address('/mirror/kelda.html')
    found = await page(web, results[0].url)
    assert (found.title, found.date, found.author) == (
        'The river Kelda, from an old atlas',
        '2001-05-06',
        'Arno Maps',
    )
    assert 'a river of 398 km' in found.text
    assert 'Imprint' not in found.text
    assert 'Imprint' in (await page(web, results[0].url, whole=True)).text


async def test_a_bad_address_does_not_lose_the_others(site: LoopbackWeb, web: Web) -> None:
    good = site.address('/rivers/kelda.html')
    bad = [
        'nonsense',
        '',
        'http://',
        'ftp://x.example/',
        'file:///x',
        'http://a:b@x.example/',
        'http://[::1',
        'x' * 9999,
    ]
    found = await web.fetch([*bad, site.address('/missing'), site.address('/gone.html'), good])
    assert [type(each) for each in found] == [PageFailure] * (len(bad) + 2) + [WebPage]
    assert [each.url for each in found[:-1]] == [*bad, site.address('/missing'), site.address('/gone.html')]


async def test_the_url_of_a_page_is_where_its_redirects_end(site: LoopbackWeb, web: Web) -> None:
    found = await page(web, site.address('/twice.html'))
    assert (found.url, found.title) == (site.address('/rivers/kelda.html'), 'The river Kelda')


@pytest.mark.parametrize(
    'name', ['latin1', 'latin1-said-utf8', 'utf8-said-latin1', 'utf16', 'unknown-charset', 'no-type']
)
async def test_wrong_charsets_are_seen_through(site: LoopbackWeb, web: Web, name: str) -> None:
    found = await page(web, site.address(f'/{name}.html'))
    assert found.title == 'Grüße'
    assert found.text.startswith('Grüße aus Köln: ein ganz gewöhnlicher Satz')


async def test_plain_text_stays_as_it_is(site: LoopbackWeb, web: Web) -> None:
    assert (await page(web, site.address('/notes.txt'))).text == 'Plain text.\n<b>Not</b> markup.'


def pdf(text: str) -> bytes:
    """A PDF of one page with one line."""
    stream = f'BT /F1 12 Tf 20 50 Td ({text}) Tj ET'
    font = '<< /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>'
    objects = [
        '<< /Type /Catalog /Pages 2 0 R >>',
        '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
        f'<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 100] /Contents 4 0 R /Resources << /Font {font} >> >>',
        f'<< /Length {len(stream)} >>\nstream\n{stream}\nendstream',
        "<< /Title (Annual report) /Author (Ann) /CreationDate (D:20240506070809+00'00') >>",
    ]
    body = '%PDF-1.4\n'
    places: list[int] = []
    for number, each in enumerate(objects, 1):
        places.append(len(body))
        body += f'{number} 0 obj\n{each}\nendobj\n'
    table = ''.join(f'{place:010} 00000 n \n' for place in places)
    trailer = f'trailer\n<< /Size 6 /Root 1 0 R /Info 5 0 R >>\nstartxref\n{len(body)}\n%%EOF\n'
    return f'{body}xref\n0 6\n0000000000 65535 f \n{table}{trailer}'.encode()


async def test_a_pdf_is_read_whatever_the_server_calls_it(site: LoopbackWeb, web: Web) -> None:
    site.pages['/report.pdf'] = Answer(body=pdf('Profit rose to 12 million.'), type='application/octet-stream')
    site.pages['/empty.pdf'] = Answer(body=pdf(''), type='application/pdf')
    site.pages['/broken.pdf'] = Answer(body=b'%PDF-1.7 broken', type='application/pdf')
    found = await page(web, site.address('/report.pdf'))
    assert (found.title, found.author, found.date) == ('Annual report', 'Ann', '2024-05-06')
    assert found.text == 'Profit rose to 12 million.'
    assert 'may be scanned' in await failure(web, site.address('/empty.pdf'))
    assert 'PDF' in await failure(web, site.address('/broken.pdf'))


async def test_links_are_absolute_and_each_is_listed_once(site: LoopbackWeb, web: Web) -> None:
    site.pages['/links.html'] = html(
        '<html><body><p>Text</p><a href="rivers/kelda.html#top">The <b>Kelda</b></a>'
        '<a href="/rivers/kelda.html">again</a> <a href="javascript:alert(1)">no</a>'
        '<a href="mailto:x@x.example">no</a> <a href="http://[x">no</a></body></html>'
    )
    assert await web.links(site.address('/links.html')) == [('The Kelda', site.address('/rivers/kelda.html'))]
    with pytest.raises(ToolCallError, match='HTTP status 404'):
        await web.links(site.address('/missing'))


# Traps ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('path', 'reason'),
    [
        ('/large.html', 'larger than 1 MB'),
        ('/bomb.html', 'larger than 1 MB'),
        ('/not-gzip.html', 'damaged'),
        ('/loop.html', 'more than 10 redirects'),
        ('/to-file.html', 'not a URL that can be fetched'),
        ('/to-private.html', '169.254.169.254 is not a public address'),
        ('/picture.png', 'image/png'),
        ('/broken.html', 'HTTP status 500'),
        ('/empty.html', 'no text'),
    ],
)
async def test_a_trap_is_a_failure_with_its_reason(site: LoopbackWeb, path: str, reason: str, tmp_path: Path) -> None:
    limits = DownloadLimits(bytes=1 << 20, pace=0)
    async with Web(load_settings(**site.settings), limits=limits, cache=tmp_path) as web:
        assert reason in await failure(web, site.address(path))


async def test_a_body_that_never_ends_is_given_up(site: LoopbackWeb, tmp_path: Path) -> None:
    limits = DownloadLimits(seconds=0.5, pace=0)
    async with Web(load_settings(**site.settings), limits=limits, cache=tmp_path) as web:
        assert 'longer than 0.5 s' in await failure(web, site.address('/slow.html'))


async def test_html_on_which_parsers_hang_is_given_up_and_the_next_page_is_read(
    site: LoopbackWeb, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web._extraction, '_seconds', 5.0)  # pyright: ignore[reportPrivateUsage]
    hanging, deep, good = await web.fetch(
        [site.address(f'/{name}') for name in ('attributes.html', 'deep.html', 'notes.txt')]
    )
    assert isinstance(hanging, PageFailure)
    assert 'within 5 s' in hanging.reason
    assert isinstance(deep, WebPage | PageFailure)
    assert isinstance(good, WebPage)
    assert (await page(web, site.address('/rivers/kelda.html'))).title == 'The river Kelda'


# Manners --------------------------------------------------------------------------------------------------------------


async def test_robots_txt_is_read_once_and_obeyed_after_redirects_too(
    site: LoopbackWeb, web: Web, tmp_path: Path
) -> None:
    site.pages['/robots.txt'] = Answer(
        body=b'User-agent: *\nDisallow: /\n\nUser-agent: Habilis\nDisallow: /rivers/*.html$\n', type='text/plain'
    )
    moved, lake, news = await web.fetch(
        [site.address(path) for path in ('/moved.html', '/lakes/brisa.html', '/news/dam.html')]
    )
    assert moved == PageFailure(site.address('/moved.html'), 'the robots.txt of the site does not allow it')
    assert isinstance(lake, WebPage)
    assert isinstance(news, WebPage)
    assert len(site.asked('/robots.txt')) == 1
    assert site.asked('/rivers/kelda.html') == []
    async with Web(load_settings(**site.settings), obeys_robots=False, cache=tmp_path) as other:
        assert isinstance(await page(other, site.address('/moved.html')), WebPage)


async def test_a_site_whose_robots_txt_fails_is_left_alone(site: LoopbackWeb, web: Web) -> None:
    site.pages['/robots.txt'] = Answer(status=503, type=None)
    assert 'robots.txt' in await failure(web, site.address('/rivers/kelda.html'))


async def test_requests_say_who_asks_and_carry_nothing_else(site: LoopbackWeb, web: Web) -> None:
    site.pages['/rivers/kelda.html'] = Answer(
        body=site.pages['/rivers/kelda.html'].body, headers={'Set-Cookie': 'id=1; Path=/'}
    )
    await page(web, site.address('/rivers/kelda.html'))
    await page(web, site.address('/rivers/kelda.html'))
    headers = site.asked('/rivers/kelda.html')[-1].headers
    assert headers['User-Agent'] == USER_AGENT
    assert set(headers) <= {'Host', 'User-Agent', 'Accept', 'Accept-Encoding', 'Connection'}


async def test_an_unchanged_page_is_not_sent_again(site: LoopbackWeb, tmp_path: Path) -> None:
    site.pages['/a.html'] = Answer(body=article('First', 'One. ' * 50).body, headers={'ETag': '"1"'})
    for title in ('First', 'First', 'Second'):
        if title == 'Second':
            site.pages['/a.html'] = Answer(body=article('Second', 'Two. ' * 50).body, headers={'ETag': '"2"'})
        async with Web(load_settings(**site.settings), cache=tmp_path) as web:
            assert (await page(web, site.address('/a.html'))).title == title
    assert [asked.headers.get('If-None-Match') for asked in site.asked('/a.html')] == [None, '"1"', '"1"']


async def test_a_host_gets_few_requests_at_a_time_and_not_all_at_once(site: LoopbackWeb, tmp_path: Path) -> None:
    busy, most, release = 0, 0, asyncio.Event()
    loop = asyncio.get_running_loop()

    def chunks() -> list[bytes]:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        asyncio.run_coroutine_threadsafe(release.wait(), loop).result()
        busy -= 1
        return [b'text']

    site.pages |= {f'/{number}.txt': Answer(chunks=chunks, type='text/plain') for number in range(6)}
    limits = DownloadLimits(per_host=2, pace=0)
    async with Web(load_settings(**site.settings), limits=limits, cache=tmp_path) as web:
        fetching = asyncio.create_task(web.fetch([site.address(f'/{number}.txt') for number in range(6)]))
        await until(lambda: busy == 2)
        release.set()
        assert all(isinstance(each, WebPage) for each in await fetching)
    assert most == 2


async def test_the_user_is_told_in_one_line_what_is_searched_and_how_to_get_better(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, site: LoopbackWeb
) -> None:
    for name in ('BRAVE_API_KEY', 'TAVILY_API_KEY'):
        monkeypatch.delenv(name, raising=False)

    def told(**settings: object) -> str:
        return Web(load_settings(tmp_path, **settings)).description

    assert told() == (
        'searches with ddgs (DuckDuckGo and others, no key needed, few requests allowed); '
        'for more set searxng_url, BRAVE_API_KEY or TAVILY_API_KEY'
    )
    monkeypatch.setenv('TAVILY_API_KEY', 'tvly-secret')
    assert told() == 'searches with Tavily (TAVILY_API_KEY)'
    monkeypatch.setenv('BRAVE_API_KEY', 'brave-secret')
    assert told() == 'searches with Brave (BRAVE_API_KEY)'
    assert told(**site.settings) == f'searches with SearXNG at {site.url.removeprefix("http://")}'
