"""Callers that mean harm: wrong keys, floods, giants, malformed frames, paths, ids of others."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from habilis.core.errors import SettingsError
from habilis.sandbox.remote.wire import NO_SUCH_GUEST, REFUSED
from habilis.server.settings import ServiceSettings
from tests.server.running import running

KEYS = ('the key of the first', 'the key of the other')
SPEC: dict[str, object] = {'limits': {}, 'mounts': []}


@pytest.fixture(scope='module')
def url() -> Iterator[str]:
    settings = ServiceSettings(port=0, keys=KEYS, sandboxes_per_key=3, body_bytes=1 << 20, body_seconds=1.0)
    with running(settings) as address:
        yield address


@pytest.fixture
async def http(url: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=url, headers=_headers(0), timeout=600) as client:
        yield client


@pytest.fixture
async def one(http: httpx2.AsyncClient) -> AsyncIterator[str]:
    path = f'/v1/sandboxes/{(await http.post("/v1/sandboxes")).json()["id"]}'
    yield path
    await http.delete(path)


def _headers(number: int) -> dict[str, str]:
    return {'Authorization': f'Bearer {KEYS[number]}'}


# Who may call


@pytest.mark.parametrize(
    'header',
    [
        '',
        'Bearer',
        'Bearer wrong',
        f'Basic {KEYS[0]}',
        KEYS[0],
        f'Bearer {KEYS[0]}x',
        'Bearer \xff\xfe',
        'Bearer ' + 'x' * 9999,
    ],
    ids=range(8),
)
async def test_a_wrong_key_is_refused(url: str, header: str) -> None:
    async with httpx2.AsyncClient(base_url=url) as client:
        answer = await client.get('/v1/sandboxes', headers={'Authorization': header.encode('latin-1')})  # type: ignore[dict-item]
        assert (answer.status_code, answer.headers['www-authenticate']) == (401, 'Bearer')


async def test_a_sandbox_of_another_key_is_not_there(http: httpx2.AsyncClient, one: str) -> None:
    for call in (
        http.get(one, headers=_headers(1)),
        http.delete(one, headers=_headers(1)),
        http.post(f'{one}/execute', headers=_headers(1), json={'code': '1'}),
        http.get(f'{one}/files', headers=_headers(1)),
        http.put(f'{one}/files/x', headers=_headers(1), content=b''),
        http.get(f'{one}/snapshot', headers=_headers(1)),
    ):
        assert (await call).status_code == 404
    assert (await http.get('/v1/sandboxes', headers=_headers(1))).json() == {'sandboxes': []}
    assert (await http.get(one)).status_code == 200


def test_a_service_for_others_needs_keys_that_cannot_be_guessed() -> None:
    with pytest.raises(SettingsError, match=r'a key is needed to serve on 0\.0\.0\.0: pass --key'):
        ServiceSettings(host='0.0.0.0')
    with pytest.raises(SettingsError, match='16 characters or more; one has 5'):
        ServiceSettings(keys=('short',))
    assert 'hunter2' not in repr(ServiceSettings(keys=('hunter2 hunter2 hunter2',)))


async def test_a_page_that_rebinds_its_name_to_this_machine_is_refused() -> None:
    with running() as open_url:
        async with httpx2.AsyncClient(base_url=open_url) as client:
            for host in ('evil.example', 'evil.example:80', '127.0.0.1.evil.example', '', '10.0.0.1', '[::2]:1'):
                assert (await client.get('/v1/sandboxes', headers={'Host': host})).status_code == 403
            for name in ('localhost', '127.0.0.1:1', '[::1]:5'):
                assert (await client.get('/v1/sandboxes', headers={'Host': name})).status_code == 200
            elsewhere = {'Origin': 'http://evil.example'}
            assert (await client.post('/v1/sandboxes', headers=elsewhere)).status_code == 403
        with pytest.raises(InvalidStatus):
            await connect(f'{open_url.replace("http", "ws")}/v1/guests', origin='http://evil.example')  # type: ignore[arg-type]


# How much


async def test_a_flood_is_slowed(url: str) -> None:
    with running(ServiceSettings(port=0, requests_per_second=5)) as slow:
        async with httpx2.AsyncClient(base_url=slow) as client:
            answers = [await client.get('/v1/sandboxes') for _ in range(30)]
        refused = [answer for answer in answers if answer.status_code == 429]
        assert refused
        assert int(refused[0].headers['retry-after']) >= 1


async def test_the_quota_of_a_key_is_kept(http: httpx2.AsyncClient, url: str) -> None:
    made = [await http.post('/v1/sandboxes') for _ in range(4)]
    assert [answer.status_code for answer in made] == [201, 201, 201, 429]
    assert int(made[3].headers['retry-after']) >= 1
    async with _socket(url) as guest:
        with pytest.raises(ConnectionClosed, match='too many sandboxes'):
            await _hello(guest, {'spec': SPEC})
    for answer in made[:3]:
        await http.delete(f'/v1/sandboxes/{answer.json()["id"]}')


async def test_giant_bodies_are_refused(http: httpx2.AsyncClient, one: str) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield bytes(1 << 16)

    for content in (bytes(2 << 20), endless()):
        try:
            answer = await http.put(f'{one}/files/x', content=content)
        except httpx2.WriteError:  # the server closed the connection before it was all sent
            continue
        assert answer.status_code == 413
    assert (await http.get(f'{one}/files')).json() == {'files': []}
    assert (await http.post(f'{one}/execute', json={'code': 'x' * (2 << 20)})).status_code == 413


async def test_slow_clients_are_dropped(url: str) -> None:
    for sent in (
        b'GET /v1/health HT',
        b'',
        b'POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\n'
        b'Authorization: Bearer ' + KEYS[0].encode() + b'\r\nContent-Length: 9\r\n\r\n{',
    ):
        with socket.create_connection(('127.0.0.1', int(url.rpartition(':')[2]))) as slow:
            slow.sendall(sent)
            slow.settimeout(10)
            answer = await asyncio.to_thread(slow.recv, 1000)
            assert answer == b'' or b' 408 ' in answer


# Bodies and paths


@pytest.mark.parametrize(
    'body',
    [
        b'{',
        b'[]',
        b'null',
        b'{"code": 1}',
        b'{"code": "1", "evil": 1}',
        b'{"code": "1", "seconds": -1}',
        b'\xff',
        b'{"code":"\\ud800"}',
        b'{"code": "1", "id": "' + b'x' * 200 + b'"}',
        b'{}',
        b'[' * 100_000,
    ],
    ids=range(11),
)
async def test_a_malformed_request_is_refused_in_one_line(http: httpx2.AsyncClient, one: str, body: bytes) -> None:
    answer = await http.post(f'{one}/execute', content=body)
    assert answer.status_code in (200, 400)
    if answer.status_code == 400:
        assert '\n' not in answer.json()['error']
    else:
        assert answer.json()['error'] is not None
    assert (await http.post(f'{one}/execute', json={'code': '6 * 7'})).json()['value'] == 42


@pytest.mark.parametrize(
    'path',
    [
        '..%2f..%2fetc%2fpasswd',
        '%2e%2e/%2e%2e/etc/passwd',
        '%2fetc%2fpasswd',
        '/etc/passwd',
        'a%00b',
        'x' * 5000,
        '',
    ],
    ids=range(7),
)
async def test_paths_lead_nowhere_else(http: httpx2.AsyncClient, one: str, path: str) -> None:
    for answer in (await http.get(f'{one}/files/{path}'), await http.put(f'{one}/files/{path}', content=b'x')):
        assert answer.status_code in (400, 404, 405, 307)
        assert 'root:' not in answer.text


async def test_variables_and_environment_are_checked(http: httpx2.AsyncClient) -> None:
    for body in (
        {'env': {'A=B': 'x'}},
        {'env': {'A': 1}},
        {'workspace': '/etc'},
        {'mounts': {'/x': '/etc'}},
        {'network': True},
        {'packages': ['evil']},
        {'limits': {'memory_mb': 1}},
    ):
        assert (await http.post('/v1/sandboxes', content=json.dumps(body))).status_code == 400, body
    assert (await http.get('/v1/sandboxes')).json() == {'sandboxes': []}


# Frames


def _socket(url: str, number: int = 0) -> connect:
    return connect(f'{url.replace("http", "ws")}/v1/guests', additional_headers=_headers(number), max_size=None)


async def _hello(guest: ClientConnection, body: object) -> dict[str, object]:
    await guest.send(f'0 0 hello\n{json.dumps(body)}')
    return json.loads(str(await guest.recv()).partition('\n')[2])


@pytest.mark.parametrize(
    'frame',
    [
        'hello',
        '',
        '0 0 hello\n',
        '0 0 hello\n{}',
        '0 0 hello\n[]',
        '0 0 hello\n{"spec": 1}',
        '0 0 enter\nr1',
        'x y hello\n{}',
        '0 0 hello\n{"spec": {"limits": {"memory_mb": 9}, "mounts": []}}',
        '0 0 hello\n{"spec": {"limits": {}, "mounts": [["x", true]]}}',
        '0 0 hello\n{"spec": {"limits": {}, "mounts": [["/../x", true]]}}',
        '0 0 hello\n{"id": 5}',
        b'0 0 hello\n{}',
        '9' * 100 + ' 0 hello\n',
    ],
    ids=range(14),
)
async def test_a_malformed_hello_is_refused(url: str, frame: str | bytes) -> None:
    async with _socket(url) as guest:
        await guest.send(frame)
        with pytest.raises(ConnectionClosed) as closed:
            await guest.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == REFUSED


@pytest.mark.parametrize(
    'frame',
    [
        '1 0 reply\nx',
        '5 0 enter\nr1',
        '1 99 enter\nr1',
        'junk',
        '1 0 answer\nx',
        '1 0 died\n[]',
        b'\x00',
        '1 0 welcome\n{}',
        '-1 0 enter\nr1',
    ],
    ids=range(9),
)
async def test_a_frame_that_makes_no_sense_ends_the_guest(url: str, frame: str | bytes) -> None:
    async with _socket(url) as guest:
        name = (await _hello(guest, {'spec': SPEC}))['id']
        await guest.send(frame)
        with pytest.raises(ConnectionClosed) as closed:
            await guest.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == REFUSED
    async with _socket(url) as guest:
        with pytest.raises(ConnectionClosed, match='no such guest'):
            await _hello(guest, {'id': name})


@pytest.mark.parametrize(
    'files',
    [
        'x',
        '{}',
        '[1]',
        '[[0, "file", "../x", ""]]',
        '[[0, "file", "/etc/x", ""]]',
        '[[7, "file", "x", ""]]',
        '[[0, "file", "x", "%"]]',
        '[[0, "remove", ".."]]',
        '[[0, "file", "a\\u0000b", ""]]',
        '[[0, "evil", "x"]]',
        '[[true, "file", "x", ""]]',
        '[[0, "file", "a//b", ""]]',
    ],
    ids=range(12),
)
async def test_malformed_files_end_the_request(url: str, files: str) -> None:
    async with _socket(url) as guest:
        await _hello(guest, {'spec': {'limits': {}, 'mounts': [['/workspace', True]]}})
        await guest.send(f'1 0 files\n{files}')
        await guest.send('2 0 enter\n' + json.dumps({'op': 'run', 'code': '1', 'setup': {}}))
        head, _, body = str(await guest.recv()).partition('\n')
        assert head.endswith('died'), (head, body)
        await guest.close(4000)


async def test_a_guest_of_another_key_cannot_be_resumed(url: str) -> None:
    async with _socket(url) as guest:
        name = (await _hello(guest, {'spec': SPEC}))['id']
        async with _socket(url, 1) as thief:
            with pytest.raises(ConnectionClosed) as closed:
                await _hello(thief, {'id': name})
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == NO_SUCH_GUEST
        await guest.close(4000)


async def test_a_guest_whose_client_is_gone_expires() -> None:
    with running(ServiceSettings(port=0, resume_seconds=0.2)) as address:
        async with connect(f'{address.replace("http", "ws")}/v1/guests') as guest:
            await _hello(guest, {'spec': SPEC})
            await guest.send('1 0 enter\n' + json.dumps({'op': 'run', 'code': 'while True: pass', 'setup': {}}))
            guest.transport.abort()
        async with httpx2.AsyncClient(base_url=address) as client:
            for _ in range(100):
                if (await client.get('/v1/health')).json()['sandboxes'] == 0:
                    return
                await asyncio.sleep(0.1)
    pytest.fail('the guest is still there')
