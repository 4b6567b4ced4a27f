"""Models, permission modes and examples over HTTP and on the page; no key is ever shown."""

import json
import time
from functools import partial
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, expect

from habilis.core.settings import Settings, load_settings
from habilis.server.assistant.examples import EXAMPLES, reply_to
from tests.server.assistant.axe import check
from tests.server.assistant.conftest import Serve
from tests.server.assistant.test_api import begin, events, is_end, records
from tests.server.assistant.test_page import send

SECRET = 'sk-never-shown-anywhere'


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A second model under an alias, and a key."""
    replies = tmp_path / 'second.json'
    replies.write_text(json.dumps(['Said by the second.'] * 3))
    monkeypatch.setenv('ANTHROPIC_API_KEY', SECRET)
    return load_settings(models={'second': {'model': f'scripted:{replies}'}})


def turn(user: httpx2.Client, session: str, body: dict[str, str]) -> dict[str, str]:
    """Take a turn as soon as the one before it is over, and return its first record."""
    while (sent := user.post(f'/api/conversations/{session}/turns', json=body)).status_code == 409:
        time.sleep(0.01)
    assert sent.status_code == 202, sent.text
    return records(events(user, sent.json()['run']), is_end)[0]['value']


def test_a_turn_takes_another_model_and_mode_and_the_next_one_goes_back(
    serve: Serve, settings: Settings, tmp_path: Path
) -> None:
    script = ['Said by the first.'] * 2
    folder = tmp_path / 'shared'
    folder.mkdir()
    with (
        serve(script, settings=settings, workspace=folder) as address,
        httpx2.Client(base_url=address, timeout=60) as user,
    ):
        shown = user.get('/api/settings')
        assert SECRET not in shown.text
        names = [model['name'] for model in shown.json()['models']]
        assert names[:2] == ['scripted:script', 'second']
        session = user.post('/api/conversations').json()['id']
        choices: tuple[dict[str, str], ...] = ({}, {'model': 'second', 'mode': 'plan'}, {'model': 'scripted:script'})
        used = [turn(user, session, {'message': 'Go', **choice})['model'] for choice in choices]
        assert used == ['scripted:script', 'scripted:second', 'scripted:script']
        assert user.get('/api/settings', params={'session': session}).json()['mode'] == 'plan'
        for wrong in ({'model': f'scripted:{tmp_path}/second.json'}, {'mode': 'everything'}):
            refused = user.post('/api/conversations/new/turns', json={'message': 'Go', **wrong})
            assert refused.status_code == 400, wrong


def test_a_conversation_and_its_forks_keep_their_model_when_the_server_is_started_again(
    serve: Serve, settings: Settings
) -> None:
    script = ['Said by the first.']
    with serve(script, settings=settings) as address, httpx2.Client(base_url=address, timeout=60) as user:
        session = user.post('/api/conversations').json()['id']
        turn(user, session, {'message': 'Go', 'model': 'second'})
    with serve(script, settings=settings) as address, httpx2.Client(base_url=address, timeout=60) as user:
        assert turn(user, session, {'message': 'More'})['model'] == 'scripted:second'
        [run, *_] = user.get('/api/runs').json()['runs']
        fork = user.post(f'/api/runs/{run["run"]}/fork', json={'before': 2}).json()
        while user.get(f'/api/runs/{fork["run"]}').json()['state'] != 'done':
            time.sleep(0.05)
        assert user.get('/api/settings', params={'session': fork['session']}).json()['model'] == 'second'


def test_the_examples_need_no_model(serve: Serve) -> None:
    advice = 'the embedded model is not downloaded yet: habilis models install'
    with (
        serve(partial(reply_to, advice=advice)) as address,
        httpx2.Client(base_url=address, timeout=60) as user,
    ):
        assert user.get('/api/settings').json()['examples'] == [example.message for example in EXAMPLES]
        for example in EXAMPLES:
            told = records(events(user, begin(user, example.message)['run']), is_end)
            cells = [one['value'] for one in told if 'cell#' in one['path'] and one['kind'] == 'done']
            assert cells, told
            assert all('error' not in one['cell'] for one in cells), cells
            assert told[-1]['value']['status'] == 'done'
        told = records(events(user, begin(user, 'Something else')['run']), is_end)
        assert advice in json.dumps(told)


def test_a_person_chooses_a_model_and_sees_what_is_missing(serve: Serve, browser: Browser, settings: Settings) -> None:
    with serve(['Said by the first.'], settings=settings) as address:
        for width in (1280, 390):
            page = browser.new_page(viewport={'width': width, 'height': 800})
            page.goto(f'{address}/#new-{width}')
            expect(page.get_by_role('button', name=EXAMPLES[0].message)).to_be_visible()
            expect(page.get_by_text('habilis serve --workspace')).to_be_visible()
            check(page)
            page.get_by_label('Model').select_option('second')
            send(page, 'Who are you?')
            expect(page.get_by_text('Said by the second.')).to_be_visible()
            page.reload()
            expect(page.get_by_label('Model')).to_have_value('second')
            check(page)
            page.goto(f'{address}/#/settings')
            expect(page.get_by_role('row', name='second')).to_contain_text('alias of the settings')
            assert SECRET not in page.content()
            check(page)
            page.close()
