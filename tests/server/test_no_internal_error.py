"""Whatever a caller sends, in any header, path, query or body of any route: never an error of the server itself."""

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass

import httpx2
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from habilis.server.operations import OPERATIONS
from habilis.server.settings import ServiceSettings
from tests.server.running import running

KEY = 'the key of the first'
HEADERS = (
    'Host Origin Authorization Content-Type Content-Encoding Accept Connection Upgrade Expect Cookie Range '
    'Sec-WebSocket-Key Sec-WebSocket-Version Sec-WebSocket-Protocol Sec-WebSocket-Extensions X-Forwarded-For '
    'X-Forwarded-Proto X-API-Key E2b-Sandbox-Id X-Access-Token E2b-Traffic-Access-Token Connect-Protocol-Version '
    'Connect-Timeout-Ms Accept-Encoding Connect-Content-Encoding Connect-Accept-Encoding'
).split()
AWKWARD = (
    *('', ' ', 'http://[', 'http://]', '[', '[::1', 'http://[::1]:99999999', 'http://a:b:c', '//', ':', '\xff', '\xbc'),
    *('-1', '9' * 30, '1e999', 'NaN', 'null', '%', '%zz', '%00', '..', '../../..', '{}', '[]', '1', '100-continue'),
    *('Bearer', 'Bearer ', 'Bearer \xff', 'multipart/form-data', 'multipart/form-data; boundary=', 'bytes=9-1', 'gzip'),
    *('multipart/form-data; boundary=x', 'multipart/form-data; boundary=\xff', 'application/json; charset=nothing'),
    *('application/connect+json', 'application/json', 'application/proto', 'websocket', 'Upgrade', '127.0.0.1', 'A=B'),
)
BODIES = (
    *(b'', b'{', b'[' * 5000, b'\xff', b'null', b'{"code": "\\ud800"}', b'{"timeout": 1e999}', b'\0\0\0\0\2{}'),
    b'--x\r\nContent-Disposition: form-data; name="file"; filename="\xff"\r\n\r\nx\r\n--x--\r\n',
    b'--x\r\nContent-Disposition: form-data; name=\r\n\r\n--x',
)
FIELDS = (
    'code seconds id stream limits variables env timeout metadata templateID envVars cwd language context_id env_vars '
    'process path watcherId depth signal input tag stdin source destination cmd args envs pid selector'
).split()
E2B_PATHS = (
    '/v2/sandboxes /sandboxes/MACHINE /v2/sandboxes/MACHINE/connect /sandboxes/MACHINE/pause /health /files?path=x '
    '/execute /contexts /contexts/x /contexts/x/restart /process.Process/Start '
    '/process.Process/List /process.Process/Connect /process.Process/SendInput /process.Process/SendSignal '
    '/process.Process/CloseStdin /filesystem.Filesystem/Stat /filesystem.Filesystem/ListDir '
    '/filesystem.Filesystem/MakeDir /filesystem.Filesystem/Move /filesystem.Filesystem/Remove '
    '/filesystem.Filesystem/WatchDir /filesystem.Filesystem/CreateWatcher /filesystem.Filesystem/GetWatcherEvents '
    '/filesystem.Filesystem/RemoveWatcher'
).split()
OWN_PATHS = [operation.path.replace('{id}', 'SANDBOX').replace('{path:path}', 'x') for operation in OPERATIONS]
PATHS = sorted({*OWN_PATHS, *E2B_PATHS, '/v1/guests', '/openapi.json', '/docs', '/', '/nothing'})

HANDSHAKE = {
    'Connection': 'Upgrade',
    'Upgrade': 'websocket',
    'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Version': '13',
}
CONNECT = {'Content-Type': 'application/connect+json', 'Connect-Protocol-Version': '1'}

awkward = st.sampled_from(AWKWARD) | st.text(st.characters(min_codepoint=33, max_codepoint=255), max_size=30)
path = st.sampled_from(PATHS) | st.builds('{}{}'.format, st.sampled_from(PATHS), awkward.map(lambda text: f'/{text}'))
query = st.just('') | st.builds(
    '?{}={}'.format, st.sampled_from(['path', 'limit', 'nextToken', 'state', 'metadata', 'user']), awkward
)
plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | awkward
deep = st.recursive(plain, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), inner))
body = (
    st.sampled_from(BODIES)
    | st.binary(max_size=100)
    | st.dictionaries(st.sampled_from(FIELDS), deep, max_size=4).map(lambda made: json.dumps(made).encode())
)


@dataclass(frozen=True)
class Service:
    """A running service, with a sandbox of each kind."""

    port: int
    sandbox: str
    machine: str
    token: str


@pytest.fixture(scope='module')
def service() -> Iterator[Service]:
    settings = ServiceSettings(
        port=0, keys=(KEY,), e2b=True, sandboxes=3, requests_per_second=1e6, trusted_proxies=('127.0.0.1',)
    )
    with running(settings) as url, httpx2.Client(base_url=url, timeout=600) as http:
        sandbox = http.post('/v1/sandboxes', headers={'Authorization': f'Bearer {KEY}'}).json()
        machine = http.post('/v2/sandboxes', headers={'X-API-Key': KEY}, json={'timeout': 9999}).json()
        made = Service(http.base_url.port or 0, sandbox['id'], machine['sandboxID'], machine['envdAccessToken'])
        yield made
        assert _send(made, 'GET', '/health', {}, b'')[0] == 204, 'the machine must live as long as the test'


def _send(service: Service, method: str, target: str, headers: dict[str, str], content: bytes) -> tuple[int, bytes]:
    """The status and the start of what a request is answered with."""
    usual = {
        'Host': '127.0.0.1',
        'Authorization': f'Bearer {KEY}',
        'X-API-Key': KEY,
        'E2b-Sandbox-Id': service.machine,
        'X-Access-Token': service.token,
        'Content-Type': 'application/json',
        'Content-Length': str(len(content)),
    }
    target = target.replace('SANDBOX', service.sandbox).replace('MACHINE', service.machine)
    lines = [f'{method} {target} HTTP/1.1', *(f'{name}: {value}' for name, value in (usual | headers).items())]
    with socket.create_connection(('127.0.0.1', service.port), timeout=600) as connection:
        connection.sendall('\r\n'.join([*lines, '', '']).encode('latin-1') + content)
        answer = connection.recv(1 << 16)
    return int(answer.split(maxsplit=2)[1]), answer


def _merged(usual: dict[str, str], more: dict[str, str]) -> dict[str, str]:
    return {**usual, **more}


@settings(max_examples=300, deadline=None)
@given(
    method=st.sampled_from(['GET', 'POST', 'PUT', 'HEAD', 'OPTIONS', 'PATCH']),
    path=path,
    query=query,
    headers=st.builds(
        _merged,
        st.sampled_from([{}, {}, {}, HANDSHAKE, CONNECT]),
        st.dictionaries(st.sampled_from(HEADERS), awkward, max_size=3),
    ),
    content=body,
)
@example(method='GET', path='/v1/health', query='', headers={'Origin': 'http://['}, content=b'')
@example(method='POST', path='/execute', query='', headers={'X-Access-Token': '\xff'}, content=b'{}')
@example(method='POST', path='/v2/sandboxes', query='', headers={}, content=b'{"envVars": {"A=B": "x"}}')
def test_no_request_is_an_internal_error(
    service: Service, method: str, path: str, query: str, headers: dict[str, str], content: bytes
) -> None:
    status, answer = _send(service, method, path + query, headers, content)
    assert status != 500, answer
