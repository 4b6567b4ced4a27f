"""The API of the assistant: turns, events, approvals, forks; after a kill too; each user alone."""

import json
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

from habilis.core.errors import ModelError
from habilis.core.settings import ModelSettings, Settings
from habilis.forge.contract import Candidate
from habilis.forge.library.library import Library
from habilis.models.contract import Message
from habilis.server.assistant.api import OPERATIONS
from habilis.tools import tool
from tests.server.assistant.conftest import Serve
from tests.server.assistant.worker import start

Event = tuple[str, str, dict[str, Any]]
"""The id, the kind and the data."""


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f'paid {amount}'


@tool
def price(item: str) -> float:
    """The price."""
    return 1.5


def events(user: httpx2.Client, run: str, *, after: int | str = 0) -> Iterator[Event]:
    """The events of a run, as they come."""
    with user.stream('GET', f'/api/runs/{run}/events', params={'after': after}, timeout=60) as response:
        assert response.status_code == 200
        yield from parse(response.iter_lines())


def parse(lines: Iterator[str]) -> Iterator[Event]:
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(': ')
            fields[name] = value
        elif 'event' in fields:
            yield fields.get('id', ''), fields['event'], json.loads(fields['data'])
            fields = {}


def records(found: Iterator[Event], until: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    """The records up to the first that fits."""
    kept: list[dict[str, Any]] = []
    for id, kind, data in found:
        if kind == 'record':
            assert id == str(data['seq'])
            kept.append(data)
            if until(data):
                return kept
    raise AssertionError(kept)


def is_end(record: dict[str, Any]) -> bool:
    return record['kind'] == 'ended'


def begin(user: httpx2.Client, message: str, session: str | None = None, key: str = '') -> dict[str, str]:
    session = session or user.post('/api/conversations').json()['id']
    headers = {'Idempotency-Key': key} if key else {}
    sent = user.post(f'/api/conversations/{session}/turns', json={'message': message}, headers=headers)
    assert sent.status_code == 202, sent.text
    return sent.json()


def test_a_turn_is_told_as_it_happens(serve: Serve) -> None:
    script = ['I add.\n```python\nx = 1 + 2\nprint("sum", x)\n```', '```python\nfinal_answer(x * 2)\n```']
    with serve(script) as address, httpx2.Client(base_url=address, timeout=60) as user:
        turn = begin(user, 'Add 1 and 2')
        told = list(_upto_end(events(user, turn['run'])))
        cells = [data['value']['cell'] for _, kind, data in told if kind == 'record' and 'cell#' in data['path']]
        assert cells[0]['stdout'] == 'sum 3\n'
        [listed] = user.get('/api/conversations').json()['conversations']
        assert (listed['id'], listed['title'], listed['turns']) == (turn['session'], 'Add 1 and 2', 1)


def _upto_end(found: Iterator[Event]) -> Iterator[Event]:
    for event in found:
        yield event
        if event[1] == 'record' and is_end(event[2]):
            return


def test_a_client_that_was_cut_off_goes_on_without_a_gap_or_a_repeat(serve: Serve) -> None:
    script = ['```python\nx = 1\n```', '```python\nfinal_answer(x)\n```']
    with serve(script) as address, httpx2.Client(base_url=address, timeout=60) as user:
        run = begin(user, 'Go')['run']
        first = records(events(user, run), lambda record: record['path'].endswith('cell#1'))
        rest = records(events(user, run, after=first[-1]['seq']), is_end)
        whole = records(events(user, run), is_end)
    assert [*first, *rest] == whole
    assert [record['seq'] for record in whole] == list(range(1, len(whole) + 1))


def test_the_same_key_begins_no_second_turn(serve: Serve) -> None:
    with serve(['```python\nfinal_answer(1)\n```']) as address, httpx2.Client(base_url=address, timeout=60) as user:
        first = begin(user, 'Go', key='k1')
        assert begin(user, 'Go', first['session'], key='k1') == first
        records(events(user, first['run']), is_end)
        assert begin(user, 'Go', first['session'], key='k1') == first
        assert len(user.get('/api/runs').json()['runs']) == 1


def test_a_message_after_a_failed_turn_goes_on_with_its_run(serve: Serve) -> None:
    script = [ModelError('busy'), '```python\nfinal_answer(1)\n```']
    with serve(script) as address, httpx2.Client(base_url=address, timeout=60) as user:
        first = begin(user, 'Go')
        failed = records(events(user, first['run']), is_end)
        assert begin(user, 'Go', first['session']) == first
        records(events(user, first['run'], after=failed[-1]['seq']), is_end)
        assert [run['state'] for run in user.get('/api/runs').json()['runs']] == ['done']


def test_an_approval_waits_for_any_browser_also_after_a_restart(serve: Serve) -> None:
    script = ['```python\ngot = pay(5)\nfinal_answer(got)\n```']
    with serve(script, tools=[pay]) as address, httpx2.Client(base_url=address, timeout=60) as user:
        run = begin(user, 'Pay 5')['run']
        asked = records(events(user, run), lambda record: record['kind'] == 'asked')[-1]
        records(events(user, run, after=asked['seq']), is_end)
    with serve([], tools=[pay]) as address, httpx2.Client(base_url=address, timeout=60) as user:
        details = user.get(f'/api/runs/{run}').json()
        assert details['state'] == 'waiting'
        [question] = details['questions']
        wrong = user.post(f'/api/runs/{run}/answer', json={'path': 'nowhere', 'answer': True})
        assert (wrong.status_code, wrong.headers['content-type']) == (400, 'application/problem+json')
        answered = user.post(f'/api/runs/{run}/answer', json={'path': question['path'], 'answer': True})
        assert answered.status_code == 202
        records(
            events(user, run, after=asked['seq'] + 1),
            lambda record: is_end(record) and record['seq'] > asked['seq'] + 2,
        )
        assert user.get(f'/api/runs/{run}').json()['state'] == 'done'


def test_two_users_see_only_their_own(serve: Serve) -> None:
    keys = ('a' * 20, 'b' * 20)
    ann, bob = ({'Authorization': f'Bearer {key}'} for key in keys)
    with (
        serve(['```python\nfinal_answer(1)\n```'], keys=keys) as address,
        httpx2.Client(base_url=address, timeout=60) as user,
    ):
        refused = user.get('/api/runs')
        assert (refused.status_code, refused.headers['content-type']) == (401, 'application/problem+json')
        assert refused.headers['www-authenticate'] == 'Bearer'
        assert 'a key is needed' in refused.json()['detail']
        user.headers.update(ann)
        turn = begin(user, 'Mine')
        records(events(user, turn['run']), is_end)
        user.headers.update(bob)
        assert user.get('/api/runs').json() == {'runs': []}
        assert user.get('/api/conversations').json() == {'conversations': []}
        run = turn['run']
        for method, path in (
            ('GET', ''),
            ('GET', '/events'),
            ('GET', '/blobs/' + '0' * 64),
            ('GET', '/page'),
            ('POST', '/answer'),
            ('POST', '/stop'),
            ('POST', '/resume'),
            ('POST', '/fork'),
            ('DELETE', ''),
        ):
            body = {'/answer': {'answer': True}, '/fork': {'before': 3}}.get(path)
            assert user.request(method, f'/api/runs/{run}{path}', json=body).status_code == 404, path
        user.headers.update(ann)
        assert user.get(f'/api/runs/{run}').json()['state'] == 'done'


def test_a_fork_goes_on_in_a_conversation_of_its_own(serve: Serve) -> None:
    script = ['```python\nx = 1\n```', '```python\nfinal_answer(x)\n```', '```python\nfinal_answer(x + 10)\n```']
    with serve(script) as address, httpx2.Client(base_url=address, timeout=60) as user:
        turn = begin(user, 'Go')
        whole = records(events(user, turn['run']), is_end)
        second = next(record for record in whole if record['path'].endswith('ask#2'))
        fork = user.post(f'/api/runs/{turn["run"]}/fork', json={'before': second['seq']})
        assert fork.status_code == 202, fork.text
        copy = fork.json()
        assert copy['session'] != turn['session']
        again = records(events(user, copy['run']), lambda record: is_end(record) and record['seq'] > len(whole) - 2)
        answers = [
            record['value']['answer']
            for record in again
            if 'answer' in str(record.get('value')) and record['path'].endswith('cell#2')
        ]
        assert answers == [11]


def test_a_fork_shows_the_turns_that_it_was_forked_after(serve: Serve) -> None:
    script = ['One.', 'Two.', 'Three.', 'Two again.', 'Two once more.']
    with serve(script) as address, httpx2.Client(base_url=address, timeout=60) as user:
        session = user.post('/api/conversations').json()['id']
        turns: list[str] = []
        for message in ('1', '2', '3'):
            while (sent := user.post(f'/api/conversations/{session}/turns', json={'message': message})).is_error:
                assert sent.status_code == 409, sent.text  # the turn before is about to end
            turns.append(sent.json()['run'])
            records(events(user, turns[-1]), is_end)
        run = turns[1]
        for _ in ('a fork', 'a fork of the fork'):
            fork = user.post(f'/api/runs/{run}/fork', json={'before': 2}).json()
            run = fork['run']
            while user.get(f'/api/runs/{run}').json()['state'] != 'done':
                time.sleep(0.05)
            shown = user.get('/api/runs', params={'session': fork['session']}).json()['runs']
            assert [one['run'] for one in shown] == [run, turns[0]]


def test_a_fork_goes_on_after_an_edit_with_a_message_or_with_another_model(serve: Serve, tmp_path: Path) -> None:
    def reply(messages: Sequence[Message]) -> str:
        said = [message.text.splitlines()[0] for message in messages if message.role == 'user' and not message.by_agent]
        if any(message.role == 'assistant' for message in messages):
            return f'```python\nfinal_answer((x, y, {said[-1]!r}))\n```'
        return 'I pay.\n```python\nx = 1\ny = price("apple")\n```'

    (tmp_path / 'other.json').write_text(json.dumps(['```python\nfinal_answer("other")\n```']))
    settings = Settings(models={'other': ModelSettings(model=f'scripted:{tmp_path / "other.json"}')})
    with serve(reply, tools=[price], settings=settings) as address, httpx2.Client(base_url=address, timeout=60) as user:
        run = begin(user, 'Go')['run']
        whole = records(events(user, run), is_end)
        asked, cell = (next(one for one in whole if name in one['path']) for name in ('ask#1', 'cell#1'))
        called = next(one['path'] for one in whole if 'price(' in one['path'])
        for body, expected in (
            ({'edit': asked['path'], 'value': 'x = 2\ny = 3'}, (2, 3, 'Go')),
            ({'edit': called, 'value': 100}, (1, 100, 'Go')),
            ({'before': cell['seq'] - 1, 'message': 'Now'}, (1, 1.5, 'Now')),
            ({'before': 'chat#1/ask#2', 'model': 'other'}, 'other'),
        ):
            sent = user.post(f'/api/runs/{run}/fork', json=body)
            assert sent.status_code == 202, sent.text
            assert _answer(user, sent.json()['run']) == expected, body
        again = user.post(f'/api/runs/{run}/fork', json={'edit': 'chat#1', 'value': 'Stop'}).json()['run']
        assert _answer(user, again)[2] == 'Stop'
        assert user.get(f'/api/runs/{again}').json()['title'] == 'Stop'
        assert records(events(user, run), is_end) == whole, 'the run itself has changed'
        for body in (
            {},
            {'before': 3, 'edit': 'chat#1', 'value': 'x'},
            {'edit': 'chat#1/ask#9', 'value': 'x'},
            {'before': 3, 'model': 'nothing'},
            {'before': 3, 'model': f'scripted:{tmp_path / "other.json"}'},
        ):
            assert user.post(f'/api/runs/{run}/fork', json=body).status_code in {400, 503}, body


def _answer(user: httpx2.Client, run: str) -> Any:
    """The answer of a run that may have ended before: as a fork, or to wait."""
    [last] = records(events(user, run), lambda record: "'answered': True" in str(record.get('value')))[-1:]
    answer: Any = last['value']['answer']
    return answer if isinstance(answer, str) else tuple(answer['v'])


def test_an_approval_is_answered_as_soon_as_it_is_seen(serve: Serve) -> None:
    script = ['```python\nfinal_answer(pay(5))\n```']
    with serve(script, tools=[pay]) as address, httpx2.Client(base_url=address, timeout=60) as user:
        run = begin(user, 'Pay 5')['run']
        records(events(user, run), lambda record: record['kind'] == 'asked')
        refused = user.post(f'/api/runs/{run}/answer', json={'answer': {'approved': True}})
        assert refused.status_code == 202, refused.text
        assert _answer(user, run) == 'paid 5'


def test_nonsense_is_refused_and_loses_nothing(serve: Serve) -> None:
    with serve([]) as address, httpx2.Client(base_url=address, timeout=60) as user:
        for path, body in (
            ('/api/conversations/x/turns', b'{'),
            ('/api/conversations/x/turns', b'{"message": ""}'),
            ('/api/conversations/x/turns', b'{"message": "a", "more": 1}'),
            ('/api/conversations/x/turns', b'{"message": "a", "files": [{"name": "f", "data": "!"}]}'),
        ):
            refused = user.post(path, content=body)
            assert (refused.status_code, refused.headers['content-type']) == (400, 'application/problem+json'), body
        assert user.get('/api/runs/none').status_code == 404
        assert user.get('/api/runs/none/events').status_code == 404
        assert user.get('/api/events', params={'after': 'x'}).status_code == 400
        assert user.get('/api/fleet', params={'hours': '0'}).status_code == 400
        assert user.get('/api/runs', headers={'Host': 'evil.example'}).status_code == 403
        assert user.post('/api/conversations', headers={'Origin': 'http://evil.example'}).status_code == 403


@pytest.mark.parametrize('how', [signal.SIGKILL, signal.SIGTERM])
def test_a_server_that_was_ended_goes_on_when_it_is_started_again(tmp_path: Path, how: signal.Signals) -> None:
    first, address = start(tmp_path)
    try:
        with httpx2.Client(base_url=address, timeout=60) as user:
            run = begin(user, 'Go')['run']
            seen = records(events(user, run), lambda record: record['path'].endswith('cell#1'))
    finally:
        first.send_signal(how)
        first.wait()
    (tmp_path / 'go').touch()
    second, address = start(tmp_path)
    try:
        with httpx2.Client(base_url=address, timeout=60) as user:
            rest = records(events(user, run, after=seen[-1]['seq']), is_end)
            assert user.get(f'/api/runs/{run}').json()['state'] == 'done'
    finally:
        second.kill()
        second.wait()
    assert [record['seq'] for record in [*seen, *rest]] == list(range(1, len(seen) + len(rest) + 1))
    assert (tmp_path / 'calls').read_text() == 'once\n'


def test_two_runs_are_compared_step_by_step(serve: Serve) -> None:
    script = [f'```python\nx = {number}\nfinal_answer("same")\n```' for number in (1, 2)]
    with serve(script) as address, httpx2.Client(base_url=address, timeout=60) as user:
        first, second = (begin(user, 'Go')['run'] for _ in range(2))
        for run in (first, second):
            records(events(user, run), is_end)
        compared = user.get(f'/api/runs/{first}/compare/{second}').json()['steps']
        assert {step['path']: step['is_equal'] for step in compared}['chat#1'] is True
        [cell] = [step for step in compared if step['path'].endswith('cell#1')]
        assert ('x = 1' in cell['left'], 'x = 2' in cell['right'], cell['is_equal']) == (True, True, False)
        details = user.get(f'/api/runs/{first}').json()
        assert details['steps'] == 1
        assert details['tokens'] > 0
        assert user.get(f'/api/runs/{first}/compare/nothing').status_code == 404


def test_facts_and_tasks_are_kept_found_corrected_and_forgotten(serve: Serve) -> None:
    with serve([]) as address, httpx2.Client(base_url=address, timeout=60) as user:
        old = user.post('/api/memory', json={'text': 'The boat is blue'}).json()
        user.post('/api/memory', json={'text': 'The boat is green', 'replaces': old['id']})
        [found] = user.get('/api/memory', params={'q': 'boat'}).json()['entries']
        assert (found['text'], 'boat' in found['why']) == ('The boat is green', True)
        assert user.delete(f'/api/memory/{found["id"]}').json() == {'ok': True}
        assert user.get('/api/memory').json() == {'entries': []}
        task = user.post('/api/tasks', json={'title': 'Paint the boat'}).json()
        user.patch(f'/api/tasks/{task["number"]}', json={'title': 'Sell the boat', 'due': '2031-05-01'})
        [corrected] = user.get('/api/tasks', params={'q': 'sell'}).json()['tasks']
        assert (corrected['title'], corrected['due'], corrected['state']) == ('Sell the boat', '2031-05-01', 'pending')
        assert user.get('/api/tasks', params={'q': 'paint'}).json() == {'tasks': []}
        user.patch(f'/api/tasks/{task["number"]}', json={'state': 'completed'})
        assert user.get('/api/tasks').json() == {'tasks': []}
        assert user.patch('/api/tasks/x', json={'state': 'completed'}).status_code == 400
        assert user.post('/api/memory', json={'text': ''}).status_code == 400


def test_tools_of_the_library_are_listed_found_and_read(serve: Serve, tmp_path: Path) -> None:
    code = 'def double(x: int) -> int:\n    """Twice a number."""\n    return 2 * x\n'
    tests = 'from tool import double\n\ndef test_two():\n    assert double(2) == 4\n'
    Library(tmp_path / 'library').add(Candidate(name='double', code=code, tests=tests))
    with serve([]) as address, httpx2.Client(base_url=address, timeout=60) as user:
        for query in ('', 'twice'):
            [listed] = user.get('/api/tools', params={'q': query}).json()['tools']
            assert (listed['name'], listed['summary']) == ('double', 'Twice a number.')
        shown = user.get('/api/tools/double').json()
        assert (shown['code'], shown['tests'], shown['versions']) == (code, tests, [1])
        assert user.get('/api/tools/triple').status_code == 404


def test_files_of_the_workspace_are_sent_as_files_and_no_others(serve: Serve, tmp_path: Path) -> None:
    folder = tmp_path / 'shared'
    folder.mkdir()
    (folder / 'page.html').write_text('<script>alert(1)</script>')
    (tmp_path / 'secret').write_text('secret')
    (folder / 'link').symlink_to(tmp_path / 'secret')
    with serve([], workspace=folder) as address, httpx2.Client(base_url=address, timeout=60) as user:
        assert user.get('/api/conversations/c1/files').json() == {'files': [{'path': 'page.html', 'size': 25}]}
        sent = user.get('/api/conversations/c1/files/page.html')
        assert (sent.headers['content-disposition'], sent.headers['content-type']) == (
            'attachment',
            'application/octet-stream',
        )
        for path in ('link', '../secret', '%2e%2e/secret', '..%2fsecret', f'{tmp_path}/secret', '%2fetc%2fpasswd'):
            refused = user.get(f'/api/conversations/c1/files/{path}')
            assert refused.status_code in {400, 404}, path
            assert refused.text != 'secret', path


def test_every_operation_is_in_the_openapi_document(serve: Serve) -> None:
    with serve([]) as address, httpx2.Client(base_url=address, timeout=60) as user:
        paths = user.get('/openapi.json').json()['paths']
    described = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert described == {(operation.method, operation.path.replace(':path}', '}')) for operation in OPERATIONS}
    assert ('POST', '/api/conversations/{id}/turns') in described
