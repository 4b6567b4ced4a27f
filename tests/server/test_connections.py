"""Clients that take all connections, or all of their time: each is closed, and others are served meanwhile."""

import asyncio
import contextlib
import gc
import select
import socket
import threading
from collections.abc import AsyncGenerator, Generator, Iterator

import httpx2
import pytest
from websockets.asyncio.client import ClientConnection, connect

from habilis.core.errors import SettingsError
from habilis.server.connections import Connections
from habilis.server.settings import ServiceSettings
from tests.server.running import running
from tests.waiting import until

KEY = 'the key of the first'
HEALTH = b'GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n'
HALF = b'GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX-Slow: '
HANDSHAKE = (
    b'GET /v1/guests HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
    b'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='
)
LARGE = 16 << 20
PATIENCE = 30.0
"""Seconds after which a connection counts as kept for ever; the service closes it after 0.5."""


@pytest.fixture(scope='module')
def port() -> Iterator[int]:
    with running(ServiceSettings(port=0, keys=(KEY,), body_seconds=0.5)) as url:
        yield _port(url)


def _port(url: str) -> int:
    return int(url.rpartition(':')[2])


def _connect(port: int, address: str = '127.0.0.1', *, buffer: int = 0) -> socket.socket:
    """A connection from an address of this machine."""
    made = socket.socket()
    made.settimeout(PATIENCE)
    if buffer:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    made.bind((address, 0))
    made.connect(('127.0.0.1', port))
    return made


def _read_answer(connection: socket.socket) -> bytes:
    """The status line of an answer with a length, all of which is read."""
    data = b''
    while b'\r\n\r\n' not in data:
        if not (piece := connection.recv(1 << 16)):
            return b''
        data += piece
    head, _, body = data.partition(b'\r\n\r\n')
    size = int(head.lower().partition(b'content-length: ')[2].partition(b'\r\n')[0])
    while len(body) < size:
        body += connection.recv(1 << 16)
    return head.partition(b'\r\n')[0]


def _is_served(port: int, address: str = '127.0.0.1') -> bool:
    with _connect(port, address) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(HEALTH)
        return b' 200 ' in _read_answer(connection)
    return False


def _drip(connection: socket.socket, data: bytes, stop: threading.Event) -> None:
    """Send a byte now and then, as a client does that is meant to look alive."""
    with contextlib.suppress(OSError):
        while not stop.wait(0.05):
            connection.sendall(data)


SLOW = {
    'nothing at all': (b'', b''),
    'half of a head': (HALF, b'x'),
    'half of a second head': (HEALTH + HALF, b'x'),
    'half of a head after two requests at once': (HEALTH + HEALTH + HALF, b'x'),
    'a body that is refused without reading it': (
        b'POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999\r\n\r\n',
        b'x',
    ),
    'a body that no operation reads': (
        b'GET /v1/health HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n',
        b'1\r\nx\r\n',
    ),
    'a body that is read': (
        b'POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999\r\n'
        b'Authorization: Bearer ' + KEY.encode() + b'\r\n\r\n',
        b' ',
    ),
    'a handshake of a WebSocket': (HANDSHAKE, b'x'),
    'a handshake of a WebSocket with a body': (HANDSHAKE + b'\r\nContent-Length: 1\r\n\r\n{', b'x'),
    'nothing after an answer': (HEALTH, b''),
}


@pytest.mark.parametrize('name', SLOW)
def test_a_request_that_does_not_arrive_in_time_is_dropped_however_alive_it_looks(port: int, name: str) -> None:
    start, more = SLOW[name]
    stop = threading.Event()
    with _connect(port) as connection:
        connection.sendall(start)
        dripping = threading.Thread(target=_drip, args=(connection, more, stop), daemon=True)
        if more:
            dripping.start()
        with contextlib.suppress(ConnectionError):
            while connection.recv(1 << 16):
                pass
        stop.set()


@contextlib.contextmanager
def _large_file(port: int) -> Generator[bytes]:
    """A request for a file of 16 MB."""
    key = {'Authorization': f'Bearer {KEY}'}
    with httpx2.Client(base_url=f'http://127.0.0.1:{port}', headers=key, timeout=PATIENCE) as http:
        path = f'/v1/sandboxes/{http.post("/v1/sandboxes").json()["id"]}'
        assert http.put(f'{path}/files/large', content=bytes(LARGE)).status_code == 200
        yield f'GET {path}/files/large HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n\r\n'.encode()
        http.delete(path)


def test_who_does_not_read_an_answer_is_dropped(port: int) -> None:
    with _large_file(port) as request, _connect(port, buffer=4096) as connection:
        connection.sendall(request)
        closed = select.poll()
        closed.register(connection, select.POLLHUP | select.POLLERR)
        assert closed.poll(1000 * PATIENCE)


@pytest.mark.slow
def test_no_connection_outlives_the_server() -> None:
    with contextlib.ExitStack() as opened:
        with running(ServiceSettings(port=0, keys=(KEY,))) as url, _large_file(_port(url)) as request:
            unread = opened.enter_context(_connect(_port(url), buffer=4096))
            unread.sendall(request)
            assert unread.recv(1)
        gc.collect()  # warns of a transport that was left open


def test_an_answer_that_takes_longer_than_a_request_may_arrives_whole(port: int) -> None:
    with _large_file(port) as request, _connect(port, buffer=1 << 16) as connection:
        connection.sendall(request)
        size, pause = 0, threading.Event()
        while size < LARGE:
            size += len(connection.recv(1 << 17))
            pause.wait(0.005)


# How many


async def test_one_address_cannot_take_the_connections_of_others() -> None:
    with running(ServiceSettings(port=0, per_caller=5)) as url, contextlib.ExitStack() as opened:
        port = _port(url)
        kept = [opened.enter_context(_connect(port)) for _ in range(5)]
        for connection in kept:  # answered, so that all have been counted
            connection.sendall(HEALTH)
            assert b' 200 ' in _read_answer(connection)
        for connection in kept:
            connection.sendall(HALF)
        with _connect(port) as refused:
            answer = refused.recv(1 << 16)
            assert b' 429 ' in answer
            assert b'5 connections from this address' in answer
        assert _is_served(port, '127.0.0.2')
        for connection in kept:
            connection.close()
        await until(lambda: _is_served(port))


def test_half_requests_from_many_addresses_make_room_for_others() -> None:
    with running(ServiceSettings(port=0, connections=12, per_caller=4)) as url, contextlib.ExitStack() as opened:
        port = _port(url)
        for number in range(40):
            connection = opened.enter_context(_connect(port, f'127.0.1.{1 + number // 4}'))
            connection.sendall(HALF)
        for _ in range(20):
            assert _is_served(port)


async def test_connections_that_work_are_not_closed_for_others() -> None:
    with running(ServiceSettings(port=0, connections=3, per_caller=3)) as url:
        async with contextlib.AsyncExitStack() as opened:
            guests = [await opened.enter_async_context(_guest(url)) for _ in range(3)]
            with _connect(_port(url), '127.0.0.2') as refused:
                assert b'there are 3 connections' in await asyncio.to_thread(refused.recv, 1 << 16)
            for guest in guests:
                await (await guest.ping())
        await until(lambda: _is_served(_port(url)))  # the connections of WebSockets are given back, too


@contextlib.asynccontextmanager
async def _guest(url: str) -> AsyncGenerator[ClientConnection]:
    async with connect(f'{url.replace("http", "ws")}/v1/guests') as guest:
        await guest.send('0 0 hello\n{"spec": {"limits": {}, "mounts": []}}')
        await guest.recv()
        yield guest
        await guest.close(4000)


async def test_a_key_has_so_many_requests_at_once() -> None:
    with running(ServiceSettings(port=0, per_caller=2, trusted_proxies=('127.0.0.1',))) as url:
        async with _guest(url), _guest(url), httpx2.AsyncClient(base_url=url) as http:
            answer = await http.get('/v1/sandboxes')
        assert (answer.status_code, answer.headers['retry-after']) == (429, '1')


def test_a_flood_is_logged_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    connections = Connections(ServiceSettings())
    for _ in range(1000):
        connections.log('203.0.113.7', 'its request did not arrive in 30 s')
    connections.log('203.0.113.7', 'there are 250 connections from this address')
    assert caplog.messages == [
        'closed a connection from 203.0.113.7: its request did not arrive in 30 s',
        'closed a connection from 203.0.113.7: there are 250 connections from this address',
    ]


# Who is behind a proxy


@pytest.mark.parametrize('proxies', [(), ('10.1.2.3', '192.168.0.0/16')], ids=['none', 'others'])
def test_a_changing_forwarded_address_does_not_pass_the_rate_limit(proxies: tuple[str, ...]) -> None:
    settings = ServiceSettings(port=0, keys=(KEY,), requests_per_second=2, trusted_proxies=proxies)
    with running(settings) as url, httpx2.Client(base_url=url, timeout=60) as http:
        assert 429 in [http.get('/v1/sandboxes', headers=_from(number)).status_code for number in range(40)]


def test_clients_behind_a_trusted_proxy_are_distinguished() -> None:
    settings = ServiceSettings(port=0, keys=(KEY,), requests_per_second=2, trusted_proxies=('127.0.0.0/8',))
    with running(settings) as url, httpx2.Client(base_url=url, timeout=60) as http:
        assert {http.get('/v1/sandboxes', headers=_from(number)).status_code for number in range(40)} == {401}
        # What the client itself has claimed comes first; the proxy adds where it got that from.
        claimed = [{'X-Forwarded-For': f'10.9.9.{number}, 203.0.113.7'} for number in range(40)]
        assert 429 in [http.get('/v1/sandboxes', headers=headers).status_code for headers in claimed]
        garbage = [{'X-Forwarded-For': f'nobody {number}'} for number in range(40)]
        assert 429 in [http.get('/v1/sandboxes', headers=headers).status_code for headers in garbage]
        network = [{'X-Forwarded-For': f'2001:db8::{number}'} for number in range(1, 41)]
        assert 429 in [http.get('/v1/sandboxes', headers=headers).status_code for headers in network]


def _from(number: int) -> dict[str, str]:
    return {'X-Forwarded-For': f'10.0.0.{number}'}


@pytest.mark.parametrize('proxy', ['*', 'proxy.example', '10.0.0.1/8', ''])
def test_a_trusted_proxy_is_named_by_its_address(proxy: str) -> None:
    with pytest.raises(SettingsError, match='a trusted proxy is an address or a network such as'):
        ServiceSettings(trusted_proxies=(proxy,))
