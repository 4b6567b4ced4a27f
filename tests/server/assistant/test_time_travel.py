"""Going back in a run on the page: edit, run again, graph, approvals, a file to share; with hostile text."""

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from habilis.agent import Agent
from habilis.core.settings import ModelSettings, Settings
from habilis.flows import flow, step
from habilis.models.contract import Message
from habilis.models.scripted import ScriptedModel
from habilis.server.settings import LOCAL
from habilis.tools import tool
from tests.server.assistant.conftest import Serve
from tests.server.assistant.test_page import ATTACK, DOT, SHOW, send
from tests.server.assistant.test_views import TEXT, ask, check

SECRET = 'sk-proj-abcdefghijklmnop1234'


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of the width of a phone, where less fits; `test_walk.py` and `test_page.py` use both widths."""
    page = browser.new_page(viewport={'width': 390, 'height': 800})
    yield page
    page.close()


@tool
def price(item: str) -> object:
    """The price, with hostile text."""
    return {'euro': 1, 'note': ATTACK}


def reply(messages: Sequence[Message]) -> str:
    """Gets a price, then answers with it and with what was said last."""
    said = [message.text.splitlines()[0] for message in messages if message.role == 'user' and not message.by_agent]
    if messages[-1].by_agent or any(message.role == 'assistant' for message in messages):
        return f'```python\nfinal_answer(f"{{count}} at {{cost}} for " + {said[-1]!r})\n```'
    return f'I ask. {ATTACK}\n```python\ncount = 3\ncost = price({TEXT})["euro"]\nprint(count)\n```'


def test_code_and_messages_are_edited_and_run_again(serve: Serve, page: Page) -> None:
    with serve(reply, tools=[price]) as address:
        page.goto(address)
        ask(page, f'First {ATTACK}')
        expect(page.get_by_label('Turns')).to_contain_text('3 at 1 for First')
        page.get_by_label('Code of step 1').get_by_role('button', name='Edit').click()
        check(page)
        code = page.get_by_label('Code', exact=True)
        code.fill(code.input_value().replace('count = 3', 'count = 4'))
        page.get_by_role('button', name='Run from here').click()
        expect(page.get_by_label('Turns')).to_contain_text('4 at 1 for First')
        page.locator('.task').get_by_role('button', name='Edit').click()
        page.get_by_label('Your message').fill('Second')
        page.get_by_role('button', name='Run from here').click()
        expect(page.get_by_label('Turns')).to_contain_text('3 at 1 for Second')
        check(page)
        page.goto(f'{address}/#/runs')
        expect(page.get_by_label('Runs').get_by_role('listitem')).to_have_count(3)  # the first is still there
        expect(page.get_by_label('Runs')).to_contain_text('Second')


def test_a_step_runs_again_with_another_result_instruction_or_model(serve: Serve, page: Page, tmp_path: Path) -> None:
    (tmp_path / 'other.json').write_text(json.dumps([f'```python\nfinal_answer({TEXT})\n```']))
    settings = Settings(models={'other': ModelSettings(model=f'scripted:{tmp_path / "other.json"}')})
    with serve(reply, tools=[price], settings=settings) as address:
        page.goto(address)
        ask(page, 'Buy')
        page.get_by_role('link', name='run-').click()
        page.get_by_role('button', name='1. count').click()
        page.get_by_role('button', name='Change the result').click()
        page.get_by_label('Result').fill('{"euro": 7}')
        check(page)
        page.get_by_role('button', name='Run from here').click()
        expect(page.get_by_role('link', name='Compare with run-')).to_be_visible()
        page.get_by_role('button', name='2. final_answer').click()
        expect(page.get_by_label('Step 2', exact=True)).to_contain_text('count')
        page.get_by_text('Run again from step 2').click()
        page.get_by_label('Say something first').fill(f'Sell {ATTACK}')
        first = page.url
        page.get_by_role('button', name='Run again').click()
        page.wait_for_url(lambda address: address != first)
        expect(page.get_by_label('Step 2', exact=True)).to_contain_text('Sell <img')
        check(page)
        page.get_by_text('Run again from step 2').click()
        page.get_by_label('Model').fill('nothing:at-all')
        page.get_by_role('button', name='Run again').click()
        expect(page.get_by_role('alert')).to_contain_text('nothing')
        page.get_by_label('Model').fill('other')
        page.get_by_role('button', name='Run again').click()
        expect(page.get_by_label('Step 2', exact=True)).to_contain_text('onerror')


def test_the_graph_of_a_run_colours_as_it_goes(serve: Serve, page: Page) -> None:
    may_go = threading.Event()

    @tool
    def wait() -> None:
        """Wait for the test."""
        may_go.wait(60)

    helper = Agent(ScriptedModel([f'```python\nwait()\nfinal_answer({TEXT})\n```']), name='helper', tools=[wait])
    script = [f'```python\ngot = helper({TEXT})\n```', '```python\nfinal_answer("Done")\n```']
    with serve(script, tools=[helper.as_tool()]) as address:
        page.goto(address)
        send(page, 'Delegate')
        page.goto(f'{address}/#/runs')
        page.get_by_role('link', name='Delegate').click()
        running = page.locator('.graph .node.running')
        expect(running.filter(has_text='wait').first).to_be_visible()
        may_go.set()
        expect(page.locator('.graph .node.done').filter(has_text='wait').first).to_be_visible()
        expect(running).to_have_count(0)
        check(page)


@step
async def fetch(name: str) -> str:
    """A step."""
    return name.upper()


@step
async def fail(name: str) -> str:
    """A step that fails."""
    raise ValueError(ATTACK)


@flow
async def report(name: str) -> str:
    """A flow with parallel steps."""
    both = await asyncio.gather(fetch(name), fetch('b'))
    return await fail(''.join(both))


def test_a_flow_is_drawn_with_parallel_steps_beside_each_other(serve: Serve, page: Page, tmp_path: Path) -> None:
    async def record() -> None:
        run = await report.start(ATTACK, run_id='report', user=LOCAL, journal=str(tmp_path / 'journal.db'))
        with pytest.raises(ValueError, match='onerror'):
            await run.result()

    with ThreadPoolExecutor() as threads:  # this one has the event loop of the browser
        threads.submit(asyncio.run, record()).result()
    with serve(reply) as address:
        page.goto(f'{address}/#/runs/report')
        parts = page.locator('.graph .node .node')
        expect(parts).to_have_count(3)
        left, right, below = (parts.nth(number).bounding_box() for number in range(3))
        assert left
        assert right
        assert below
        assert (left['y'], left['x'] < right['x']) == (right['y'], True)
        assert below['y'] > left['y']
        expect(page.locator('.graph .node.failed').last).to_contain_text('fail')
        check(page)


def test_an_approval_is_refused_with_a_reason_from_another_browser(serve: Serve, browser: Browser) -> None:
    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        return 'paid'

    script = ['```python\npay(4)\n```', '```python\nfinal_answer("Then not")\n```']
    with serve(script, tools=[pay]) as address:
        first, second = browser.new_page(), browser.new_page()
        first.goto(address)
        send(first, 'Pay')
        expect(first.get_by_label('Question')).to_contain_text('"amount": 4')
        second.goto(f'{address}/#/runs')
        second.get_by_role('link', name='Pay').click()
        question = second.get_by_label('Question')
        expect(question).to_contain_text('"amount": 4')
        question.get_by_label('Reason').fill('Too much')
        question.get_by_role('button', name='No', exact=True).click()
        for each in (first, second):
            expect(each.get_by_label('Question')).to_have_count(0)
        expect(first.get_by_label('Turns')).to_contain_text('Too much')
        expect(first.get_by_label('Turns')).to_contain_text('Then not')
        first.close()
        second.close()


def test_a_call_that_was_cut_off_is_given_its_result_or_made_again(serve: Serve, browser: Browser) -> None:
    @tool(idempotent=False)
    async def pay() -> str:
        """Pay, but the server stops meanwhile."""
        await asyncio.sleep(3600)
        return 'never'

    script = ['```python\nfinal_answer(await pay())\n```']
    page = browser.new_page()
    with serve(script, tools=[pay]) as address:
        page.goto(address)
        send(page, 'Pay')
        expect(page.locator('.call.running')).to_be_visible()
    with serve([], tools=[pay]) as address:
        page.goto(address)
        page.get_by_role('button', name='Pay', exact=False).first.click()
        question = page.get_by_label('Question')
        expect(question.get_by_role('button', name='Call it again')).to_be_visible()
        question.get_by_label('Result').fill('paid by hand')
        question.get_by_role('button', name='Result').click()
        expect(page.locator('.answer')).to_contain_text('paid by hand')
    page.close()


def test_a_shared_run_opens_from_a_file_and_runs_nothing(serve: Serve, page: Page, tmp_path: Path) -> None:
    html = f"class Page:\n    def _repr_html_(self):\n        return {TEXT} + '<b>bold</b>'\ndisplay(Page())"
    script = [
        f'I look {ATTACK}\n```python\nkey = "{SECRET}"\nprint(key, {TEXT})\nname = {TEXT}\ncost = price({TEXT})\n```',
        f'```python\ndata = "{DOT}"{SHOW}{html}\nraise ValueError({TEXT})\n```',
        f'All **done** {ATTACK}',
    ]
    with serve(script, tools=[price]) as address:
        page.goto(address)
        ask(page, f'Go {ATTACK}')
        page.get_by_role('link', name='run-').click()
        with page.expect_download() as download:
            page.get_by_role('link', name='Share').click()
        download.value.save_as(tmp_path / 'run.html')
    assert SECRET not in (tmp_path / 'run.html').read_text()
    requests: list[str] = []
    page.on('request', lambda request: requests.append(request.url))
    page.goto(f'file://{tmp_path}/run.html')
    expect(page.locator('strong', has_text='done')).to_be_visible()
    for folded in page.locator('summary').all():
        folded.click()
    expect(page.frame_locator('iframe').locator('b')).to_have_text('bold')
    expect(page.locator('img')).to_have_js_property('naturalWidth', 1)
    check(page)
    assert [url for url in requests if not url.startswith(('file:', 'data:', 'about:'))] == []
