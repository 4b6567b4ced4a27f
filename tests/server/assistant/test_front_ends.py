"""Official clients of other protocols talk to the assistant: AG-UI, Vercel's AI SDK, OpenAI for JavaScript."""

import asyncio
import json
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

from habilis.models.contract import Message, Reply
from habilis.tools import tool
from tests.requirements import missing, require
from tests.server.assistant.conftest import Serve
from tests.waiting import until

SCRIPT = Path(__file__).parents[2] / 'node' / 'front_ends.mjs'
PACKAGES = {'ag-ui': '@ag-ui/client', 'vercel': 'ai', 'openai': 'openai'}
PAYING = [
    'I pay.\n```python\nprint("now")\ngot = pay(5)\n```',
    '```python\nfinal_answer(got)\n```',
    '```python\nfinal_answer(got + "!")\n```',
]


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f'paid {amount}'


def drive(client: str, address: str, *messages: object, thread: str = 't1', **options: object) -> dict[str, Any]:
    """What a client of npm has seen of its turns."""
    node = require('node')
    if not (SCRIPT.parent / 'node_modules' / PACKAGES[client]).exists():
        missing('node', PACKAGES[client])
    given = json.dumps({'thread': thread, 'messages': messages, **options})
    ran = subprocess.run([node, SCRIPT, client, address, given], capture_output=True, text=True, check=True)
    assert not ran.stderr or 'Agent execution failed' in ran.stderr  # no warning of the client
    return json.loads(ran.stdout)


def ag_ui_tools(seen: dict[str, Any]) -> list[tuple[str, str]]:
    """The calls and their results."""
    results = {
        message.get('toolCallId'): message['content'] for message in seen['messages'] if message['role'] == 'tool'
    }
    calls = [call for message in seen['messages'] for call in message.get('toolCalls', ())]
    return [(call['function']['name'], results[call['id']]) for call in calls]


def texts(seen: dict[str, Any]) -> list[str]:
    return [one['content'] for one in seen['messages'] if one['role'] == 'assistant' and one.get('content')]


def parts(seen: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [part for message in seen['messages'] for part in message['parts'] if part['type'] == kind]


# AG-UI ----------------------------------------------------------------------------------------------------------------


def test_ag_ui_shows_words_and_calls_and_an_approval_interrupts(serve: Serve) -> None:
    with serve(PAYING, tools=[pay]) as address:
        seen = drive('ag-ui', address, 'Pay 5', 'Louder', payload={'approved': True})
    assert texts(seen) == ['I pay.', 'paid 5', 'paid 5!']
    assert ag_ui_tools(seen) == [('python', 'now'), ('pay', "'paid 5'"), ('python', ''), ('python', '')]
    kinds = [event['type'] for event in seen['events']]
    assert (kinds[0], kinds[-1]) == ('RUN_STARTED', 'RUN_FINISHED')
    outcomes = [event['outcome']['type'] for event in seen['events'] if event['type'] == 'RUN_FINISHED']
    assert outcomes == ['interrupt', 'success', 'success']
    [interrupt] = next(event['outcome'] for event in seen['events'] if event['type'] == 'RUN_FINISHED')['interrupts']
    assert interrupt['metadata']['habilis'] == {'tool': 'pay', 'arguments': {'amount': 5}, 'diff': ''}
    assert kinds.count('STEP_STARTED') == kinds.count('STEP_FINISHED') == 3


def test_ag_ui_tells_the_model_why_a_call_was_refused(serve: Serve) -> None:
    with serve([PAYING[0], '```python\nfinal_answer("not paid")\n```'], tools=[pay]) as address:
        seen = drive('ag-ui', address, 'Pay 5', payload={'approved': False, 'reason': 'too much'})
    assert texts(seen) == ['I pay.', 'not paid']
    assert 'too much' in dict(ag_ui_tools(seen))['pay']


def test_ag_ui_gets_a_question_as_text_and_the_next_message_answers_it(serve: Serve) -> None:
    def reply(messages: Sequence[Message]) -> str:
        code = 'ask_user("Your name?")' if 'Hello' in messages[-1].text else 'final_answer("Thanks")'
        return f'```python\n{code}\n```'

    with serve(reply) as address:
        assert texts(drive('ag-ui', address, 'Hello', 'Ann')) == ['Your name?', 'Thanks']


def test_ag_ui_sends_files_and_context(serve: Serve) -> None:
    seen_by_model: list[str] = []

    def reply(messages: Sequence[Message]) -> str:
        seen_by_model.append(messages[-1].text)
        return '```python\nfinal_answer(1)\n```'

    with serve(reply) as address, httpx2.Client(base_url=address, timeout=60) as user:
        content = [
            {'type': 'text', 'text': 'See'},
            {'type': 'document', 'source': {'type': 'data', 'value': 'YSxi', 'mimeType': 'text/csv'}},
        ]
        told = post(user, '/ag-ui', ag_ui(content, context=[{'description': 'The page', 'value': 'Orders'}]))
    assert told[-1]['outcome'] == {'type': 'success'}
    assert 'The page: Orders' in seen_by_model[0]
    assert 'file' in seen_by_model[0]


# Vercel ---------------------------------------------------------------------------------------------------------------


def test_vercel_shows_words_and_calls_and_an_approval_is_answered_in_the_message(serve: Serve) -> None:
    with serve(PAYING, tools=[pay]) as address:
        seen = drive('vercel', address, 'Pay 5', 'Louder', payload={'approved': True})
    assert 'error' not in seen
    assert [part['text'] for part in parts(seen, 'text')] == ['Pay 5', 'I pay.', 'paid 5', 'Louder', 'paid 5!']
    calls = [(part['toolName'], part['state'], part['output']) for part in parts(seen, 'dynamic-tool')]
    assert calls == [
        ('python', 'output-available', 'now'),
        ('pay', 'output-available', "'paid 5'"),
        ('python', 'output-available', ''),
        ('python', 'output-available', ''),
    ]
    assert [message['role'] for message in seen['messages']] == ['user', 'assistant', 'user', 'assistant']
    assert [one['finishReason'] for one in seen['finishes']] == ['tool-calls', 'stop', 'stop']
    assert seen['data'][0] == {'type': 'data-output', 'data': 'now\n', 'transient': True}


def test_vercel_shows_what_was_refused_and_what_failed(serve: Serve) -> None:
    script = [PAYING[0], '```python\n1 / 0\n```', '```python\nfinal_answer("not paid")\n```']
    with serve(script, tools=[pay]) as address:
        seen = drive('vercel', address, 'Pay 5', payload={'approved': False, 'reason': 'too much'})
    states = [(part['toolName'], part['state']) for part in parts(seen, 'dynamic-tool')]
    assert states == [
        ('python', 'output-error'),
        ('pay', 'output-denied'),
        ('python', 'output-error'),
        ('python', 'output-available'),
    ]
    assert 'ZeroDivisionError' in parts(seen, 'dynamic-tool')[2]['errorText']


def test_vercel_sends_a_file(serve: Serve) -> None:
    file = {'type': 'file', 'mediaType': 'text/csv', 'filename': 'sales.csv', 'url': 'data:text/csv;base64,YSxi'}

    def reply(messages: Sequence[Message]) -> str:
        return f'```python\nfinal_answer({"sales.csv" in messages[-1].text})\n```'

    with serve(reply) as address:
        seen = drive('vercel', address, {'role': 'user', 'parts': [{'type': 'text', 'text': 'See'}, file]})
    assert parts(seen, 'text')[-1]['text'] == 'True'


# OpenAI ---------------------------------------------------------------------------------------------------------------


def test_the_javascript_client_of_openai_is_answered(serve: Serve) -> None:
    answers = ['```python\nx = 3\nfinal_answer(x)\n```'] * 2 + ['```python\nfinal_answer(x + 1)\n```']
    with serve(answers) as address:
        assert drive('openai', address, 'Hello') == {'said': '3', 'first': '3', 'next': '4'}


def test_thinking_is_reasoning(serve: Serve) -> None:
    reply = Reply(thinking='Two and two.', text='```python\nfinal_answer(4)\n```')
    with serve([reply] * 2) as address:
        seen = drive('ag-ui', address, 'Add')
        assert [one['content'] for one in seen['messages'] if one['role'] == 'reasoning'] == ['Two and two.']
        assert parts(drive('vercel', address, 'Add', thread='t2'), 'reasoning')[0]['text'] == 'Two and two.'


# All ------------------------------------------------------------------------------------------------------------------


def ag_ui(content: object = 'Hello', **more: object) -> dict[str, object]:
    message = {'id': 'm', 'role': 'user', 'content': content}
    return {'threadId': 't1', 'runId': 'r', 'messages': [message], 'tools': [], 'context': [], **more}


def vercel(**message: object) -> dict[str, object]:
    return {'id': 't1', 'messages': [{'role': 'user', 'parts': [{'type': 'text', 'text': 'Hello'}], **message}]}


def post(user: httpx2.Client, path: str, body: object) -> list[dict[str, Any]]:
    with user.stream('POST', path, json=body, timeout=60) as response:
        assert response.status_code == 200, response.read()
        return list(_parse(response.iter_lines()))


def _parse(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        if line.startswith('data: {'):
            yield json.loads(line.removeprefix('data: '))


def test_a_turn_that_fails_is_told_as_the_protocol_has_it(serve: Serve) -> None:
    with serve([]) as address, httpx2.Client(base_url=address, timeout=60) as user:
        assert post(user, '/ag-ui', ag_ui())[-1]['type'] == 'RUN_ERROR'
        told = post(user, '/api/chat', vercel())
        assert [one['type'] for one in told[-2:]] == ['error', 'finish']
        assert drive('vercel', address, 'Hello', thread='t2')['error'] == told[-2]['errorText']
        assert drive('ag-ui', address, 'Hello', thread='t3')['events'][-1]['type'] == 'RUN_ERROR'


@pytest.mark.parametrize(('path', 'body'), [('/ag-ui', ag_ui()), ('/api/chat', vercel())])
def test_a_turn_goes_on_when_its_client_leaves_and_can_be_stopped(serve: Serve, path: str, body: object) -> None:
    go = threading.Event()

    @tool
    def wait() -> str:
        """Wait."""
        go.wait(60)
        return 'went'

    script = ['```python\ngot = wait()\n```', '```python\nfinal_answer(got)\n```', '```python\nwait()\n```']
    with serve(script, tools=[wait]) as address, httpx2.Client(base_url=address, timeout=60) as user:
        with user.stream('POST', path, json=body) as response:
            next(told for told in _parse(response.iter_lines()) if 'wait' in str(told))
        assert user.post(path, json=body).status_code == 409
        go.set()
        asyncio.run(until(lambda: user.get('/api/runs').json()['runs'][0]['state'] == 'done'))
        go.clear()
        with user.stream('POST', path, json=body) as response:
            told = _parse(response.iter_lines())
            run = next(told)
            id = run.get('metadata', run.get('messageMetadata', {}))
            next(one for one in told if one.get('toolName', one.get('toolCallName')) == 'wait')
            assert user.post(f'/api/runs/{id.get("habilis", id)["run"]}/stop').json() == {'ok': True}
            last = list(told)[-1]
            assert last.get('outcome', {}).get('type') == 'cancelled' or last['type'] == 'abort'
        go.set()


def test_a_thread_of_another_user_shows_nothing_and_its_questions_are_not_found(serve: Serve) -> None:
    keys = ('a' * 20, 'b' * 20)
    ann, bob = ({'Authorization': f'Bearer {key}'} for key in keys)
    script = ['```python\nsecret = 7\npay(1)\n```', '```python\nfinal_answer("secret" in globals())\n```']
    with serve(script, tools=[pay], keys=keys) as address, httpx2.Client(base_url=address, timeout=60) as user:
        assert user.post('/ag-ui', json=ag_ui()).status_code == user.post('/api/chat', json=vercel()).status_code == 401
        user.headers.update(ann)
        [interrupt] = post(user, '/ag-ui', ag_ui())[-1]['outcome']['interrupts']
        resume = ag_ui(resume=[{'interruptId': interrupt['id'], 'status': 'resolved', 'payload': True}])
        approval = {'id': interrupt['id'], 'approved': True}
        answer = vercel(
            role='assistant', parts=[{'type': 'tool-x', 'state': 'approval-responded', 'approval': approval}]
        )
        assert user.post('/ag-ui', json={**resume, 'threadId': 'another'}).status_code == 404
        user.headers.update(bob)
        assert user.post('/ag-ui', json=resume).status_code == 404
        assert user.post('/api/chat', json=answer).status_code == 404
        said = [one['delta'] for one in post(user, '/ag-ui', ag_ui()) if one['type'] == 'TEXT_MESSAGE_CONTENT']
        assert said == ['False']


def test_nonsense_is_refused_and_says_why(serve: Serve) -> None:
    address_part = {'type': 'image', 'source': {'type': 'url', 'value': 'http://169.254.169.254/'}}
    unknown = [{'interruptId': 'nothing', 'status': 'resolved', 'payload': True}]
    cases: list[tuple[str, object, int]] = [
        *((path, body, 400) for path in ('/ag-ui', '/api/chat') for body in (None, 'x', {}, {'messages': 3})),
        ('/ag-ui', ag_ui(''), 400),
        ('/ag-ui', ag_ui(messages=[]), 400),
        ('/ag-ui', ag_ui(threadId=''), 400),
        ('/ag-ui', ag_ui(tools=[{'name': 'f'}]), 400),
        ('/ag-ui', ag_ui([{'type': 'text', 'text': 'See'}, address_part]), 400),
        ('/ag-ui', ag_ui(resume=unknown), 404),
        ('/ag-ui', ag_ui(resume=[{**unknown[0], 'payload': {'approved': 'perhaps'}}]), 400),
        ('/ag-ui', ag_ui(resume=[*unknown, {**unknown[0], 'interruptId': 'other:x'}]), 400),
        ('/api/chat', vercel(parts=[]), 400),
        ('/api/chat', vercel(role='assistant'), 400),
        ('/api/chat', vercel(parts=[{'type': 'file', 'url': 'http://169.254.169.254/'}]), 400),
        ('/api/chat', vercel(parts=[{'type': 'file', 'url': 'data:text/csv;base64,!'}]), 400),
    ]
    with serve([]) as address, httpx2.Client(base_url=address, timeout=60) as user:
        for path, body, status in cases:
            refused = user.post(path, json=body)
            assert refused.status_code == status, (path, body, refused.text)
            assert refused.headers['content-type'] == 'application/problem+json'
            assert refused.json()['detail']
        assert 'nothing is fetched' in drive('ag-ui', address, [address_part])['failed']
        elsewhere = {'role': 'user', 'parts': [{'type': 'file', 'url': 'http://169.254.169.254/'}]}
        assert 'nothing is fetched' in drive('vercel', address, elsewhere)['error']
        assert user.get('/api/runs').json() == {'runs': []}
