"""Sockets inside a sandbox with network access: the host performs each call.

`urllib`, `http.client` and what builds on them work, over TLS too. There is no listening, no UDP, no asyncio stream.
"""

from __future__ import annotations

import base64
import importlib
import io
import select
import socket
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from habilis.core.codec import Json
from habilis.sandbox.guest import tunnels

if TYPE_CHECKING:
    from collections.abc import Iterable

    Buffer = bytes | bytearray | memoryview
    Descriptors = Iterable[Any]
    Selected = tuple[list[Any], list[Any], list[Any]]

Ask = Callable[[list[Json]], Any]
proxy_port: int | None = None
"""Port of the proxy, in a sandbox that has one instead."""


class HostSocket:
    """A TCP connection held by the host, with the methods of `socket.socket` that clients use."""

    ask: Ask

    def __init__(self, family: int = -1, type: int = -1, proto: int = -1, fileno: object = None) -> None:
        if type not in (-1, socket.SOCK_STREAM):
            msg = 'only TCP connections are possible from this sandbox'
            raise OSError(msg)
        self.family, self.type, self.proto = socket.AF_INET, socket.SOCK_STREAM, proto
        self._number: Json = None
        self._timeout: float | None = socket.getdefaulttimeout()
        self._peer: tuple[str, int] = ('', 0)
        self._io_refs = 0
        self._closed = False

    def connect(self, address: tuple[str, int]) -> None:
        """Connect."""
        self._peer = (str(address[0]), int(address[1]))
        self._number = self.ask(['open', *self._peer, self._timeout])

    def start_tls(self, name: str, verify: bool) -> None:
        """Start TLS on the connection."""
        self.ask(['tls', self._number, name, verify])

    def send(self, data: Buffer, flags: int = 0) -> int:
        """Send some bytes; returns how many were sent."""
        text = base64.b64encode(bytes(data)).decode('ascii')
        sent: int = self.ask(['send', self._number, text, self._timeout])
        return sent

    def sendall(self, data: Buffer, flags: int = 0) -> None:
        """Send all bytes."""
        view = memoryview(data).cast('B')
        while view:
            view = view[self.send(view[: 1 << 20]) :]

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Receive at most `size` bytes; none at the end."""
        return base64.b64decode(self.ask(['recv', self._number, size, self._timeout]))

    def recv_into(self, buffer: Buffer, size: int = 0, flags: int = 0) -> int:
        """Receive into a buffer."""
        view = memoryview(buffer).cast('B')
        data = self.recv(size or len(view))
        view[: len(data)] = data
        return len(data)

    def settimeout(self, seconds: float | None) -> None:
        """Set the timeout of operations."""
        self._timeout = seconds

    def gettimeout(self) -> float | None:
        """The timeout of operations."""
        return self._timeout

    def setblocking(self, flag: bool) -> None:
        """No timeout, or a timeout of zero."""
        self._timeout = None if flag else 0.0

    def setsockopt(self, *_: object) -> None:
        """Ignored: the host chooses the options."""

    def getpeername(self) -> tuple[str, int]:
        """The address it is connected to."""
        return self._peer

    def getsockname(self) -> tuple[str, int]:
        """Unknown inside."""
        return ('', 0)

    def fileno(self) -> int:
        """There is no file descriptor inside."""
        return -1

    def shutdown(self, how: int) -> None:
        """Ignored: `close` is enough."""

    def makefile(self, mode: str = 'r', buffering: int | None = None, **options: Any) -> io.IOBase:
        """A file object for the connection."""
        raw = socket.SocketIO(cast('Any', self), 'rw' if 'w' in mode and 'r' in mode else 'w' if 'w' in mode else 'r')
        self._io_refs += 1
        if buffering == 0:
            return raw
        buffered = io.BufferedReader(raw) if 'w' not in mode else io.BufferedWriter(raw)
        return buffered if 'b' in mode else io.TextIOWrapper(buffered, **options)

    def _decref_socketios(self) -> None:
        self._io_refs -= 1
        if self._closed:
            self.close()

    def close(self) -> None:
        """Close, once its file objects are closed too."""
        self._closed = True
        if self._io_refs <= 0 and self._number is not None:
            number, self._number = self._number, None
            self.ask(['close', number])

    def __enter__(self) -> HostSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class TLSContext:
    """The part of `ssl.SSLContext` that clients use. The host has the certificates."""

    def __init__(self, protocol: object = None) -> None:
        self.verify_mode = 2
        self.check_hostname = True

    def wrap_socket(self, sock: HostSocket, *, server_hostname: str | None = None, **_: object) -> HostSocket:
        """Start TLS on the socket."""
        sock.start_tls(server_hostname or '', bool(self.verify_mode))
        return sock

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Ignore all other settings: the host chooses certificates, ciphers and protocols."""
        if name.startswith('__'):
            raise AttributeError(name)
        return lambda *_, **__: None


def install(ask: Ask) -> None:
    """Replace the `socket` class and the `ssl` module by those of the host, unless there is a proxy."""
    if proxy_port is not None:
        tunnels.install(proxy_port)
        return
    HostSocket.ask = staticmethod(ask)
    module: Any = socket
    module.socket = module.SocketType = HostSocket
    module.getaddrinfo = _addresses
    sys.modules['ssl'] = _ssl_module()
    for name in ('http.client', 'urllib.request'):  # they import ssl at import time
        importlib.reload(importlib.import_module(name))


def _addresses(host: object, port: object, *_: object, **__: object) -> list[tuple[object, ...]]:
    """Returns the name itself: the host resolves it when it connects."""
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, '', (str(host or 'localhost'), int(str(port or 0))))]


def _ssl_module() -> types.ModuleType:
    shim: Any = types.ModuleType('ssl', 'The part of ssl that clients need; the host does TLS.')
    shim.SSLContext = TLSContext
    shim.create_default_context = shim._create_default_https_context = _verified
    shim._create_unverified_context = _unverified
    shim.SSLError = shim.SSLCertVerificationError = shim.CertificateError = type('SSLError', (OSError,), {})
    shim.SSLSocket = HostSocket
    shim.CERT_NONE, shim.CERT_OPTIONAL, shim.CERT_REQUIRED = 0, 1, 2
    shim.PROTOCOL_TLS = shim.PROTOCOL_TLS_CLIENT = 16
    shim.HAS_SNI = True
    shim.OPENSSL_VERSION = "the host's"
    return shim


def _verified(*_: object, **__: object) -> TLSContext:
    return TLSContext()


def _unverified(*_: object, **__: object) -> TLSContext:
    context = TLSContext()
    context.verify_mode, context.check_hostname = 0, False
    return context


def sleeping_select(sleep: Callable[[float], None]) -> Callable[..., Selected]:
    """A `select.select` that can sleep, the only thing to wait for inside."""
    real = select.select

    def wait(
        readers: Descriptors, writers: Descriptors, others: Descriptors, timeout: float | None = None, /
    ) -> Selected:
        if readers or writers or others or timeout is None:
            return real(readers, writers, others, timeout)
        sleep(timeout)
        return [], [], []

    return wait
