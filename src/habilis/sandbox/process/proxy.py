"""An HTTP proxy on the host: the network of all programs in a sandbox that has sockets, but no route.

The listening socket is made inside (`inside.py`), where it belongs to the sandbox's own network, and passed out here.
The proxy accepts connections from it, checks the host that is asked for, and connects. One thread serves all sandboxes.
"""

import asyncio
import contextlib
import re
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from habilis.sandbox.host.workers import after_fork
from habilis.sandbox.network import CONNECT_SECONDS, MAX_CONNECTIONS, Grant

HEAD_SECONDS = 20.0
"""Time that a client has for its request line and headers."""

SLOT_SECONDS = 5.0
"""Time that a client waits for another one to end, if there are too many."""

LINGER_SECONDS = 2.0
LOOKUPS = 32
"""Number of names that are resolved at the same time."""

MAX_HEAD = 1 << 16
CHUNK = 1 << 16
_AUTHORITY = re.compile(r'(?:\[([0-9A-Fa-f:.%]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?')
_TARGET = re.compile(r'http://([^/?#]*)(.*)', re.IGNORECASE)
_HEADER_NAME = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]+")
_CONTROLS = re.compile(r'[\x00-\x08\x0a-\x1f\x7f]')
_OWN_HEADERS = ('host', 'connection', 'keep-alive')
"""Headers that the proxy sets, and those of the connection to it (with all that start with `proxy-`)."""

_USAGE = 'the proxy of a sandbox takes CONNECT host:port, and http:// addresses'


class _RefusedConnection(Exception):
    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True)
class _Request:
    host: str
    port: int
    head: bytes | None
    """What is sent to the server first; None for a tunnel."""


class Proxy:
    """The connections of one sandbox. All methods run on the event loop of the proxies."""

    def __init__(self, grant: Grant, channel: socket.socket) -> None:
        self._grant = grant
        self._channel: socket.socket | None = channel
        self._slots = asyncio.Semaphore(MAX_CONNECTIONS)
        self._tasks: set[asyncio.Task[None]] = set()

    def wait(self) -> None:
        """Serve as soon as the listening socket has arrived through the channel."""
        if self._channel is not None:
            self._channel.setblocking(False)
            asyncio.get_running_loop().add_reader(self._channel, self._receive)

    def _receive(self) -> None:
        assert self._channel is not None
        descriptors: list[int] = []
        with contextlib.suppress(OSError):
            _, descriptors, _, _ = socket.recv_fds(self._channel, 1, 1)
        self._forget_channel()
        if descriptors:
            listener = socket.socket(fileno=descriptors[0])
            self._start(asyncio.create_task(self._serve(listener)))

    async def _serve(self, listener: socket.socket) -> None:
        """Accept one client after another: those that would be too many wait in the sandbox, and cost nothing here."""
        with listener:
            listener.setblocking(False)
            while True:
                try:
                    client, _ = await asyncio.get_running_loop().sock_accept(listener)
                except OSError:  # this process has too many files open
                    await asyncio.sleep(1.0)
                    continue
                try:
                    async with asyncio.timeout(SLOT_SECONDS):
                        await self._slots.acquire()
                except TimeoutError:
                    self._start(asyncio.create_task(_refuse_client(client)))
                except BaseException:
                    client.close()
                    raise
                else:
                    self._start(asyncio.create_task(self._handle(client)))

    async def _handle(self, client: socket.socket) -> None:
        try:
            await _handle(self._grant, *await asyncio.open_connection(sock=client, limit=MAX_HEAD))
        finally:
            self._slots.release()

    def _start(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """End all connections."""
        self._forget_channel()
        for task in self._tasks:
            task.cancel()

    def _forget_channel(self) -> None:
        if self._channel is not None:
            asyncio.get_running_loop().remove_reader(self._channel)
            self._channel.close()
            self._channel = None


async def _handle(grant: Grant, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve one client."""
    with contextlib.closing(writer), contextlib.suppress(OSError):
        try:
            request = parse_head(await _read_head(reader))
            server_reader, server_writer = await _connect(grant, request)
        except _RefusedConnection as refused:
            await _refuse(refused, reader, writer)
            return
        with contextlib.closing(server_writer):
            if request.head is None:
                writer.write(b'HTTP/1.1 200 Connection established\r\n\r\n')
                await _relay((reader, server_writer), (server_reader, writer))
            else:
                server_writer.write(request.head)
                sending = asyncio.create_task(_copy(reader, server_writer))
                try:
                    await _copy(server_reader, writer)  # the server closes the connection after its response
                finally:
                    sending.cancel()
                    await asyncio.wait([sending])
                await _linger(reader)


async def _refuse_client(client: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=client)
    with contextlib.closing(writer), contextlib.suppress(OSError):
        await _refuse(
            _RefusedConnection(503, f'{MAX_CONNECTIONS} connections are open already; close some'), reader, writer
        )


async def _refuse(refused: _RefusedConnection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(_response(refused.status, str(refused)))
    writer.write_eof()
    await _linger(reader)


async def _linger(reader: asyncio.StreamReader) -> None:
    """Read on for a moment: a client that still sends would see a reset instead of the response."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            while await reader.read(CHUNK):
                pass


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    try:
        async with asyncio.timeout(HEAD_SECONDS):
            return await reader.readuntil(b'\r\n\r\n')
    except TimeoutError:
        raise _RefusedConnection(408, f'no complete request within {HEAD_SECONDS:g} s') from None
    except asyncio.LimitOverrunError:
        raise _RefusedConnection(431, f'the headers of the request have more than {MAX_HEAD} bytes') from None
    except asyncio.IncompleteReadError:
        raise ConnectionAbortedError from None


def parse_head(head: bytes) -> _Request:
    """The request with these headers. Raises `_RefusedConnection`.

    The server is told the host that was checked, whatever the client says in its own header.
    """
    first, *lines = head[:-4].decode('latin-1').split('\r\n')
    match first.split(' '):
        case ['CONNECT', target, 'HTTP/1.0' | 'HTTP/1.1']:
            host, port = _authority(target, None)
            return _Request(host, port, None)
        case [method, target, 'HTTP/1.0' | 'HTTP/1.1' as version] if method.isalpha() and (
            found := _TARGET.fullmatch(target)
        ):
            authority, path = found.groups()
            host, port = _authority(authority, 80)
        case _:
            raise _RefusedConnection(400, _USAGE)
    names = [line.partition(':')[0].lower() for line in lines]
    if _CONTROLS.search('\t'.join([first, *lines])) or not all(map(_HEADER_NAME.fullmatch, names)):
        raise _RefusedConnection(
            400, 'the request has an invalid header'
        )  # a lenient server could read another Host in it
    kept = [
        line
        for name, line in zip(names, lines, strict=True)
        if name not in _OWN_HEADERS and not name.startswith('proxy-')
    ]
    path = path if path.startswith('/') else f'/{path}'
    sent = [f'{method} {path} {version}', f'Host: {authority}', *kept, 'Connection: close', '', '']
    return _Request(host, port, '\r\n'.join(sent).encode('latin-1'))


def _authority(text: str, default: int | None) -> tuple[str, int]:
    found = _AUTHORITY.fullmatch(text)
    port = (found[3] or default) if found else None
    if found is None or port is None:
        raise _RefusedConnection(400, _USAGE)
    return found[1] or found[2], int(port)


async def _connect(grant: Grant, request: _Request) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    place = f'{request.host[:200]}:{request.port}'
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            addresses = await asyncio.to_thread(grant.addresses, request.host, request.port)
            for address in addresses[:-1]:
                with contextlib.suppress(OSError):
                    return await asyncio.open_connection(address, request.port)
            return await asyncio.open_connection(addresses[-1], request.port)
    except PermissionError as error:
        raise _RefusedConnection(403, str(error)) from None
    except TimeoutError:
        raise _RefusedConnection(504, f'{place} did not answer within {CONNECT_SECONDS:g} s') from None
    except OSError as error:
        raise _RefusedConnection(502, f'cannot connect to {place}: {error.strerror or error}') from None


async def _relay(*directions: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    """Copy both directions until both have ended."""
    async with asyncio.TaskGroup() as group:
        for reader, writer in directions:
            group.create_task(_copy(reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:  # one side is gone: the other one need not wait for it
        writer.transport.abort()


def _response(status: int, reason: str) -> bytes:
    """A refusal. The reason is in the status line, too, because clients show that in their errors."""
    line = ''.join(letter if ' ' <= letter <= '~' else '?' for letter in reason)
    body = f'{line}\n'
    headers = f'Content-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close'
    return f'HTTP/1.1 {status} {line}\r\n{headers}\r\n\r\n{body}'.encode('ascii')


class _Proxies:
    """The thread of all proxies, with its event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def serve(self, grant: Grant) -> tuple[socket.socket, Callable[[], object]]:
        """Serve a sandbox that sends its listening socket through the one that is returned, with a function to end."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._loop.set_default_executor(ThreadPoolExecutor(LOOKUPS, thread_name_prefix='habilis-lookup'))
                threading.Thread(target=self._loop.run_forever, name='habilis-proxy', daemon=True).start()
        ours, theirs = socket.socketpair()
        proxy = Proxy(grant, ours)
        self._loop.call_soon_threadsafe(proxy.wait)
        return theirs, partial(self._loop.call_soon_threadsafe, proxy.close)


_proxies = _Proxies()
after_fork(_proxies.__init__)
serve = _proxies.serve
