"""The other views of the page in a real browser: runs, memory, tools, files, the palette; with hostile text."""

import json
import time
from base64 import b64decode
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FilePayload, Page, expect

from habilis.agent import Agent
from habilis.core.background_loop import run_blocking
from habilis.forge.contract import Candidate
from habilis.forge.library.library import Library
from habilis.journal import RunInfo
from habilis.journal.stores.urls import open_store
from habilis.models.contract import Message
from habilis.models.scripted import ScriptedModel
from habilis.server.settings import LOCAL
from tests.server.assistant.axe import check
from tests.server.assistant.conftest import Serve
from tests.server.assistant.test_page import ATTACK, DOT, send

TEXT = json.dumps(ATTACK)
TOOL = f'def double(x: int) -> int:\n    """Twice {ATTACK}."""\n    return 2 * x\n'
TESTS = f'from tool import double\n\ndef test_two():\n    assert double(2) == 4, {TEXT}\n'


def reply(messages: Sequence[Message]) -> str:
    last = max(number for number, message in enumerate(messages) if message.role == 'user' and not message.by_agent)
    if sum(message.role == 'assistant' for message in messages[last:]):
        return f'Done {ATTACK}'
    return f'I look {ATTACK}\n```python\nname = {TEXT}\ncount = {last}\nprint(name)\n```'


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of the width of a desktop; `test_walk.py` and `test_page.py` use both widths."""
    page = browser.new_page(viewport={'width': 1280, 'height': 800})
    yield page
    page.close()


def ask(page: Page, text: str) -> None:
    """Send a message, and wait for the end of its turn, which links to its run."""
    ended = page.locator('.turn').get_by_role('link', name='run-')
    before = ended.count()
    send(page, text)
    expect(ended).to_have_count(before + 1)


def test_runs_are_listed_looked_into_compared_and_deleted(serve: Serve, page: Page) -> None:
    with serve(reply) as address:
        page.goto(address)
        ask(page, f'First {ATTACK}')
        ask(page, 'Second')
        check(page)
        page.goto(f'{address}/#/runs')
        rows = page.get_by_label('Runs').get_by_role('listitem')
        expect(rows).to_have_count(2)
        expect(rows.first).to_contain_text('tokens · $0.0000')
        check(page)
        for box in page.get_by_role('checkbox').all():
            box.check()
        page.get_by_role('link', name='Compare the two').click()
        expect(page.get_by_label('Comparison').locator('details[open] summary').first).to_contain_text('different')
        check(page)
        page.get_by_role('link', name='All runs').click()
        page.get_by_role('link', name='First').click()
        page.get_by_role('button', name='1. name').click()
        expect(page.get_by_label('Step 1', exact=True)).to_contain_text('count')
        expect(page.get_by_label('Step 1', exact=True)).to_contain_text('<img src=x')
        page.get_by_role('button', name='2. Done').click()
        expect(page.get_by_label('Step 2', exact=True)).to_contain_text('count')  # no code: the variables are as before
        check(page)
        page.get_by_role('button', name='Delete').click()
        page.get_by_role('button', name='Delete it for good').click()
        expect(rows).to_have_count(1)


def test_the_fleet_is_counted_and_its_slowest_runs_are_linked(serve: Serve, page: Page, tmp_path: Path) -> None:
    fill(tmp_path / 'journal.db')
    with serve(reply) as address:
        page.goto(f'{address}/#/fleet')
        fleet = page.get_by_label('Fleet')
        for name, figure in {'ended': '10', 'queued': '1,200', 'running': '0', 'cost': '$2.0000'}.items():
            expect(fleet.locator('.figures div').filter(has_text=name).locator('dd').first).to_have_text(figure)
        expect(page.get_by_label('Failures').get_by_role('listitem').first).to_contain_text('max_steps 2 · 20.0 %')
        expect(page.get_by_label('Failures')).to_contain_text('ModelError 1')
        expect(fleet.locator('rect')).to_have_count(60)
        slowest = page.get_by_label('Slowest runs').get_by_role('listitem')
        expect(slowest).to_have_count(10)
        expect(slowest.first).to_contain_text(f'Task 9 {ATTACK}')
        check(page)
        page.get_by_label('Period').select_option('week')
        expect(fleet.locator('.figures div').filter(has_text='ended').locator('dd').first).to_have_text('11')
        slowest.first.get_by_role('link').click()
        expect(page.get_by_label('Runs')).to_be_visible()


def fill(journal: Path) -> None:
    """Runs as a map leaves them: answers, two limits, a failure, one of yesterday, a queue; and one of another user."""

    async def create() -> None:
        store, now = open_store(str(journal)), time.time()
        for number in range(10):
            ended = {3: 'max_steps', 6: 'max_steps', 8: 'ModelError'}.get(number, 'answer')
            seconds, at = float(number), now - 300 * number
            info = RunInfo(run=f'r{number}', user=LOCAL, title=f'Task {number} {ATTACK}', ended=ended, cost=0.2)
            status = 'failed' if ended == 'ModelError' else 'done'
            await store.create(replace(info, status=status, seconds=seconds, created=at, updated=at))
        await store.create(RunInfo(run='old', user=LOCAL, status='done', created=now - 90_000, updated=now - 90_000))
        await store.create(RunInfo(run='theirs', user='bob', status='done', cost=9.0, updated=now))
        for number in range(1200):
            await store.create(RunInfo(run=f'q{number}', user=LOCAL, status='queued', updated=now))
        await store.close()

    run_blocking(create())


def test_a_run_of_another_browser_appears_in_the_list(serve: Serve, browser: Browser) -> None:
    with serve(reply) as address:
        watching, working = browser.new_page(), browser.new_page()
        watching.goto(f'{address}/#/runs')
        expect(watching.get_by_text('No runs yet')).to_be_visible()
        working.goto(address)
        ask(working, 'Go')
        expect(watching.get_by_label('Runs').get_by_role('listitem')).to_contain_text('done')
        watching.close()
        working.close()


def test_an_agent_inside_a_step_is_shown_below_it(serve: Serve, page: Page) -> None:
    helper = Agent(ScriptedModel([f'```python\nfinal_answer({TEXT})\n```']), name='helper')
    script = [f'```python\ngot = helper({TEXT})\n```', '```python\nfinal_answer("Done")\n```']
    with serve(script, tools=[helper.as_tool()]) as address:
        page.goto(address)
        ask(page, 'Delegate')
        page.get_by_role('link', name='run-').click()
        inner = page.get_by_label('Agents of step 1')
        inner.locator('summary').click()
        expect(inner).to_contain_text('1 reply')
        expect(inner).to_contain_text('final_answer')
        check(page)


def test_facts_and_tasks_are_added_found_used_and_forgotten(serve: Serve, page: Page) -> None:
    with serve(reply) as address:
        page.goto(f'{address}/#/memory')
        page.get_by_label('Fact').fill(f'The boat is blue {ATTACK}')
        page.get_by_role('button', name='Remember').click()
        remembered = page.get_by_label('Remembered').get_by_role('listitem')
        expect(remembered).to_contain_text('The boat is blue <img')
        page.get_by_label('Task', exact=True).fill(f'Paint it {ATTACK}')
        page.get_by_role('button', name='Add').click()
        expect(page.get_by_label('Tasks', exact=True)).to_contain_text('Paint it <img')
        check(page)
        page.goto(f'{address}/#')
        ask(page, 'Is the boat blue?')
        page.get_by_text('Memory used: 1').click()
        used = page.get_by_role('listitem').filter(has_text='The boat is blue <img')
        expect(used).to_contain_text('of the words (boat, blue)')
        check(page)
        page.goto(f'{address}/#/memory')
        page.get_by_role('button', name='Correct Paint it').click()
        page.get_by_label('Task', exact=True).fill('Sell it')
        page.get_by_role('button', name='Correct the task').click()
        page.get_by_role('button', name='Complete Sell it').click()
        expect(page.get_by_text('Nothing to do.')).to_be_visible()
        page.get_by_label('Search the memory').fill('blue boat')
        page.get_by_label('Search the memory').press('Enter')
        expect(remembered.first).to_contain_text('of the words')
        page.get_by_role('button', name='Forget The boat is blue').click()
        expect(remembered.filter(has_text='is blue')).to_have_count(0)


def test_a_tool_of_the_library_is_found_and_read(serve: Serve, page: Page, tmp_path: Path) -> None:
    Library(tmp_path / 'library').add(Candidate(name='double', code=TOOL, tests=TESTS), request=ATTACK)
    with serve(reply) as address:
        page.goto(f'{address}/#/tools')
        page.get_by_label('Search the tools').fill('twice')
        page.get_by_label('Search the tools').press('Enter')
        page.get_by_role('link', name='double').click()
        expect(page.get_by_label('Tools')).to_contain_text('return 2 * x')
        expect(page.get_by_label('Tools')).to_contain_text('assert double(2) == 4')
        check(page)


def test_files_are_previewed_as_text_or_image_and_downloaded(serve: Serve, page: Page, tmp_path: Path) -> None:
    folder = tmp_path / 'shared'
    folder.mkdir()
    (folder / '<img src=x onerror=window.hit=1>.html').write_text(ATTACK)
    (folder / 'dot.png').write_bytes(b64decode(DOT))
    with serve(reply, workspace=folder) as address:
        page.goto(address)
        sent: FilePayload = {
            'name': '<img src=x onerror=window.hit=1>.csv',
            'mimeType': 'text/csv',
            'buffer': ATTACK.encode(),
        }
        page.get_by_label('Attach').set_input_files([sent])
        ask(page, 'Look')
        page.get_by_role('button', name='Files').click()
        files = page.get_by_label('Files')
        files.get_by_role('button', name='dot.png').click()
        expect(files.get_by_alt_text('dot.png')).to_have_js_property('naturalWidth', 1)
        check(page)
        files.get_by_role('button', name='Back').click()
        files.get_by_role('button', name='.csv').click()
        expect(files.get_by_label('Preview').locator('pre')).to_contain_text('<script>window.hit=1</script>')
        files.get_by_role('button', name='Back').click()
        files.get_by_role('button', name='.html').click()
        expect(files.get_by_label('Preview').locator('pre')).to_contain_text('<script>window.hit=1</script>')
        check(page)
        files.get_by_role('button', name='Back').click()
        with page.expect_download() as started:
            files.get_by_role('link', name='.html').click()
        assert started.value.path().read_text() == ATTACK


def test_the_keyboard_alone_is_enough(serve: Serve, page: Page) -> None:
    with serve(reply) as address:
        page.goto(address)
        expect(page.get_by_label('Message', exact=True)).to_be_focused()
        page.keyboard.type(f'Boat {ATTACK}')
        page.keyboard.press('Enter')
        expect(page.locator('.turn .markdown').last).to_contain_text('Done')
        page.keyboard.press('Control+k')
        expect(page.get_by_role('combobox', name='Go to')).to_be_focused()
        check(page)
        page.keyboard.type('runs')
        page.keyboard.press('Enter')
        expect(page.get_by_role('heading', name='Runs')).to_be_visible()
        page.keyboard.press('Control+k')
        expect(page.get_by_role('combobox', name='Go to')).to_be_focused()
        page.keyboard.type('boat')
        page.keyboard.press('Enter')
        expect(page.locator('.turn .markdown').last).to_contain_text('Done')
        page.keyboard.press('Control+k')
        expect(page.get_by_role('combobox', name='Go to')).to_be_focused()
        page.keyboard.press('Escape')
        expect(page.get_by_role('combobox', name='Go to')).to_have_count(0)


def test_escape_stops_a_turn(serve: Serve, page: Page) -> None:
    with serve(['```python\nwhile True: pass\n```']) as address:
        page.goto(address)
        send(page, 'Go')
        expect(page.get_by_label('Code of step 1')).to_be_visible()
        page.keyboard.press('Escape')
        expect(page.get_by_role('button', name='Go on')).to_be_visible()
