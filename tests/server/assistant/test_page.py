"""The page in a real browser: watch, approve, reload, on a phone, and with hostile text everywhere."""

import re
from collections.abc import Sequence

import pytest
from playwright.sync_api import Browser, Page, expect

from habilis.models.contract import Message
from habilis.tools import tool
from tests.server.assistant.conftest import Serve

ATTACK = '<img src=x onerror="window.hit=1"><script>window.hit=1</script><a href="javascript:window.hit=1">go</a>'
DOT = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
SHOW = """
import base64
class Dot:
    def _repr_png_(self):
        return base64.b64decode(data)
display(Dot())
"""
REPLIES = [
    'I look at the **prices**.\n```python\nprices = {"apple": price("apple")}\nprint("got", prices)\n```',
    f'```python\ndata = "{DOT}"{SHOW}```',
    '```python\nreceipt = pay(4)\n```',
    f'All **paid**. {ATTACK}',
]


@tool
def price(item: str) -> float:
    """The price."""
    return 1.5


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f'paid {amount} {ATTACK}'


def reply(messages: Sequence[Message]) -> str:
    last = max(number for number, message in enumerate(messages) if message.role == 'user' and not message.by_agent)
    return REPLIES[sum(message.role == 'assistant' for message in messages[last:])]


def send(page: Page, text: str) -> None:
    page.get_by_label('Message').fill(text)
    page.get_by_label('Message').press('Enter')


@pytest.mark.parametrize('width', [1280, 390])
def test_a_person_watches_approves_and_reloads(serve: Serve, browser: Browser, width: int) -> None:
    with serve(reply, tools=[price, pay]) as address:
        page = browser.new_page(viewport={'width': width, 'height': 800})
        page.goto(address)
        expect(page.get_by_role('heading', name='What shall we do?')).to_be_visible()
        send(page, f'Buy an apple {ATTACK}')
        approval = page.get_by_label('Question')
        expect(approval).to_contain_text('May pay be called?')
        page.reload()
        expect(approval).to_contain_text('"amount": 4')
        expect(page.get_by_label('Code of step 1')).to_contain_text("got {'apple': 1.5}")
        expect(page.get_by_alt_text(re.compile('Shown by step 2'))).to_be_visible()
        approval.get_by_role('button', name='Yes').click()
        expect(page.locator('.markdown strong', has_text='paid')).to_be_visible()
        expect(approval).to_have_count(0)
        page.get_by_role('button', name='Variables', exact=True).click()
        expect(page.get_by_label('Variables', exact=True)).to_contain_text('receipt')
        assert page.evaluate('window.hit') is None, 'text of the model, of a tool or of the user was run'
        assert page.locator('a[href^="javascript"]').count() == 0
        overflow = page.evaluate('document.documentElement.scrollWidth - window.innerWidth')
        assert overflow <= 0, 'the page is wider than the window'
        page.close()


def test_a_fork_is_a_conversation_of_its_own(serve: Serve, browser: Browser) -> None:
    with serve(reply, tools=[price, pay]) as address:
        page = browser.new_page()
        page.goto(address)
        send(page, 'Buy an apple')
        expect(page.get_by_label('Question')).to_be_visible()
        page.get_by_label('Code of step 2').get_by_role('button', name='Fork').click()
        expect(page.get_by_label('Question')).to_be_visible()
        expect(page.get_by_label('Conversations').get_by_role('listitem')).to_have_count(2)
        page.close()


def test_a_stranger_needs_a_token(serve: Serve, browser: Browser) -> None:
    key = 'k' * 24
    with serve(reply, keys=(key,)) as address:
        page = browser.new_page()
        page.goto(address)
        page.get_by_label('Your token').fill('wrong')
        page.get_by_role('button', name='Open').click()
        expect(page.get_by_role('alert')).to_contain_text('nobody')
        page.get_by_label('Your token').fill(key)
        page.get_by_role('button', name='Open').click()
        expect(page.get_by_role('heading', name='What shall we do?')).to_be_visible()
        assert page.evaluate('document.cookie') == '', 'scripts can read the token'
        page.close()


HTML = """
class Report:
    def _repr_html_(self):
        return page
page = '<b>bold</b><script>parent.hit = 1</script><img src="http://example.invalid/x" onerror="parent.hit = 1">'
page += '<meta http-equiv="refresh" content="0; url=/api/status"><a target="_top" href="/api/health">out</a>'
display(Report())
"""


def test_html_of_code_is_shown_in_a_frame_that_can_do_nothing(serve: Serve, browser: Browser) -> None:
    with serve([f'```python{HTML}```', 'Done']) as address:
        page = browser.new_page()
        asked: list[str] = []
        page.on('request', lambda request: asked.append(request.url))
        page.goto(address)
        send(page, 'Show it')
        expect(page.locator('.turn').get_by_role('link', name='run-')).to_be_visible()
        frame = page.frame_locator('iframe')
        expect(frame.locator('b')).to_have_text('bold')
        frame.get_by_role('link', name='out').click()
        expect(page.locator('iframe')).to_have_attribute('sandbox', '')
        expect(page.get_by_label('Message', exact=True)).to_be_visible()
        assert page.evaluate('window.hit') is None, 'a script of the frame was run'
        assert not [url for url in asked if 'example.invalid' in url or url.endswith('/api/health')], (
            'it left the frame'
        )
        page.close()
