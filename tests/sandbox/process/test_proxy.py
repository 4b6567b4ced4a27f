"""The network of `process`: a proxy on the host, for Python and for other programs, to granted hosts only."""

import asyncio
import contextlib
import ensurepip
import io
import os
import socket
import threading
import zipfile
from collections.abc import Generator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from habilis.sandbox import Sandbox, network
from habilis.sandbox.network import Grant, make_network
from habilis.sandbox.process import proxy
from habilis.sandbox.process.proxy import serve
from tests.requirements import require
from tests.sandbox.test_network import GRANTS, Echo, grants, secure_server
from tests.sandbox.test_network import serve as serve_http

TIMEOUT = 60.0


class Mirror(Echo):
    """Returns what it was asked."""

    def reply(self) -> bytes:
        return f'{self.requestline}\n{self.headers}'.encode()


@pytest.fixture(scope='module')
def web() -> Iterator[int]:
    yield from serve_http(ThreadingHTTPServer(('127.0.0.1', 0), Mirror))


@pytest.fixture(scope='module')
def secure_web() -> Iterator[int]:
    yield from serve_http(secure_server(Echo))


@contextlib.contextmanager
def proxied(*hosts: str) -> Generator[int]:
    """A proxy without a sandbox; its port."""
    channel, end = serve(Grant(hosts))
    with channel, socket.create_server(('127.0.0.1', 0)) as listener:
        socket.send_fds(channel, [b'.'], [listener.fileno()])
        port = int(listener.getsockname()[1])
    yield port
    end()


def ask(port: int, request: str | bytes) -> str:
    """The whole reply to a request."""
    with socket.create_connection(('127.0.0.1', port), TIMEOUT) as client:
        client.sendall(request if isinstance(request, bytes) else request.encode())
        return read_all(client)


def read_all(client: socket.socket) -> str:
    reply = b''
    while data := client.recv(1 << 16):
        reply += data
    return reply.decode()


# In a sandbox ---------------------------------------------------------------------------------------------------------


async def test_every_program_reaches_granted_hosts_only_also_with_tls(web: int, secure_web: int) -> None:
    other_python = (
        'import subprocess, sys\ndef python(code):\n'
        "    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)\n"
        '    return done.stdout, done.stderr.strip().splitlines()[-1:]\n'
    )
    trusting = 'ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE'
    async with await Sandbox.create('process', network=[f'localhost:{secure_web}']) as sandbox:
        await sandbox.run(other_python)
        code = f"import ssl, urllib.request as u; c = {trusting}; print(u.urlopen('{{}}', context=c).read())"
        reached = await sandbox.run(f'python({code.format(f"https://localhost:{secure_web}/")!r})')
        assert reached.value == ("b'hello'\n", [])
        refused = await sandbox.run(f'python({code.format(f"https://localhost:{web}/")!r})')
        assert 'Tunnel connection failed: 403 this sandbox may not connect' in str(refused.value)
        refused = await sandbox.run(f'python({code.format(f"http://localhost:{web}/")!r})')
        assert f'HTTP Error 403: this sandbox may not connect to localhost:{web}' in str(refused.value)


async def test_plain_sockets_of_python_are_tunnelled(web: int) -> None:
    async with await Sandbox.create('process', network=['localhost']) as sandbox:
        code = (
            f"import socket\nwith socket.create_connection(('localhost', {web}), 5) as s:\n"
            "    s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')\n    line = s.makefile('rb').readline()\nline"
        )
        assert (await sandbox.run(code)).value == b'HTTP/1.0 200 OK\r\n'
        refused = (await sandbox.run(f"socket.create_connection(('127.0.0.1', {web}), 5)")).error
        assert refused is not None
        assert (refused.type, 'may not connect' in refused.message) == ('PermissionError', True)
        around = f"import _socket\n_socket.socket().connect(('127.0.0.1', {web}))"
        assert (await sandbox.run(around)).error


async def test_asyncio_has_sockets_threads_and_processes_beside_the_tools_of_the_host(web: int) -> None:
    async def double(number: int) -> int:
        """Twice the number."""
        await asyncio.sleep(0.05)
        return 2 * number

    async with await Sandbox.create('process', network=['localhost'], tools=[double]) as sandbox:
        await sandbox.run(_ASYNC_CLIENTS.format(port=web))
        opened = await sandbox.run(_OPENED)
        for _ in range(2):
            found = (await sandbox.run(_ALL_AT_ONCE)).value
            assert found == [42, 3, b'HTTP/1.0 200 OK\r\n', b'HTTP/1.0 200 OK\r\n', b'1\n', 'PermissionError']
            assert (await sandbox.run(_OPENED)).value == opened.value  # neither threads nor sockets
        stuck = (await sandbox.run('await asyncio.Event().wait()')).error
        assert stuck is not None
        assert stuck.message.startswith('deadlock: ')


_ASYNC_CLIENTS = """
import asyncio, os, threading

async def status(host):
    reader, writer = await asyncio.open_connection(host, {port})
    writer.write(b'GET / HTTP/1.0\\r\\n\\r\\n')
    line = await reader.readline()
    writer.close()
    await writer.wait_closed()
    return line

async def output(*command):
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    return (await process.communicate())[0]

async def refused():
    try:
        await status('127.0.0.1')
    except OSError as error:
        return type(error).__name__
"""
_ALL_AT_ONCE = """
await asyncio.gather(
    double(21), asyncio.to_thread(lambda: 3), status('localhost'), status('localhost'), output('echo', '1'), refused()
)
"""
_OPENED = """
for thread in threading.enumerate()[1:]:
    thread.join(10)
len(os.listdir('/proc/self/fd')), threading.active_count()
"""


async def test_localhost_is_the_sandbox_itself_unless_it_is_granted() -> None:
    code = (
        'import http.server, threading, urllib.request\n'
        "server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n"
        'threading.Thread(target=server.serve_forever, daemon=True).start()\n'
        "urllib.request.urlopen(f'http://localhost:{server.server_port}/').status"
    )
    async with await Sandbox.create('process', network=['example.org']) as sandbox:
        assert (await sandbox.run(code)).value == 200


async def test_a_connection_ends_with_its_sandbox() -> None:
    with socket.create_server(('127.0.0.1', 0)) as server:
        server.settimeout(TIMEOUT)
        async with await Sandbox.create('process', network=['localhost']) as sandbox:
            port = server.getsockname()[1]
            await sandbox.run(f"import socket\ns = socket.create_connection(('localhost', {port}))")
            connection, _ = server.accept()
        with connection:
            connection.settimeout(TIMEOUT)
            assert connection.recv(1) == b''


async def test_curl_reaches_granted_hosts_only(web: int) -> None:
    require('curl')
    async with await Sandbox.create('process', network=['localhost']) as sandbox:
        await sandbox.run(
            'import subprocess\ndef curl(*more):\n'
            "    done = subprocess.run(['curl', '-sSf', *more], capture_output=True, text=True)\n"
            '    return done.stdout, done.stderr\n'
        )
        for more in ((), ('--proxytunnel',)):
            assert 'GET / HTTP' in str((await sandbox.run(f"curl('http://localhost:{web}/', *{more})")).value)
            assert '403' in str((await sandbox.run(f"curl('http://127.0.0.1:{web}/', *{more})")).value)
        assert '403' in str((await sandbox.run("curl('https://example.org/')")).value)


class Index(BaseHTTPRequestHandler):
    """A package index with one package."""

    def do_GET(self) -> None:
        body = _wheel() if self.path.endswith('.whl') else b'<a href="/demo-1.0-py3-none-any.whl">demo</a>'
        self.send_response(200)
        self.send_header('Content-Type', 'text/html')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def _wheel() -> bytes:
    data = io.BytesIO()
    about = 'demo-1.0.dist-info'
    with zipfile.ZipFile(data, 'w') as archive:
        archive.writestr('demo.py', 'x = 42')
        archive.writestr(f'{about}/METADATA', 'Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n')
        archive.writestr(f'{about}/WHEEL', 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
        archive.writestr(f'{about}/RECORD', '')
    return data.getvalue()


async def test_commands_have_the_packages_and_pip_installs_more_from_a_granted_index() -> None:
    folders = (Path(ensurepip.__file__).parent / '_bundled', Path('/usr/share/python-wheels'))  # the latter: Debian
    pip = next(wheel for folder in folders for wheel in folder.glob('pip-*.whl'))
    server = serve_http(ThreadingHTTPServer(('127.0.0.1', 0), Index))
    place = f'localhost:{next(server)}'
    async with await Sandbox.create('process', packages=[pip], workspace=True, network=[place]) as sandbox:
        await sandbox.run(
            'import subprocess\ndef sh(command):\n'
            '    done = subprocess.run(command, shell=True, capture_output=True, text=True)\n'
            '    return done.stdout + done.stderr'
        )
        options = '--no-cache-dir --disable-pip-version-check --retries 1'
        install = f'python3 -m pip install -q {options} --target more -i http://{place}/index demo'
        assert (await sandbox.run(f'sh("{install}")')).value == ''
        assert (await sandbox.run('sh("cd more && python3 -c \'import demo; print(demo.x)\'")')).value == '42\n'
        refused = await sandbox.run(f'sh("python3 -m pip download {options} -i https://example.org/ demo")')
        assert '403 this sandbox may not connect to example.org:443' in str(refused.value)
    next(server, None)


# The rule -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(('granted', 'host', 'reached'), GRANTS)
def test_hosts_may_be_granted_by_name(granted: list[str] | None, host: str, reached: bool, web: int) -> None:
    made = make_network(grants(granted, web))
    assert made is not None
    with proxied(*made.grant.hosts) as port:
        reply = ask(port, f'GET http://{host}:{web}/ HTTP/1.1\r\n\r\n')
    assert reply.startswith('HTTP/1.0 200' if reached else 'HTTP/1.1 403 this sandbox may not connect to')


# Hostile clients ------------------------------------------------------------------------------------------------------


def test_the_server_gets_the_host_that_was_checked(web: int) -> None:
    lying = 'Host: internal.example.org\r\nhOsT:x\r\nConnection: keep-alive\r\nProxy-Authorization: secret\r\nX: 1'
    with proxied('localhost') as port:
        reply = ask(port, f'GET http://localhost:{web}/a?b HTTP/1.1\r\n{lying}\r\n\r\n')
    assert 'GET /a?b HTTP/1.1' in reply
    assert f'Host: localhost:{web}' in reply
    assert 'X: 1' in reply
    assert 'internal' not in reply
    assert reply.lower().count('\nhost') == 1
    assert 'secret' not in reply
    assert 'keep-alive' not in reply


@pytest.mark.parametrize('header', ['Host : x', ' Host: x', 'X: 1\nHost: x', 'X: 1\rHost: x', 'X: \0', ': x'])
def test_headers_that_servers_read_in_different_ways_are_refused(header: str, web: int) -> None:
    with proxied('localhost') as port:
        reply = ask(port, f'GET http://localhost:{web}/ HTTP/1.1\r\nX: 0\r\n{header}\r\n\r\n')
        assert reply.startswith('HTTP/1.1 400 the request has an invalid header')
        reply = ask(port, f'GET http://localhost:{web}/\rHost:x HTTP/1.1\r\n\r\n')
        assert reply.startswith('HTTP/1.1 400 ')


@pytest.mark.parametrize(
    'request_line',
    [
        'CONNECT 127.0.0.1:{port} HTTP/1.1',
        'CONNECT 127.1:{port} HTTP/1.1',
        'CONNECT 2130706433:{port} HTTP/1.1',
        'CONNECT 0x7f000001:{port} HTTP/1.1',
        'CONNECT 0.0.0.0:{port} HTTP/1.1',
        'CONNECT [::1]:{port} HTTP/1.1',
        'CONNECT [::ffff:127.0.0.1]:{port} HTTP/1.1',
        'CONNECT 169.254.169.254:80 HTTP/1.1',
        'CONNECT 10.0.0.1:80 HTTP/1.1',
        'CONNECT localhost:{port} HTTP/1.1',
        'CONNECT LOCALHOST:{port} HTTP/1.1',
        'GET http://127.0.0.1:{port}/ HTTP/1.1',
        'GET http://localhost:{port}/ HTTP/1.1',
    ],
)
def test_the_host_itself_is_out_of_reach_unless_named(request_line: str, web: int) -> None:
    with proxied('*', 'example.org', '*:80') as port:
        reply = ask(port, request_line.format(port=web) + '\r\nHost: example.org\r\n\r\n')
    assert reply.startswith('HTTP/1.1 403 this sandbox may not connect to ')
    assert 'its network setting does not name that (network=[' in reply


def test_a_granted_name_may_not_lead_to_a_private_address(web: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ['127.0.0.1']

    monkeypatch.setattr(network, 'resolve', resolve)
    with proxied('rebound.example.org') as port:
        reply = ask(port, f'CONNECT rebound.example.org:{web} HTTP/1.1\r\n\r\n')
        assert reply.startswith(f'HTTP/1.1 403 this sandbox may not connect to rebound.example.org:{web}')
        assert 'it is 127.0.0.1, which is not a public address' in reply
    with proxied('rebound.example.org', '127.0.0.1') as port:
        assert '200 OK' in ask(port, f'GET http://rebound.example.org:{web}/ HTTP/1.1\r\n\r\n')
    assert len(asked) == 2  # once for each connection


@pytest.mark.parametrize(
    'request_head',
    [
        'GET / HTTP/1.1',
        'GET https://localhost/ HTTP/1.1',
        'GET http://localhost@example.org/ HTTP/1.1',
        'GET http:///path HTTP/1.1',
        'GET http://localhost:99999999/ HTTP/1.1',
        'GET http://local\thost/ HTTP/1.1',
        'GET  http://localhost/ HTTP/1.1',
        'CONNECT localhost HTTP/1.1',
        'CONNECT localhost:http HTTP/1.1',
        'CONNECT localhost:80:80 HTTP/1.1',
        'CONNECT user@localhost:80 HTTP/1.1',
        'CONNECT localhost:80',
        'CONNECT localhost:80 HTTP/2',
        'CONNECT löcalhost:80 HTTP/1.1',
        '\x16\x03\x01',
        '',
    ],
)
def test_what_is_no_request_is_refused(request_head: str) -> None:
    with proxied('localhost') as port:
        reply = ask(port, f'{request_head}\r\nHost: localhost\r\n\r\n')
    assert reply.startswith('HTTP/1.1 400 the proxy of a sandbox takes')


def test_hosts_that_cannot_be_reached_are_reported() -> None:
    with socket.create_server(('127.0.0.1', 0)) as closed:
        unused = closed.getsockname()[1]
    with proxied('*', 'localhost') as port:
        reply = ask(port, f'CONNECT localhost:{unused} HTTP/1.1\r\n\r\n')
        assert reply.startswith(f'HTTP/1.1 502 cannot connect to localhost:{unused}')
        assert ask(port, 'CONNECT localhost:0 HTTP/1.1\r\n\r\n').startswith('HTTP/1.1 502')
        assert ask(port, f'CONNECT {"a" * 300}:80 HTTP/1.1\r\n\r\n').startswith('HTTP/1.1 502')


def test_huge_headers_and_slow_clients_are_refused(web: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, 'HEAD_SECONDS', 0.3)
    with proxied('localhost') as port:
        huge = b'GET http://localhost/ HTTP/1.1\r\n' + b'X: ' + b'y' * (1 << 20) + b'\r\n\r\n'
        assert ask(port, huge).startswith('HTTP/1.1 431')
        assert ask(port, 'GET http://localhost/ HTTP/1.1\r\nX: ').startswith('HTTP/1.1 408')
        assert '200 OK' in ask(port, f'GET http://localhost:{web}/ HTTP/1.1\r\n\r\n')


def test_too_many_connections_are_refused_and_do_not_affect_others(web: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, 'SLOT_SECONDS', 0.2)
    get = f'GET http://localhost:{web}/ HTTP/1.1\r\n\r\n'
    with proxied('localhost') as port, proxied('localhost') as other, contextlib.ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection(('127.0.0.1', port), TIMEOUT)) for _ in range(70)]
        assert read_all(idle[64]).startswith('HTTP/1.1 503 64 connections are open already')
        assert '200 OK' in ask(other, get)
        for client in idle:
            client.close()
        assert '200 OK' in ask(port, get)


def test_more_requests_than_connections_are_served_one_after_another(web: int) -> None:
    before = len(os.listdir('/proc/self/fd'))
    with proxied('localhost') as port, contextlib.ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection(('127.0.0.1', port), TIMEOUT)) for _ in range(120)]
        assert len(os.listdir('/proc/self/fd')) - before < 120 + 64 + 10  # the others wait on their side
        for client in idle:
            client.sendall(f'GET http://localhost:{web}/ HTTP/1.0\r\n\r\n'.encode())
        for client in idle:
            assert 'GET / HTTP/1.0' in read_all(client)


def test_large_bodies_go_through_in_both_directions(web: int) -> None:
    body = b'ab' * 4_000_000
    head = f'POST http://localhost:{web}/ HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n'
    with proxied('localhost') as port, socket.create_connection(('127.0.0.1', port), TIMEOUT) as client:
        threading.Thread(target=client.sendall, args=(head.encode() + body,), daemon=True).start()
        assert read_all(client).endswith((body[::-1]).decode())
