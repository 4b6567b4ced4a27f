"""What one caller has, however much it is, does not stop the service for the others."""

import asyncio
import contextlib
import json
import os
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from websockets.sync.client import connect

from habilis.server import sandbox_host
from habilis.server.models import MAX_PARTS
from habilis.server.settings import ServiceSettings
from tests.requirements import require_namespaces
from tests.server.running import running

MAKE_LINKS = "import os\nfor number in range(50): os.symlink('nowhere', f'link {number}')\nopen('file', 'w').close()"


@pytest.fixture
def http() -> Iterator[httpx2.Client]:
    with running(ServiceSettings(port=0)) as url, httpx2.Client(base_url=url, timeout=600) as client:
        yield client


@pytest.fixture
def on_the_loop(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where the event loop was busy with the folders of a caller, or with a result of any size."""
    found: list[str] = []
    for module, name in ((os, 'scandir'), (os, 'listdir'), (sandbox_host, 'to_json')):
        monkeypatch.setattr(module, name, _watched(getattr(module, name), found))
    return found


def _watched(call: Callable[..., Any], found: list[str]) -> Callable[..., Any]:
    def watched(*arguments: Any) -> Any:
        of_python = isinstance(arguments[0], str) and 'habilis-' not in arguments[0]
        with contextlib.suppress(RuntimeError):
            asyncio.get_running_loop()
            if not of_python:
                found.append(''.join(traceback.format_stack(limit=6)))
        return call(*arguments)

    return watched


def test_the_files_and_results_of_a_caller_are_handled_off_the_event_loop(
    http: httpx2.Client, on_the_loop: list[str]
) -> None:
    path = f'/v1/sandboxes/{http.post("/v1/sandboxes").json()["id"]}'
    cell = http.post(f'{path}/execute', json={'code': MAKE_LINKS}).json()
    assert [file['path'] for file in cell['files']] == ['file']
    assert http.get(f'{path}/files').json() == {'files': ['file']}
    assert http.get(f'{path}/files/fil').status_code == 404  # "did you mean" looks at the folder, too
    assert http.put(f'{path}/files/folder/other', content=b'x').status_code == 200
    assert http.get(f'{path}/files/folder/other').content == b'x'
    assert http.get(f'{path}/snapshot').status_code == 200
    assert http.delete(path).status_code == 200
    assert on_the_loop == []


def test_so_are_the_files_of_a_guest(http: httpx2.Client, on_the_loop: list[str]) -> None:
    with connect(f'{str(http.base_url).replace("http", "ws").rstrip("/")}/v1/guests') as guest:
        guest.send('0 0 hello\n' + json.dumps({'spec': {'limits': {}, 'mounts': [['/workspace', True]]}}))
        guest.recv()
        guest.send('1 0 enter\n' + json.dumps({'op': 'run', 'code': MAKE_LINKS, 'setup': {'cwd': '/workspace'}}))
        while 'answer' not in str(guest.recv()).partition('\n')[0]:
            pass
        guest.close(4000)
    while http.get('/v1/health').json()['sandboxes']:
        pass
    assert on_the_loop == []


def test_so_are_the_files_of_a_machine_of_e2b(on_the_loop: list[str]) -> None:
    require_namespaces()
    with running(ServiceSettings(port=0, e2b=True)) as url, httpx2.Client(base_url=url, timeout=600) as http:
        machine = http.post('/v2/sandboxes').json()
        inside = {'E2b-Sandbox-Id': machine['sandboxID'], 'X-Access-Token': machine['envdAccessToken']}
        assert http.post('/execute', headers=inside, json={'code': MAKE_LINKS}).status_code == 200
        listed = http.post('/filesystem.Filesystem/ListDir', headers=inside, json={'path': '.'})
        assert len(listed.json()['entries']) == 51
        assert http.delete(f'/sandboxes/{machine["sandboxID"]}').status_code == 204
    assert on_the_loop == []


@pytest.mark.parametrize(
    'body',
    [
        b'{"variables": {"x": [' + b'[],' * MAX_PARTS + b'1]}}',
        b'{"env": {' + b'"":"",' * MAX_PARTS + b'"":""}}',
        b'{"variables": ' + b'[' * (MAX_PARTS + 1),
        b'{"variables": {"x": "' + b'x' * (5 << 20) + b'"}}',
    ],
    ids=['lists', 'strings', 'brackets', 'bytes'],
)
def test_json_that_would_take_long_to_parse_is_refused(http: httpx2.Client, body: bytes) -> None:
    answer = http.post('/v1/sandboxes', content=body)
    assert answer.status_code == 400
    assert 'send larger data as a file' in answer.json()['error']


def test_code_may_have_any_number_of_commas(http: httpx2.Client) -> None:
    path = f'/v1/sandboxes/{http.post("/v1/sandboxes").json()["id"]}'
    code = f'len([{"[], " * MAX_PARTS}"{{,[\\\\"])'
    assert http.post(f'{path}/execute', json={'code': code}).json()['value'] == MAX_PARTS + 1


def test_names_that_are_not_unicode_are_listed() -> None:
    with (
        running(ServiceSettings(port=0, backend='process')) as url,
        httpx2.Client(base_url=url, timeout=600) as http,
    ):
        path = f'/v1/sandboxes/{http.post("/v1/sandboxes").json()["id"]}'
        cell = http.post(f'{path}/execute', json={'code': r"open(b'\xff', 'w').close()"})
        assert (cell.status_code, [file['path'] for file in cell.json()['files']]) == (200, ['\udcff'])
        assert http.get(f'{path}/files').json() == {'files': ['\udcff']}
