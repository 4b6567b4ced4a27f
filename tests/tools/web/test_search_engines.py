"""Search engines: what they are asked, who gets which key, and what is said when they fail."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from habilis.core.errors import ToolCallError
from habilis.tools.web.contract import SearchResult
from habilis.tools.web.search_engines import Brave, GitHub, Repository, SearXNG, Tavily
from tests.tools.web import sites
from tests.tools.web.loopback import Answer, LoopbackWeb

HIT = {'title': 'A <strong>B</strong>', 'url': 'https://x.example/', 'description': 'c &amp; d', 'content': 'c &amp; d'}


def says(web: LoopbackWeb, path: str, reply: object, status: int = 200) -> str:
    """Let the server say this for a path with any query."""
    web.any_query[path] = Answer(body=json.dumps(reply).encode(), type='application/json', status=status)
    return web.address(path)


async def test_brave_gets_its_key_in_its_header(site: LoopbackWeb) -> None:
    engine = Brave('secret', says(site, '/brave', {'web': {'results': [HIT, {'url': 'javascript:x'}, 'bad']}}))
    assert await engine.search('a b', 2) == [SearchResult('A B', 'https://x.example/', 'c & d')]
    (asked,) = site.requests
    assert parse_qs(urlsplit(asked.path).query) == {'q': ['a b'], 'count': ['10'], 'offset': ['1']}
    assert asked.headers['X-Subscription-Token'] == 'secret'


async def test_tavily_has_two_pages(site: LoopbackWeb) -> None:
    hits = [{**HIT, 'title': str(number)} for number in range(20)]
    engine = Tavily('secret', says(site, '/tavily', {'results': hits}))
    assert [each.title for each in await engine.search('a', 2)] == [str(number) for number in range(10, 20)]
    assert await engine.search('a', 3) == []
    (asked,) = site.requests
    assert (asked.method, json.loads(asked.body)) == ('POST', {'query': 'a', 'max_results': 20})
    assert asked.headers['Authorization'] == 'Bearer secret'


async def test_searxng_has_pages() -> None:
    with LoopbackWeb({f'/{number:02}.html': sites.generated()['/lakes/brisa.html'] for number in range(12)}) as web:
        first, second = [await SearXNG(web.url).search('lake', page) for page in (1, 2)]
        assert [len(first), len(second)] == [10, 2]
        assert len({each.url for each in (*first, *second)}) == 12


async def test_github_sorts_by_stars_and_needs_no_token(site: LoopbackWeb) -> None:
    item = {'full_name': 'a/b', 'html_url': 'https://github.com/a/b', 'stargazers_count': 7, 'description': None}
    url = says(site, '/github', {'items': [{**item, 'language': 'Python'}]})
    assert await GitHub(None, url).search('x', 1) == [Repository('a/b', 'https://github.com/a/b', 7, '', 'Python')]
    await GitHub('token', url).search('x', 1)
    assert [asked.headers.get('Authorization') for asked in site.requests] == [None, 'Bearer token']
    assert parse_qs(urlsplit(site.requests[0].path).query)['sort'] == ['stars']


async def test_a_failure_says_what_to_do_and_no_key(site: LoopbackWeb) -> None:
    site.any_query['/html'] = Answer(body=b'<html>')
    site.any_query['/moved'] = Answer(status=302, headers={'Location': site.address('/brave')}, type=None)
    for url, text in [
        (says(site, '/denied', {}, status=401), 'HTTP status 401; is BRAVE_API_KEY valid?'),
        (site.address('/html'), 'not JSON'),
        (site.address('/moved'), 'HTTP status 302'),
        ('http://127.0.0.1:9/', 'is the server reachable?'),
    ]:
        with pytest.raises(ToolCallError) as caught:
            await Brave('very-secret', url).search('x', 1)
        assert text in str(caught.value)
        assert 'very-secret' not in str(caught.value)
    assert site.asked('/brave') == []
