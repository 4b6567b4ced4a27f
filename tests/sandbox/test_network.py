"""The network: off unless granted, then made by the host, to the hosts that were named, with TLS."""

import socket
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from habilis.core.errors import SandboxError
from habilis.core.limits import Limits
from habilis.sandbox import Sandbox
from habilis.sandbox.network import make_network
from tests.cases import each_case

CERTIFICATE = Path(__file__).parent / 'data/localhost.pem'
LOOPBACK = ['localhost', '127.0.0.1']


class Echo(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer(self.reply())

    def reply(self) -> bytes:
        return b'hello'

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers['Content-Length']))[::-1])

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def serve(server: ThreadingHTTPServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope='module')
def web() -> Iterator[int]:
    yield from serve(ThreadingHTTPServer(('127.0.0.1', 0), Echo))


def secure_server(handler: type[BaseHTTPRequestHandler]) -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(('127.0.0.1', 0), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return server


@pytest.fixture(scope='module')
def secure_web() -> Iterator[int]:
    yield from serve(secure_server(Echo))


def test_without_a_grant_every_connection_fails_and_the_error_says_what_to_do(web: int) -> None:
    with Sandbox.create_sync() as sandbox:
        for code in (
            f"import socket\nsocket.create_connection(('127.0.0.1', {web}))",
            f"import urllib.request\nurllib.request.urlopen('http://127.0.0.1:{web}/')",
            'import socket\nsocket.socket()',
        ):
            error = sandbox.run(code).error
            assert error is not None
            assert 'network=True' in error.traceback
        forged = sandbox.run(f'import wit_world\nwit_world.host(\'n["open","127.0.0.1",{web},1]\')')
        assert isinstance(forged.value, str)
        assert 'PermissionError' in forged.value


def test_with_a_grant_urllib_and_http_client_work(web: int) -> None:
    with Sandbox.create_sync(network=LOOPBACK) as sandbox:
        get = f"import urllib.request\nurllib.request.urlopen('http://127.0.0.1:{web}/').read()"
        assert sandbox.run(get).value == b'hello'
        post = f"urllib.request.urlopen('http://127.0.0.1:{web}/', data=b'ab' * 1_000_000).read()[:4]"
        assert sandbox.run(post).value == b'baba'
        client = (
            f"import http.client\nc = http.client.HTTPConnection('localhost', {web})\n"
            "for _ in range(2):\n    c.request('GET', '/')\n    text = c.getresponse().read()\ntext"
        )
        assert sandbox.run(client).value == b'hello'
        lines = (
            f"import socket\nwith socket.create_connection(('127.0.0.1', {web}), 5) as s:\n"
            "    s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')\n    first = s.makefile('rb').readline()\nfirst"
        )
        assert sandbox.run(lines).value == b'HTTP/1.0 200 OK\r\n'


def test_the_host_speaks_tls_and_checks_certificates(secure_web: int) -> None:
    with Sandbox.create_sync(network=LOOPBACK) as sandbox:
        url = f'https://localhost:{secure_web}/'
        error = sandbox.run(f"import ssl, urllib.request\nurllib.request.urlopen('{url}')").error
        assert error is not None
        assert 'CERTIFICATE_VERIFY_FAILED' in error.message
        trusting = f"urllib.request.urlopen('{url}', context=ssl._create_unverified_context()).read()"
        assert sandbox.run(trusting).value == b'hello'


GRANTS: list[tuple[list[str] | None, str, bool]] = [
    (['localhost'], 'localhost', True),
    (['localhost'], '127.0.0.1', False),
    (['127.0.0.1'], '127.0.0.1', True),
    (['127.*'], '127.0.0.1', True),
    (['local*'], 'LOCALHOST', True),
    (['localhost:{port}'], 'localhost', True),
    (['localhost:1'], 'localhost', False),
    (['*.example.org'], 'localhost', False),
    ([], 'localhost', False),
    (None, 'localhost', False),
    (None, '127.0.0.1', False),
    (['*'], 'localhost', False),
    (['*:{port}'], '127.0.0.1', False),
]
"""What is granted (None: any host), a host of this machine, and whether it may be reached."""


def grants(granted: list[str] | None, port: int) -> list[str] | bool:
    return True if granted is None else [name.format(port=port) for name in granted]


@pytest.mark.parametrize(('granted', 'host', 'reached'), GRANTS)
def test_hosts_may_be_granted_by_name(granted: list[str] | None, host: str, reached: bool, web: int) -> None:
    with Sandbox.create_sync(network=grants(granted, web)) as sandbox:
        cell = sandbox.run(f"import urllib.request\nurllib.request.urlopen('http://{host}:{web}/').read()")
        assert cell.ok is reached
        if cell.error is not None:
            assert 'may not connect' in cell.error.message


def test_a_silent_server_does_not_outlive_the_time_limit() -> None:
    with socket.create_server(('127.0.0.1', 0)) as silent:
        port = silent.getsockname()[1]
        with Sandbox.create_sync(network=LOOPBACK, limits=Limits(seconds=1)) as sandbox:
            sandbox.run('x = 1')
            cell = sandbox.run(f"import socket\nsocket.create_connection(('127.0.0.1', {port})).recv(1)")
            assert cell.error is not None
            assert cell.error.kind == 'time'
            assert sandbox.run('x').value == 1
            timeout = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 0.2).recv(1)"
            error = sandbox.run(timeout).error
            assert error is not None
            assert error.type == 'TimeoutError'


@each_case(
    'message',
    ['n', 'n{}', 'n["open"]', 'n["open","localhost",99999999,1]', 'n["recv",77,10,1]', 'n["send",1,"***",1]',
     'n["tls",5,"x",true]', 'n["close",12345]', 'n["open",null,1,1]', 'n["recv",1,-5,1e999]'],
)  # fmt: skip
def test_forged_requests_are_answered_and_harm_nothing(message: str) -> None:
    with Sandbox.create_sync(network=True) as sandbox:
        cell = sandbox.run(f'import wit_world\nwit_world.host({message!r})')
        assert cell.ok
        assert sandbox.run('6 * 7').value == 42


def test_what_is_not_a_host_is_refused() -> None:
    with pytest.raises(SandboxError, match='is not a host'):
        make_network(['http://example.org/'])
