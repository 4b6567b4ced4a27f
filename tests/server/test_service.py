"""The life of a sandbox over HTTP, as a caller without our client sees it."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

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
    async with httpx2.AsyncClient(base_url=url, headers={'Authorization': f'Bearer {KEYS[0]}'}, timeout=600) as client:
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


async def _events(http: httpx2.AsyncClient, path: str, **request: object) -> list[tuple[str, dict[str, Any]]]:
    """The events of a streamed cell."""
    async with http.stream('POST', f'{path}/execute', json={**request, 'stream': True}) as answer:
        assert (answer.status_code, answer.headers['content-type']) == (200, 'text/event-stream; charset=utf-8')
        return [event async for event in _read_events(answer)]


async def _read_events(answer: httpx2.Response) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    kind = ''
    async for line in answer.aiter_lines():
        name, _, value = line.partition(': ')
        if name == 'event':
            kind = value
        elif name == 'data':
            yield kind, json.loads(value)


async def test_output_is_streamed_while_the_cell_runs(http: httpx2.AsyncClient, one: str) -> None:
    wait = "while not os.path.exists('seen'): time.sleep(0.02)"
    code = f"import os, sys, time\nprint('go')\n{wait}\nsys.stderr.write('é\\n')\n7"
    async with http.stream('POST', f'{one}/execute', json={'code': code, 'stream': True}) as answer:
        events = _read_events(answer)
        assert await anext(events) == ('stdout', {'text': 'go\n'})
        (await http.put(f'{one}/files/seen', content=b'')).raise_for_status()  # only now the cell goes on
        rest = [event async for event in events]
    assert [kind for kind, _ in rest] == ['stderr', 'result']
    assert rest[0][1] == {'text': 'é\n'}
    assert (rest[1][1]['value'], rest[1][1]['stdout']) == (7, 'go\n')


async def test_a_lost_stream_is_followed_again_by_its_id(http: httpx2.AsyncClient, one: str) -> None:
    request = {'code': "print(len(x)); x.append(0)\nimport time; time.sleep(0.5)\nprint('end')", 'id': 'mine'}
    async with http.stream('POST', f'{one}/execute', json={**request, 'stream': True}) as answer:
        await anext(_read_events(answer))
    events = await _events(http, one, **request)
    assert [kind for kind, _ in events] == ['stdout', 'stdout', 'result']
    assert events[-1][1]['stdout'] == '1\nend\n'
    assert (await http.post(f'{one}/execute', json=request)).json()['stdout'] == '1\nend\n'


async def test_a_stream_may_last_longer_than_a_body_may_take() -> None:
    with running(ServiceSettings(port=0, body_seconds=0.5)) as url:
        async with httpx2.AsyncClient(base_url=url, timeout=600) as http:
            path = f'/v1/sandboxes/{(await http.post("/v1/sandboxes", json={})).json()["id"]}'
            events = await _events(http, path, code="import time\ntime.sleep(1)\nprint('late')\n1 / 0")
    assert events[0] == ('stdout', {'text': 'late\n'})
    assert (events[1][0], events[1][1]['error']['type']) == ('result', 'ZeroDivisionError')


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


async def test_an_unused_sandbox_expires() -> None:
    with running(ServiceSettings(port=0, idle_seconds=0.2)) as address:
        async with httpx2.AsyncClient(base_url=address) as client:
            made = (await client.post('/v1/sandboxes')).json()
            for _ in range(100):
                if (await client.get('/v1/health')).json()['sandboxes'] == 0:
                    break
                await asyncio.sleep(0.1)
            assert (await client.get(f'/v1/sandboxes/{made["id"]}')).status_code == 404


async def test_a_file_that_is_missing_is_told_from_one_that_cannot_be_read(http: httpx2.AsyncClient, one: str) -> None:
    await http.put(f'{one}/files/folder/file', content=b'x')
    assert (await http.get(f'{one}/files/folder/other')).status_code == 404
    assert (await http.get(f'{one}/files/folder')).status_code == 400
    assert (await http.get(f'{one}/files/folder/file/below')).status_code == 400
