"""A research on the page: begun, watched, its plan changed, its report opened."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx2
from playwright.sync_api import Browser, expect

from habilis.research import Folder
from tests.research.script import GOAL, Scholar, make_pages
from tests.server.assistant import axe
from tests.server.assistant.conftest import Serve
from tests.waiting import PATIENCE

ASKED = 'How cold is the river Kelda?'


class Waits(Scholar):
    """Does not read the first page before it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_read = threading.Event()

    def read(self, prompt: str) -> str:
        self.may_read.wait(60)
        return super().read(prompt)


def until(condition: Callable[[], bool]) -> None:
    """Wait, where Playwright may have a loop in this thread."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, 'it never came to that'
        time.sleep(0.05)


def test_a_research_is_watched_its_plan_changed_and_its_report_opened(
    serve: Serve, browser: Browser, tmp_path: Path
) -> None:
    pages, script = make_pages(tmp_path / 'pages'), Waits()
    with serve(script, open_source=lambda: Folder(pages)) as address:
        page = browser.new_page()
        page.goto(f'{address}/#/runs')
        page.get_by_label('Goal of a research').fill(GOAL)
        page.get_by_label('Effort').select_option('medium')
        page.get_by_role('button', name='Research').click()
        plan = page.get_by_label('Plan', exact=True)
        expect(plan).to_contain_text('How long is the river Tovar?')
        page.get_by_label('Another sub-goal').fill(ASKED)
        page.get_by_role('button', name='Add', exact=True).click()
        expect(page.get_by_label('Another sub-goal')).to_have_value('')
        script.may_read.set()
        expect(plan).to_contain_text(ASKED)
        expect(page.get_by_label('Sources')).to_contain_text('The river Kelda')
        expect(page.get_by_role('link', name='Report', exact=True)).to_be_visible()
        with page.expect_download() as download:
            page.get_by_role('link', name='Report', exact=True).click()
        assert '412 km' in Path(download.value.path()).read_text()
        axe.check(page)
        page.close()


def test_a_research_belongs_to_its_user_and_is_stopped_and_resumed(serve: Serve, tmp_path: Path) -> None:
    pages, script, keys = make_pages(tmp_path / 'pages'), Waits(), ('a' * 20, 'b' * 20)
    with serve(script, keys=keys, open_source=lambda: Folder(pages)) as address:
        ann, bob = (
            httpx2.Client(base_url=address, timeout=60, headers={'Authorization': f'Bearer {key}'}) for key in keys
        )
        with ann, bob:
            run = ann.post('/api/research', json={'goal': GOAL, 'effort': 'low'}).json()['run']
            until(lambda: bool(ann.get(f'/api/runs/{run}/research').json()['plan']))
            for path in ('research', 'research/report'):
                assert bob.get(f'/api/runs/{run}/{path}').status_code == 404
            assert bob.post(f'/api/runs/{run}/research', json={'add': 'x'}).status_code == 404
            assert bob.post(f'/api/runs/{run}/stop').status_code == 404
            assert ann.post('/api/research', json={'goal': ''}).status_code == 400
            assert ann.post(f'/api/runs/{run}/research', json={}).status_code == 400
            assert ann.post(f'/api/runs/{run}/stop').json() == {'ok': True}
            until(lambda: not ann.get(f'/api/runs/{run}/research').json()['is_running'])
            script.may_read.set()
            assert ann.post(f'/api/runs/{run}/research/resume').status_code == 202
            until(lambda: ann.get(f'/api/runs/{run}').json()['state'] == 'done')
            assert '412 km' in ann.get(f'/api/runs/{run}/research/report').text


def test_a_research_of_the_server_goes_on_when_it_is_started_again(serve: Serve, tmp_path: Path) -> None:
    pages, script = make_pages(tmp_path / 'pages'), Waits()
    with serve(script, open_source=lambda: Folder(pages)) as address, httpx2.Client(base_url=address) as user:
        run = user.post('/api/research', json={'goal': GOAL, 'effort': 'low'}).json()['run']
        until(lambda: bool(user.get(f'/api/runs/{run}/research').json()['plan']))
        assert user.get(f'/api/runs/{run}').json()['title'] == GOAL
    script.may_read.set()
    with serve(script, open_source=lambda: Folder(pages)) as address, httpx2.Client(base_url=address) as user:
        until(lambda: user.get(f'/api/runs/{run}').json()['state'] == 'done')
