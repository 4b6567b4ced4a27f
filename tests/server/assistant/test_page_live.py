"""The page while much happens: a killed server, two users, many turns, ten thousand events."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from benchmarks.server.sample_run import store_run
from habilis.journal.stores.urls import open_store
from habilis.models.contract import Message
from tests.server.assistant.conftest import Serve
from tests.server.assistant.test_page import send
from tests.server.assistant.worker import start

COUNT_RECORDS = """
window.seen = [];
const Source = window.EventSource;
window.EventSource = class extends Source {
  constructor(address) {
    super(address);
    this.addEventListener('record', (event) => window.seen.push(JSON.parse(event.data).seq));
  }
};
"""


def test_a_run_is_watched_while_the_server_is_killed_and_comes_back(tmp_path: Path, browser: Browser) -> None:
    page = browser.new_page()
    page.add_init_script(COUNT_RECORDS)
    server, address = start(tmp_path)
    try:
        page.goto(address)
        send(page, 'Go')
        expect(page.get_by_label('Code of step 2')).to_contain_text('wait()')
        server.kill()
        server.wait()
        (tmp_path / 'go').touch()
        server, _ = start(tmp_path, int(address.rpartition(':')[2]))
        expect(page.locator('.turn .answer')).to_contain_text('noted')
        expect(page.locator('.turn').get_by_role('link', name='run-')).to_be_visible()
        for step in (1, 2, 3):
            expect(page.get_by_label(f'Code of step {step}')).to_have_count(1)
    finally:
        server.kill()
        server.wait()
    seen = page.evaluate('window.seen')
    page.close()
    assert seen == list(range(1, len(seen) + 1)), 'a record is missing, or came twice'
    assert (tmp_path / 'calls').read_text() == 'once\n'


def answer(messages: Sequence[Message]) -> str:
    last = [message.text for message in messages if message.role == 'user' and not message.by_agent][-1]
    return f'I heard: {last}'


def test_two_users_at_once_see_only_their_own(serve: Serve, browser: Browser) -> None:
    keys = ('a' * 20, 'b' * 20)
    with serve(answer, keys=keys) as address:
        pages: list[Page] = []
        for key in keys:
            page = browser.new_context().new_page()
            page.goto(address)
            page.get_by_label('Your token').fill(key)
            page.get_by_role('button', name='Open').click()
            pages.append(page)
        for page, word in zip(pages, ('pears', 'quinces'), strict=True):
            send(page, f'I like {word}')
        for page, word, other in zip(pages, ('pears', 'quinces'), ('quinces', 'pears'), strict=True):
            expect(page.locator('.turn .markdown')).to_contain_text(f'I heard: I like {word}')
            listed = page.get_by_label('Conversations').get_by_role('listitem')
            expect(listed).to_have_count(1)
            expect(listed).to_contain_text(word)
            page.goto(f'{address}/#/runs')
            expect(page.get_by_label('Runs').get_by_role('listitem')).to_have_count(1)
            assert other not in page.content()
            page.context.close()


def test_a_conversation_of_many_turns_leaves_connections_for_others(serve: Serve, browser: Browser) -> None:
    with serve(answer) as address:
        page = browser.new_page()
        page.goto(address)
        ended = page.locator('.turn').get_by_role('link', name='run-')
        for number in range(8):  # browsers open six connections to a server
            send(page, f'Turn {number}')
            expect(ended).to_have_count(number + 1)
        page.reload()
        expect(ended).to_have_count(8)
        send(page, 'Turn 8')
        expect(ended).to_have_count(9)
        page.close()


def test_a_page_that_is_hidden_catches_up_when_it_is_seen(serve: Serve, browser: Browser) -> None:
    hide = """(hidden) => {
      Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    }"""
    with serve(answer) as address:
        hidden, working = browser.new_page(), browser.new_page()
        hidden.goto(f'{address}/#/runs')
        expect(hidden.get_by_text('No runs yet')).to_be_visible()
        hidden.evaluate(hide, True)
        working.goto(address)
        send(working, 'Go')
        expect(working.locator('.turn').get_by_role('link', name='run-')).to_be_visible()
        expect(hidden.get_by_text('No runs yet')).to_be_visible()
        hidden.evaluate(hide, False)
        expect(hidden.get_by_label('Runs').get_by_role('listitem')).to_contain_text('done')
        hidden.close()
        working.close()


def test_ten_thousand_events_in_one_run_stay_smooth(serve: Serve, browser: Browser, tmp_path: Path) -> None:
    async def fill() -> None:
        store = open_store(str(tmp_path / 'journal.db'))
        await store_run(store, 'run-long', 10_000)
        await store.close()

    with ThreadPoolExecutor() as thread:  # Playwright has a loop in this one
        thread.submit(lambda: asyncio.run(fill())).result()
    with serve(answer) as address:
        page = browser.new_page()
        for place, last in (('#long', 'Code of step 4999'), ('#/runs/run-long', 'Step 4999')):
            page.goto(f'{address}/{place}')
            page.reload()
            expect(page.get_by_label(last, exact=True)).to_contain_text('# step 4999')
            assert page.locator('*').count() < 6_000, 'what nobody sees is drawn'
            page.get_by_role('button', name='earlier steps').click()
            expect(page.get_by_label(last, exact=True)).to_be_visible()
        page.close()
