"""The tool library over HTTP and on the page: test, edit, roll back, and watch a tool being built."""

from pathlib import Path

import httpx2
from playwright.sync_api import Browser, expect

from habilis.forge.library.library import Library
from tests.forge.samples import double
from tests.forge.test_agent_library import Worker, cell
from tests.server.assistant.axe import check
from tests.server.assistant.conftest import Serve
from tests.server.assistant.test_page import send

BROKEN = 'def double(number: int) -> int:\n    """Twice a number."""\n    return number * 3\n'
SUM = 'def double(number: int) -> int:\n    """Twice a number, as a sum."""\n    return number + number\n'


def test_a_tool_is_tested_edited_and_rolled_back(serve: Serve, tmp_path: Path) -> None:
    library = Library(tmp_path / 'library')
    library.add(double())
    library.usage.record('double', 1, ok=True, seconds=0.5)
    with serve([]) as address, httpx2.Client(base_url=address, timeout=60) as user:
        tested = user.post('/api/tools/double/test').json()
        assert (tested['ok'], [test['name'] for test in tested['tests']]) == (True, ['test_three'])
        refused = user.post('/api/tools/double/versions', json={'code': BROKEN})
        assert refused.status_code == 400
        assert 'version 1 stays' in refused.json()['detail']
        made = user.post('/api/tools/double/versions', json={'code': SUM})
        assert made.status_code == 201
        assert (made.json()['version'], made.json()['current'], made.json()['versions']) == (2, 2, [1, 2])
        back = user.put('/api/tools/double/current', json={'version': 1}).json()
        assert (back['version'], back['current'], back['usage'][0]['calls']) == (1, 1, 1)
        assert library.current('double') == 1
        assert user.put('/api/tools/double/current', json={'version': 9}).status_code == 404
        for method, path in (('POST', 'test'), ('POST', 'versions'), ('PUT', 'current')):
            body = {'versions': {'code': SUM}, 'current': {'version': 1}}.get(path)
            assert user.request(method, f'/api/tools/triple/{path}', json=body).status_code == 404, path


def test_a_person_tests_edits_and_rolls_back_a_tool(serve: Serve, browser: Browser, tmp_path: Path) -> None:
    Library(tmp_path / 'library').add(double())
    with serve([]) as address:
        page = browser.new_page()
        page.goto(f'{address}/#/tools/double')
        page.get_by_role('button', name='Run its tests').click()
        expect(page.get_by_role('status')).to_contain_text('1 test passes')
        page.get_by_role('button', name='Edit').click()
        page.get_by_label('Code', exact=True).fill(BROKEN)
        page.get_by_role('button', name='Keep as the next version').click()
        expect(page.get_by_role('alert')).to_contain_text('version 1 stays')
        check(page)
        page.get_by_label('Code', exact=True).fill(SUM)
        page.get_by_role('button', name='Keep as the next version').click()
        expect(page.get_by_role('button', name='Version 2 (in use)')).to_be_visible()
        page.get_by_role('button', name='Version 1').click()
        page.get_by_role('button', name='Use this version').click()
        expect(page.get_by_role('button', name='Version 1 (in use)')).to_be_visible()
        check(page)
        page.close()


def test_the_stages_of_a_build_are_shown_and_lead_to_the_tool(serve: Serve, browser: Browser, tmp_path: Path) -> None:
    request = 'make_tool("Reverse a text", ["reverse_string(\'ab\') == \'ba\'"])'
    worker = Worker(cell(request), cell("final_answer(reverse_string('Python'))"))
    with serve(worker.reply, library=tmp_path / 'library') as address:
        page = browser.new_page()
        page.goto(address)
        send(page, 'Write Python backwards')
        expect(page.get_by_text('nohtyP').last).to_be_visible()
        page.reload()  # the stages are in the journal
        stages = page.get_by_label('Building a tool')
        expect(stages.get_by_role('listitem')).to_have_text(
            ['search', 'spec', 'tests', 'implement', 'red check', 'register']
        )
        check(page)
        stages.get_by_role('link', name='reverse_string').click()
        expect(page.get_by_label('Tools')).to_contain_text('for: Reverse a text')
        page.close()
