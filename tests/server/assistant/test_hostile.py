"""Callers of the assistant that mean harm: ids of others, floods, giants, nonsense in every place."""

import contextlib
import os
import resource
import select
import socket
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import BaseModel

from habilis.core.errors import ModelError
from habilis.server.assistant.api import OPERATIONS
from habilis.server.assistant.conversations import MAX_OPEN
from habilis.server.assistant.models import ProblemModel
from habilis.server.settings import AssistantSettings, HttpSettings
from habilis.server.users import Users
from habilis.tools import tool
from tests.server.assistant.conftest import Serve
from tests.server.assistant.test_api import begin, events, is_end, parse, records

KEYS = ('a' * 20, 'b' * 20)
SECRET = 'SECRET-OF-ANN'
AWKWARD = ('', ' ', '..', '../..', '%00', '%2e%2e%2f', '-1', '9' * 30, '1e999', 'nan', 'inf', '%ff', '{}', 'x' * 3000)
BODIES = (
    b'', b'{', b'[' * 100_000, b'\xff', b'null', b'[]', b'{"message": "\\ud800"}', b'{"message": "\\u0000"}',
    b'{"answer": ' + b'[' * 300 + b']' * 300 + b'}', b'{"before": ' + b'9' * 9000 + b'}', b'{"before": 1e999}',
    b'{"title": "\\ud800"}', b'{"text": "\\ud800"}', b'{"title": "x", "due": "9999-99-99"}', b'{"token": "\\ud800"}',
)  # fmt: skip


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f'paid {amount}'


def client(address: str, key: int) -> httpx2.Client:
    return httpx2.Client(base_url=address, headers={'Authorization': f'Bearer {KEYS[key]}'}, timeout=60)


def sample(model: object, text: str) -> dict[str, Any] | None:
    """A valid request that names `text` wherever it may name something."""
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return None
    found: dict[str, Any] = {}
    for name, field in model.model_json_schema()['properties'].items():
        kinds = [field, *field.get('anyOf', [])]
        types = {kind.get('type') for kind in kinds}
        if choices := next((kind['enum'] for kind in kinds if 'enum' in kind), None):
            found[name] = choices[0]
        elif any(kind.get('format') == 'date' for kind in kinds):
            found[name] = '2030-01-01'
        elif 'string' in types:
            found[name] = text
        elif {'integer', 'number'} & types:
            found[name] = 1
        elif not {'array', 'object'} & types:
            found[name] = True
    return found


def state_of(user: httpx2.Client, ids: dict[str, str]) -> dict[str, object]:
    """All that a user sees, by path."""
    paths = [
        operation.path.replace(':path}', '}').format(**ids)
        for operation in OPERATIONS
        if operation.method == 'GET' and not operation.path.endswith('/events')
    ]
    return {path: user.get(path).text for path in paths}


def test_no_operation_shows_or_changes_what_belongs_to_another_user(serve: Serve, tmp_path: Path) -> None:
    def reply(messages: object) -> str:
        return f'```python\nx = {SECRET!r}\npay(5)\n```' if SECRET in str(messages) else 'Hello'

    with serve(reply, keys=KEYS, tools=[pay]) as address, client(address, 0) as ann, client(address, 1) as bob:
        file = {'name': 'f', 'data': b64encode(SECRET.encode()).decode()}
        sent = ann.post('/api/conversations/c1/turns', json={'message': f'Buy {SECRET}', 'files': [file]})
        turn = sent.json()
        found = records(events(ann, turn['run']), is_end)
        digest = next(digest for record in found for digest in record.get('attached', {}).values())
        fact = ann.post('/api/memory', json={'text': f'{SECRET} is known'}).json()['id']
        number = str(ann.post('/api/tasks', json={'title': SECRET}).json()['number'])
        names = {'run': turn['run'], 'session': turn['session'], 'fact': fact}
        for id in names.values():
            ids = {'id': id, 'other': turn['run'], 'digest': digest, 'path': 'x', 'name': 'x', 'number': number}
            before = state_of(ann, {**ids, 'id': turn['run']})
            assert SECRET in str(before)
            for operation in OPERATIONS:
                path = operation.path.replace(':path}', '}').format(**ids)
                body = sample(operation.request, id)
                with bob.stream(operation.method, path, json=body) as answer:
                    told = next(answer.iter_text(), '')
                assert answer.status_code < 500 or answer.status_code == 503, (operation.path, told)
                assert SECRET not in told, operation.path
                if '/api/runs/{id}' in operation.path:
                    assert answer.status_code == 404, operation.path
            assert state_of(ann, {**ids, 'id': turn['run']}) == before


def test_no_request_is_an_error_of_the_server_itself(serve: Serve) -> None:
    settings = HttpSettings(port=0, requests_per_second=10_000)
    with serve(['Hello'] * 500, http=settings) as address, httpx2.Client(base_url=address, timeout=60) as user:
        for operation in OPERATIONS:
            names = dict.fromkeys(('id', 'other', 'digest', 'path', 'name', 'number'), 'x')
            plain = operation.path.replace(':path}', '}')
            paths = [plain.format(**dict.fromkeys(names, text)) for text in AWKWARD if '{' in plain]
            asked = [(path, b'{}') for path in paths] + [(plain.format(**names), body) for body in BODIES]
            asked += [(f'{plain.format(**names)}?{name}={text}', b'') for name in QUERY for text in AWKWARD]
            for path, body in asked:
                for headers in ({}, {'Last-Event-ID': '1e999', 'Idempotency-Key': 'k' * 3000}):
                    with user.stream(operation.method, path, content=body, headers=headers) as answer:
                        assert answer.status_code in {200, 201, 202, 400, 404, 405, 409, 413, 422, 503}, (
                            operation, path, body[:50], answer.status_code,
                        )  # fmt: skip
        for path in ('/api/login', '/v1/chat/completions', '/v1/responses', '/ag-ui', '/api/chat'):
            for body in BODIES:
                assert user.post(path, content=body).status_code in {400, 401, 422}, (path, body[:50])


QUERY = ('after', 'limit', 'session', 'q', 'version')


def test_text_that_is_not_unicode_does_not_end_a_stream(serve: Serve) -> None:
    script = ['```python\nx = "\\ud800"\nprint(x)\n```', '```python\nfinal_answer(x)\n```']
    with serve(script) as address, httpx2.Client(base_url=address, timeout=60) as user:
        run = begin(user, 'Go')['run']
        whole = records(events(user, run), is_end)
        assert [record['seq'] for record in whole] == list(range(1, len(whole) + 1))
        assert user.get(f'/api/runs/{run}').status_code == 200


def test_a_user_cannot_keep_conversations_open_without_end(serve: Serve) -> None:
    before = len(open_files())
    with serve([]) as address, httpx2.Client(base_url=address, timeout=60) as user:
        opened: list[int] = []
        for number in range(3 * MAX_OPEN):
            assert user.get(f'/api/conversations/c{number}/files').status_code == 200
            opened.append(len(open_files()) - before)
    assert max(opened) <= max(opened[: MAX_OPEN + 1]) + 10, 'each has files open, and none was closed'


def open_files() -> list[str]:
    return os.listdir('/proc/self/fd')


# Idempotency keys


def test_a_key_is_for_one_request_of_one_user(serve: Serve) -> None:
    with serve(['Hello'] * 9, keys=KEYS) as address, client(address, 0) as ann, client(address, 1) as bob:
        first = begin(ann, 'Go', 'c1', key='k')
        records(events(ann, first['run']), is_end)
        for session, message in (('c1', 'Something else'), ('c2', 'Go')):
            sent = ann.post(
                f'/api/conversations/{session}/turns', json={'message': message}, headers={'Idempotency-Key': 'k'}
            )
            assert sent.status_code == 422, sent.text
        assert begin(bob, 'Go', 'c1', key='k')['run'] != first['run']
        assert len(ann.get('/api/runs').json()['runs']) == 1
    with serve([], keys=KEYS) as address, client(address, 0) as ann:
        assert begin(ann, 'Go', 'c1', key='k') == first
        other = {'message': 'Something else'}
        sent = ann.post('/api/conversations/c1/turns', json=other, headers={'Idempotency-Key': 'k'})
        assert (sent.status_code, sent.json()['title']) == (422, 'KeyReused')


def test_a_message_that_went_on_with_a_failed_turn_is_not_sent_again_with_its_key(serve: Serve) -> None:
    with serve([ModelError('busy'), 'Hello', 'Again']) as address, httpx2.Client(base_url=address, timeout=60) as user:
        first = begin(user, 'Go', key='k1')
        failed = records(events(user, first['run']), is_end)
        assert begin(user, 'Go', first['session'], key='k2') == first
        records(events(user, first['run'], after=failed[-1]['seq']), is_end)
        assert begin(user, 'Go', first['session'], key='k2') == first
        assert len(user.get('/api/runs').json()['runs']) == 1


# Uploads


@pytest.mark.parametrize('name', ['../../escape', '/tmp/escape', 'a/b', '..', '.', '', 'a\0b', 'x' * 255, 'con\n'])
def test_a_file_is_put_nowhere_else_whatever_its_name(serve: Serve, tmp_path: Path, name: str) -> None:
    with (
        serve(['Hello'], workspace=tmp_path / 'shared') as address,
        httpx2.Client(base_url=address, timeout=60) as user,
    ):
        (tmp_path / 'shared').mkdir(exist_ok=True)
        file = {'name': name, 'data': 'eA=='}
        sent = user.post('/api/conversations/c1/turns', json={'message': 'Go', 'files': [file]})
        assert sent.status_code in {202, 400}, sent.text
        if sent.status_code == 202:
            records(events(user, sent.json()['run']), is_end)
    assert not [path for path in tmp_path.rglob('*') if path.is_file() and path.read_bytes() == b'x']
    assert not Path('/tmp/escape').exists()


def test_uploads_are_bounded_in_size_and_number(serve: Serve) -> None:
    def drip() -> Iterator[bytes]:
        yield b'{"message": "'
        for _ in range(200):
            yield b'x' * 10_000

    settings = HttpSettings(port=0, body_bytes=1 << 20)
    with serve([], http=settings) as address, httpx2.Client(base_url=address, timeout=60) as user:
        for content in (drip(), b'x' * (2 << 20)):
            refused = user.post('/api/conversations/c/turns', content=content)
            assert (refused.status_code, refused.headers['content-type']) == (413, 'application/problem+json')
        files = [{'name': f'f{number}', 'data': ''} for number in range(51)]
        assert user.post('/api/conversations/c/turns', json={'message': 'x', 'files': files}).status_code == 400


# Browsers


def test_pages_of_other_sites_cannot_call_and_answers_cannot_be_framed(serve: Serve) -> None:
    with serve([]) as address, httpx2.Client(base_url=address, timeout=60) as user:
        host = address.removeprefix('http://')
        for headers in (
            {'Host': 'evil.example'}, {'Host': f'localhost.evil.example:{host[-5:]}'}, {'Origin': 'null'},
            {'Origin': 'http://evil.example'}, {'Origin': 'http://127.0.0.1:1'}, {'Origin': f'https://{host}.evil'},
        ):  # fmt: skip
            for operation in OPERATIONS:
                path = operation.path.replace(':path}', '}').format(
                    id='x', other='x', digest='x', path='x', name='x', number='1'
                )
                assert user.request(operation.method, path, headers=headers).status_code == 403, (headers, path)
        for path in ('/', '/api/status', '/api/runs/none', '/nothing', '/openapi.json'):
            policy = user.get(path).headers['content-security-policy']
            assert "default-src 'none'" in policy
            assert 'unsafe' not in policy
            assert "frame-ancestors 'none'" in policy


def test_a_browser_keeps_its_token_where_scripts_and_other_sites_cannot_use_it(serve: Serve) -> None:
    with serve([], keys=KEYS) as address, httpx2.Client(base_url=address, timeout=60) as user:
        [cookie] = user.post('/api/login', json={'token': KEYS[0]}).headers.get_list('set-cookie')
        assert {'httponly', 'samesite=strict', 'path=/'} <= {part.strip().lower() for part in cookie.split(';')}
        assert user.post('/api/login', json={'token': 'wrong'}).status_code == 401


def test_a_token_that_is_revoked_ends_open_streams(serve: Serve, tmp_path: Path) -> None:
    users = Users(tmp_path / 'users.json')
    token = users.add('ann')
    users.add('bob')
    settings = AssistantSettings(port=0, users=users)
    with serve(['Hello'] * 3, http=settings) as address, httpx2.Client(base_url=address, timeout=60) as user:
        user.headers['Authorization'] = f'Bearer {token}'
        with user.stream('GET', '/api/events') as stream:
            told = parse(stream.iter_lines())
            assert next(told)[1] == 'here'
            turn = begin(user, 'Go')
            assert next(told)[2]['run'] == turn['run']
            users.revoke('ann')
            assert user.get('/api/status').status_code == 401
            users.add('ann')
            with contextlib.suppress(httpx2.RemoteProtocolError):
                for _ in told:
                    pass


# Floods


def test_a_stream_that_is_not_read_is_dropped_and_holds_nobody_up(serve: Serve) -> None:
    script = ['```python\nfor i in range(3000):\n    print("x" * 1000)\n```'] * 20 + ['Done']
    settings = HttpSettings(port=0, body_seconds=0.5)
    with serve(script, http=settings) as address, httpx2.Client(base_url=address, timeout=60) as user:
        run = begin(user, 'Go')['run']
        stuck = socket.socket()
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        port = int(address.rpartition(':')[2])
        stuck.connect(('127.0.0.1', port))
        stuck.sendall(f'GET /api/runs/{run}/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n'.encode())
        whole = records(events(user, run), is_end)
        assert [record['seq'] for record in whole] == list(range(1, len(whole) + 1))
        closed = select.poll()
        closed.register(stuck, select.POLLHUP | select.POLLERR)
        assert closed.poll(60_000), 'a client that reads nothing keeps its stream'
        stuck.close()


def test_ten_thousand_connections_are_refused_and_leave_the_server_well(serve: Serve) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = min(10_000, hard - 2_000)
    with serve([]) as address, contextlib.ExitStack() as opened:
        port = int(address.rpartition(':')[2])
        for _ in range(count):
            opened.enter_context(socket.create_connection(('127.0.0.1', port)))
        late = opened.enter_context(socket.create_connection(('127.0.0.1', port)))
        head, _, body = late.recv(1 << 16).partition(b'\r\n\r\n')
        assert b' 429 ' in head
        assert b'application/problem+json' in head
        problem = ProblemModel.model_validate_json(body)
        assert (problem.status, 'connections from this address' in problem.detail) == (429, True)
        opened.close()
        with httpx2.Client(base_url=address, timeout=60) as user:
            for _ in range(1000):
                with contextlib.suppress(httpx2.RemoteProtocolError):
                    if user.get('/api/health').status_code == 200:
                        break
            assert user.get('/api/health').json()['status'] == 'ok'
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
