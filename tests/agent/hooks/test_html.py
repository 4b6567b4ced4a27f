"""Untrusted text as HTML: Markdown, code, tables and displays, without anything that runs, loads or tracks."""

import base64
import re
from dataclasses import dataclass
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from habilis import Result
from habilis.agent.contract import Step
from habilis.agent.hooks.html import (
    MAX_ROWS,
    MAX_TEXT,
    block,
    code_block,
    display_block,
    folded,
    markdown_block,
    value_block,
)
from habilis.models.contract import Reply
from habilis.sandbox.contract import Cell, CellError, Display
from tests.cases import each_case

EVIL = '<script>alert(1)</script><img src=x onerror=alert(1)>"\'&lt;\x1b[2J\u202e'
ELEMENTS = set(
    'a blockquote br code details div em h1 h2 h3 h4 h5 h6 hr li ol p pre s span strong summary table tbody td th '
    'thead tr ul'.split()
)
ATTRIBUTES = {'class', 'href', 'rel', 'start', 'style', 'target', 'title'}


class Elements(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ''
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    @property
    def names(self) -> set[str]:
        """Names of the elements."""
        return {tag for tag, _ in self.found}


def check_harmless(page: str) -> Elements:
    """Nothing on the page runs, loads something, or goes elsewhere than to the web or a mail address."""
    elements = Elements(page)
    assert elements.names <= ELEMENTS
    for tag, attrs in elements.found:
        assert set(attrs) <= ATTRIBUTES, (tag, attrs)
        assert 'url(' not in (attrs.get('style') or '')
        if tag == 'a':
            assert re.match(r'https?://|mailto:', attrs['href'] or '', re.IGNORECASE)
            assert attrs['rel'] == 'noopener noreferrer'
    return elements


# Markdown -------------------------------------------------------------------------------------------------------------


def test_markdown_is_rendered() -> None:
    page = check_harmless(
        markdown_block('# Title\n\nSome **bold** `code`.\n\n- one\n\n| a |\n|---|\n| 1 |\n\n```python\nx = 1\n```')
    )
    assert {'h1', 'strong', 'code', 'li', 'table', 'td', 'span'} <= page.names
    assert 'x = 1' in page.text


def test_links_to_the_web_are_links_that_show_their_address() -> None:
    page = check_harmless(markdown_block('[here](https://example.com/?a=1&b="2")'))
    attrs = dict(page.found)['a']
    assert attrs['href'] == attrs['title'] == 'https://example.com/?a=1&b=%222%22'


@each_case(
    'text',
    [
        EVIL,
        '[x](javascript:alert(1))',
        '[x](JaVaScRiPt:alert(1))',
        '[x](&#106;avascript:alert(1))',
        '[x](java\tscript:alert(1))',
        '[x](<javascript:alert(1)>)',
        '[x](vbscript:x)',
        '[x](data:text/html,<script>alert(1)</script>)',
        '[x](file:///etc/passwd)',
        '[x](/logout)',
        '[x](//evil.example/)',
        '<javascript:alert(1)>',
        '[x][1]\n\n[1]: javascript:alert(1)',
        '[x](https://a.example "onclick=alert(1)")',
        '[x](https://a.example/"onmouseover="alert(1))',
        '<a href="https://x.example" onclick="alert(1)">x</a>',
        '<iframe src="https://evil.example"></iframe>',
        '<style>body{background:url(https://evil.example)}</style>',
        '```"><script>alert(1)</script>\nx\n```',
        '```python"onload="alert(1)\nx = "<b>"\n```',
        '| <b>a</b> |\n|---|\n| <script>1</script> |',
        '> <script>\n\n    <script>indented</script>',
    ],
)
def test_hostile_markdown_is_harmless(text: str) -> None:
    page = check_harmless(markdown_block(text))
    assert not any('script:' in (attrs.get('href') or '').lower() for _, attrs in page.found)


@pytest.mark.parametrize(
    'text', ['![a cat](https://evil.example/track.png?secret)', '![x][1]\n\n[1]: https://evil.example/x.png']
)
def test_an_image_is_not_loaded_but_named(text: str) -> None:
    page = check_harmless(markdown_block(text))
    assert 'img' not in page.names
    assert 'https://evil.example/' in page.text


@settings(max_examples=200)
@given(st.text(st.sampled_from('<>[]()!`|-#*_"\'&;:\\/\n \tajavscript:htp.=x'), max_size=60))
def test_no_text_becomes_something_harmful(text: str) -> None:
    for show in (markdown_block, value_block, code_block, block):
        check_harmless(show(text))


def test_control_characters_and_long_texts_are_shown_in_part() -> None:
    for show in (markdown_block, code_block, block):
        page = show(f'{EVIL}{"z" * (2 * MAX_TEXT)}')
        assert '\x1b' not in page
        assert '\u202e' not in page
        assert page.count('z') <= MAX_TEXT
        assert '…' in page


# Values ---------------------------------------------------------------------------------------------------------------


@dataclass
class City:
    """A record."""

    name: str
    people: int


class Town(BaseModel):
    """A record, too."""

    name: str
    people: int


@pytest.mark.parametrize(
    'records',
    [
        [{'name': 'Rome', 'people': 3}, {'name': 'Bonn', 'people': 1}],
        [City('Rome', 3), City('Bonn', 1)],
        (Town(name='Rome', people=3), Town(name='Bonn', people=1)),
    ],
)
def test_a_list_of_records_is_a_table(records: object) -> None:
    page = value_block(records)
    check_harmless(page)
    assert page == (
        '<table><thead><tr><th>name</th><th>people</th></tr></thead><tbody><tr><td>Rome</td><td>3</td></tr>'
        '<tr><td>Bonn</td><td>1</td></tr></tbody></table>'
    )


@pytest.mark.parametrize('record', [{'name': 'Rome', 'people': 3}, City('Rome', 3), Town(name='Rome', people=3)])
def test_a_record_is_a_table_of_its_fields(record: object) -> None:
    assert value_block(record) == (
        '<table><tbody><tr><td>name</td><td>Rome</td></tr><tr><td>people</td><td>3</td></tr></tbody></table>'
    )


def test_a_long_table_is_shown_in_part() -> None:
    page = value_block([{'n': number, 'text': 'z' * 10_000} for number in range(1000)])
    assert page.count('<tr>') == MAX_ROWS + 1
    assert '900 more rows' in page
    assert len(page) < 100_000


class Broken:
    """Something that cannot be printed."""

    def __repr__(self) -> str:
        raise RuntimeError('no')


VALUES = [42, None, [1, 2], [], {}, 10**10_000, {'a': 10**10_000}, Broken(), [Broken()], {EVIL: EVIL}, [{EVIL: [EVIL]}]]


@each_case('value', VALUES)
def test_every_value_is_shown(value: object) -> None:
    assert check_harmless(value_block(value)).text.strip()


# Displays and results -------------------------------------------------------------------------------------------------


def test_html_goes_into_a_frame_without_scripts_and_network() -> None:
    ((tag, attrs),) = Elements(display_block(Display(mime='text/html', data=EVIL))).found
    assert tag == 'iframe'
    assert set(attrs) == {'sandbox', 'srcdoc', 'style', 'title'}
    assert attrs['sandbox'] == ''
    assert "default-src 'none'" in (attrs['srcdoc'] or '')


def test_a_frame_is_as_high_as_its_table_but_not_endless() -> None:
    def height(rows: int) -> int:
        page = display_block(Display(mime='text/html', data='<tr><td>1</td></tr>' * rows))
        return int(re.findall(r'height:(\d+)px', page)[0])

    assert 0 < height(1) < height(5) < height(100) == height(1000)


@pytest.mark.parametrize('data', ['**bold**', EVIL])
def test_a_markdown_display_is_markdown(data: str) -> None:
    check_harmless(display_block(Display(mime='text/markdown', data=data)))


def test_folded_blocks_have_an_escaped_title() -> None:
    assert check_harmless(folded(EVIL, [block(EVIL)])).names == {'details', 'summary', 'div'}


def test_a_hostile_result_is_a_harmless_page() -> None:
    cell = Cell(
        text=EVIL,
        stdout=EVIL,
        error=CellError(kind='exception', type=EVIL, message=EVIL),
        displays=(Display(mime='image/png', data=EVIL.encode()), Display(mime=EVIL, data=EVIL)),
    )
    steps = (Step(number=1, reply=Reply(text=EVIL), code=EVIL, cell=cell), Step(number=2, reply=Reply(text=EVIL)))
    for result in (
        Result(output=EVIL, ended='answer', run_id=EVIL, steps=steps),
        Result(output=[{EVIL: EVIL}], ended='answer', run_id=EVIL, steps=steps),
        Result(output=None, ended='question', run_id=EVIL, question=EVIL, steps=steps),
    ):
        page = result._repr_mimebundle_()['text/html']  # pyright: ignore[reportPrivateUsage]
        data = base64.b64encode(EVIL.encode()).decode()
        image = f'<img src="data:image/png;base64,{data}" style="max-width:100%" alt="Shown by the code">'
        assert page.count(image) == 1
        check_harmless(page.replace(image, ''))
