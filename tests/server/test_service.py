"""The life of a sandbox over HTTP, as a caller without our client sees it."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest

from habilis.server.operations import OPERATIONS
from habilis.server.settings import ServiceSettings
from tests.server.running import running

KEYS = ('the key of the first', 'the key of the other')


@pytest.fixture(scope='module')
def url() -> Iterator[str]:
    with running(ServiceSettings(port=0, keys=KEYS, sandboxes_per_key=5)) as address:
        yield address


@pytest.fixture
async def http(url: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=url, headers={'Authorization': f'Bearer {KEYS[0]}'}, timeout=30) as client:
        yield client


@pytest.fixture
async def one(http: httpx2.AsyncClient) -> AsyncIterator[str]:
    """The path of a sandbox."""
    made = await http.post('/v1/sandboxes', json={'limits': {'seconds': 5}, 'variables': {'x': [1]}})
    assert made.status_code == 201
    path = f'/v1/sandboxes/{made.json()["id"]}'
    yield path
    await http.delete(path)


async def test_a_whole_life(http: httpx2.AsyncClient, one: str) -> None:
    cell = (
        await http.post(f'{one}/execute', json={'code': "x.append(2)\nprint('hi')\nopen('out', 'w').write('a')\nx"})
    ).json()
    assert (cell['ok'], cell['value'], cell['stdout']) == (True, [1, 2], 'hi\n')
    assert [file['path'] for file in cell['files']] == ['out']
    assert (await http.put(f'{one}/files/sub/in.txt', content=b'\x00data')).json() == {'ok': True}
    assert (await http.get(f'{one}/files')).json() == {'files': ['out', 'sub/in.txt']}
    assert (await http.get(f'{one}/files/sub/in.txt')).content == b'\x00data'
    snapshot = (await http.get(f'{one}/snapshot')).content
    await http.post(f'{one}/execute', json={'code': 'del x'})
    assert (await http.put(f'{one}/snapshot', content=snapshot)).json() == {'ok': True}
    assert (await http.post(f'{one}/execute', json={'code': 'x'})).json()['value'] == [1, 2]
    info = (await http.get(one)).json()
    assert (info['kind'], info['busy']) == ('sandbox', False)
    assert info['id'] in [other['id'] for other in (await http.get('/v1/sandboxes')).json()['sandboxes']]
    assert (await http.delete(one)).status_code == 200
    assert (await http.get(one)).status_code == 404


async def test_a_cell_that_fails_is_an_answer_and_not_an_error_of_http(http: httpx2.AsyncClient, one: str) -> None:
    answer = await http.post(f'{one}/execute', json={'code': '1 / 0'})
    assert (answer.status_code, answer.json()['error']['type']) == (200, 'ZeroDivisionError')


async def test_a_request_that_is_sent_again_gets_the_same_answer(http: httpx2.AsyncClient, one: str) -> None:
    cell = {'code': 'import time; time.sleep(0.3); x.append(0); len(x)', 'id': 'cell-1'}
    with pytest.raises(httpx2.TimeoutException):
        await http.post(f'{one}/execute', json=cell, timeout=0.1)
    first, again = await asyncio.gather(*(http.post(f'{one}/execute', json=cell) for _ in range(2)))
    assert first.json()['value'] == again.json()['value'] == 2
    assert (await http.post(f'{one}/execute', json={**cell, 'id': 'cell-2'})).json()['value'] == 3


async def test_the_health_and_the_documents_need_no_key(url: str) -> None:
    async with httpx2.AsyncClient(base_url=url) as client:
        health = (await client.get('/v1/health')).json()
        assert (health['status'], health['backend']) == ('ok', 'wasm')
        document = (await client.get('/openapi.json')).json()
        assert 'text/html' in (await client.get('/docs')).headers['content-type']
    described = {(method.upper(), path) for path, methods in document['paths'].items() for method in methods}
    assert described == {(operation.method, operation.path.replace(':path}', '}')) for operation in OPERATIONS}
    assert 'CellModel' in document['components']['schemas']


async def test_limits_are_clamped_to_those_of_the_server(http: httpx2.AsyncClient) -> None:
    made = await http.post('/v1/sandboxes', json={'limits': {'memory_mb': 4096, 'seconds': 5}})
    path = f'/v1/sandboxes/{made.json()["id"]}'
    cell = (await http.post(f'{path}/execute', json={'code': 'x = bytearray(1100 << 20)'})).json()
    assert cell['error']['kind'] == 'memory'
    await http.delete(path)


async def test_a_sandbox_that_nobody_uses_expires() -> None:
    with running(ServiceSettings(port=0, idle_seconds=0.2)) as address:
        async with httpx2.AsyncClient(base_url=address) as client:
            made = (await client.post('/v1/sandboxes')).json()
            for _ in range(100):
                if (await client.get('/v1/health')).json()['sandboxes'] == 0:
                    break
                await asyncio.sleep(0.1)
            assert (await client.get(f'/v1/sandboxes/{made["id"]}')).status_code == 404
