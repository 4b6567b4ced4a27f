"""Sockets of the interpreter in a sandbox whose network is a proxy: connections to other hosts go through it.

HTTP clients, and other programs, find the proxy in their environment. This is for everything else in Python: clients of
databases, mail and so on. The proxy resolves names, so `getaddrinfo` returns them as they are.
"""

import errno
import ipaddress
import os
import socket
from typing import Any

PROXY = '127.0.0.1'
_LOCAL = 'localhost,127.0.0.1,::1'
real_socket, _real_getaddrinfo = socket.socket, socket.getaddrinfo


def environment(port: int, *, local: bool) -> dict[str, str]:
    """Variables that name the proxy to programs. `local`: localhost is the sandbox, not the host."""
    found: dict[str, str] = {f'{kind}_proxy': f'http://{PROXY}:{port}' for kind in ('http', 'https', 'all')}
    if local:
        found['no_proxy'] = _LOCAL
    return {**found, **{name.upper(): value for name, value in found.items()}}


class TunnelledSocket(socket.socket):
    """A socket that connects through the proxy, unless its peer is in the sandbox."""

    proxy_port = 0
    local = True

    def connect(self, address: Any, /) -> None:
        """Connect, to another host by a request to the proxy."""
        if not self.is_tunnelled(address):
            super().connect(address)
            return
        is_waiting = self.gettimeout() == 0  # of an event loop, which calls this in a thread
        if is_waiting:
            self.settimeout(None)
        self._open_tunnel(address)
        if is_waiting:
            self.settimeout(0)

    def is_tunnelled(self, address: Any) -> bool:
        """Whether this peer is reached through the proxy."""
        is_stream = self.family in (socket.AF_INET, socket.AF_INET6) and self.type == socket.SOCK_STREAM
        return is_stream and not self._is_inside(*address[:2])

    def _open_tunnel(self, address: Any) -> None:
        proxy = PROXY if self.family == socket.AF_INET else f'::ffff:{PROXY}'
        super().connect((proxy, self.proxy_port))
        host, port = address[:2]
        name = f'[{host}]' if ':' in host else host
        self.sendall(f'CONNECT {name}:{port} HTTP/1.1\r\n\r\n'.encode())
        status, _, reason = self._read_head().partition(b'\r\n')[0].partition(b' ')[2].partition(b' ')
        if status != b'200':
            self.close()
            kind = errno.EACCES if status == b'403' else errno.ECONNREFUSED
            raise OSError(kind, reason.decode('latin-1') or 'the proxy of the sandbox closed the connection')

    def _is_inside(self, host: str, port: int) -> bool:
        return (host == PROXY and port == self.proxy_port) or (self.local and _is_loopback(host))

    def _read_head(self) -> bytes:
        """The reply of the proxy, and nothing after it."""
        head = b''
        while not head.endswith(b'\r\n\r\n') and (byte := self.recv(1)):
            head += byte
        return head


def install(port: int) -> None:
    """Use the proxy at this port of the sandbox."""
    TunnelledSocket.proxy_port = port
    TunnelledSocket.local = 'no_proxy' in os.environ
    module: Any = socket
    module.socket = module.SocketType = TunnelledSocket
    module.getaddrinfo = _addresses


def _addresses(host: Any, port: Any, *more: Any, **options: Any) -> list[Any]:
    if host == 'localhost':  # there is no file of hosts inside
        host = PROXY if TunnelledSocket.local else host
    if host is None or _is_address(host):
        return _real_getaddrinfo(host, port, *more, **options)
    name = host.decode() if isinstance(host, bytes) else str(host)
    number = port if isinstance(port, int) else socket.getservbyname(port) if not str(port).isdigit() else int(port)
    return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, '', (name, number))]


def _is_loopback(host: str) -> bool:
    return host == 'localhost' or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_address(host: Any) -> bool:
    try:
        ipaddress.ip_address(host if isinstance(host, str) else host.decode())
    except ValueError:
        return False
    return True
