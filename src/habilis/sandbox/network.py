"""Network connections of a sandbox, made by the host: which are allowed, and those of an interpreter without sockets.

Such an interpreter sends a host name and a port; the host checks and resolves the name, connects, and does TLS with its
own certificates.
"""

import base64
import binascii
import fnmatch
import ipaddress
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import cast

from habilis.core.codec import Json
from habilis.core.errors import SandboxError

MAX_CONNECTIONS = 64
MAX_CHUNK = 1 << 20
CHECK_SECONDS = 0.1
"""How often a call that waits for the network checks whether its cell must end."""


CONNECT_SECONDS = 30.0
_ANY_HOST = re.compile(r'\*+(:.*)?')
_PORT = re.compile(r':[\d*]+$')


@dataclass(frozen=True)
class Grant:
    """The hosts that a sandbox may connect to, as patterns in lower case."""

    hosts: tuple[str, ...]

    def addresses(self, host: str, port: int) -> list[str]:
        """Check a host, and resolve it, once: connect to one of these addresses, not to the name. May block.

        Raises `PermissionError` if the host is not granted, or if it is in a private network and was not named there:
        whoever runs a granted domain could point it at a service of the machine.
        """
        if not 0 < port < 65536:
            raise OSError(f'{port} is not a valid port')
        if not matches_host(host, port, self.hosts):
            raise PermissionError(
                f'this sandbox may not connect to {host[:200]}:{port}; its network setting does not include this host '
                f'(network=[{host[:200]!r}] would)'
            )
        found = resolve(host, port)
        if allowed := [address for address in found if self._may_reach(host, address, port)]:
            return allowed
        names = list(dict.fromkeys([host[:200], str(found[0])]))
        raise PermissionError(
            f'this sandbox may not connect to {host[:200]}:{port}; it is {found[0]}, which is not a public address, '
            f'and its network setting does not name that (network={names} would)'
        )

    @property
    def names_loopback(self) -> bool:
        """Whether it names this machine: programs inside then mean it when they say `localhost`, not the sandbox."""
        hosts = [_PORT.sub('', pattern) for pattern in self._named]
        return any(fnmatch.fnmatchcase(name, host) for name in ('localhost', '127.0.0.1') for host in hosts)

    @property
    def _named(self) -> list[str]:
        return [pattern for pattern in self.hosts if not _ANY_HOST.fullmatch(pattern)]

    def _may_reach(self, host: str, address: str, port: int) -> bool:
        ip = ipaddress.ip_address(address)
        ip = getattr(ip, 'ipv4_mapped', None) or ip
        is_localhost = ip.is_loopback and host.lower().rstrip('.') == 'localhost'
        return (
            is_public(address)
            or matches_host(str(ip), port, self._named)
            or (is_localhost and matches_host(host, port, self._named))
        )


_GLOBAL_IPV6 = ipaddress.ip_network('2000::/3')
_IPV4_IN_IPV6 = (*map(ipaddress.ip_network, ('::ffff:0:0/96', '64:ff9b::/96')),)
"""IPv6 addresses that end with the IPv4 address that is meant: as sockets write it, and behind a NAT64."""

_PROTOCOL_ASSIGNMENTS = ipaddress.ip_network('192.0.0.0/24')


def is_public(address: str) -> bool:
    """Whether an IP address is one of the public internet. Older versions of Python take more for global."""
    ip = ipaddress.ip_address(address.partition('%')[0])
    if isinstance(ip, ipaddress.IPv4Address):
        return ip.is_global and not ip.is_multicast and ip not in _PROTOCOL_ASSIGNMENTS
    if any(ip in network for network in _IPV4_IN_IPV6):
        return is_public(str(ipaddress.IPv4Address(ip.packed[-4:])))
    if (inside := ip.sixtofour) is not None:
        return is_public(str(inside))
    return ip in _GLOBAL_IPV6 and ip.is_global


def matches_host(host: str, port: int, patterns: Iterable[str]) -> bool:
    """Whether a host, or `host:port`, is one of the patterns in lower case."""
    name = host.lower().rstrip('.')
    return any(fnmatch.fnmatchcase(text, pattern) for text in (name, f'{name}:{port}') for pattern in patterns)


def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host. May block; raises `OSError`."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except ValueError as error:  # a name that cannot be encoded
        raise OSError(f'{host[:200]!r} is not a valid host name') from error
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class Network:
    """The connections of one sandbox."""

    def __init__(self, grant: Grant) -> None:
        self.grant = grant
        self._open: dict[int, socket.socket] = {}
        self._next = 0

    def handle(self, request: list[Json], check: Callable[[], None]) -> Json:
        """Handle one request about a connection. Raises `OSError`; calls `check` while it waits."""
        match request:
            case ['open', str(host), int(port), float() | int() | None as seconds]:
                return self._connect(host, port, _seconds(seconds), check)
            case ['tls', int(number), str(name), bool(verify)]:
                self._wrap(number, name, verify)
                return None
            case ['send', int(number), str(data), float() | int() | None as seconds]:
                return self._send(number, _bytes(data), _seconds(seconds), check)
            case ['recv', int(number), int(size), float() | int() | None as seconds]:
                return self._receive(number, size, _seconds(seconds), check)
            case ['close', int(number)]:
                self._close(number)
                return None
            case _:
                raise OSError('malformed request')

    def copy(self) -> 'Network':
        """The network of a fork: the same permissions, no connections."""
        return Network(self.grant)

    def close(self) -> None:
        """Close all connections."""
        for number in list(self._open):
            self._close(number)

    def _connect(self, host: str, port: int, seconds: float, check: Callable[[], None]) -> int:
        if len(self._open) >= MAX_CONNECTIONS:
            raise OSError(f'{MAX_CONNECTIONS} connections are open already; close some')
        check()
        connection = _connect(self.grant.addresses(host, port), port, min(seconds, CONNECT_SECONDS))
        connection.settimeout(CHECK_SECONDS)
        self._next += 1
        self._open[self._next] = connection
        return self._next

    def _wrap(self, number: int, name: str, verify: bool) -> None:
        context = ssl.create_default_context()
        if not verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        connection = self._connection(number)
        connection.settimeout(30.0)
        self._open[number] = wrapped = context.wrap_socket(connection, server_hostname=name or None)
        wrapped.settimeout(CHECK_SECONDS)

    def _send(self, number: int, data: bytes, seconds: float, check: Callable[[], None]) -> int:
        connection = self._connection(number)
        return cast('int', _retry_until(lambda: connection.send(data[:MAX_CHUNK]), seconds, check))

    def _receive(self, number: int, size: int, seconds: float, check: Callable[[], None]) -> str:
        connection = self._connection(number)
        data = _retry_until(lambda: connection.recv(max(0, min(size, MAX_CHUNK))), seconds, check)
        return base64.b64encode(cast('bytes', data)).decode('ascii')

    def _connection(self, number: int) -> socket.socket:
        if number not in self._open:
            raise OSError('this connection is closed')
        return self._open[number]

    def _close(self, number: int) -> None:
        connection = self._open.pop(number, None)
        if connection is not None:
            connection.close()


def _is_host(value: object) -> bool:
    return isinstance(value, str) and bool(value) and '/' not in value


def make_network(granted: bool | Iterable[str] | None) -> Network | None:
    """The network for the setting `network=`: none, any public host, or host patterns (`*` matches any part)."""
    if granted is False or granted is None:
        return None
    if granted is True:
        return Network(Grant(('*',)))
    hosts = (granted,) if isinstance(granted, str) else tuple(granted)
    for host in hosts:
        if not _is_host(host):
            msg = (
                f'{host!r} is not a host; name it as in network=["api.example.com", "*.example.org", "localhost:8000"]'
            )
            raise SandboxError(msg)
    return Network(Grant(tuple(host.lower() for host in hosts)))


def _connect(addresses: list[str], port: int, seconds: float) -> socket.socket:
    for address in addresses[:-1]:
        try:
            return socket.create_connection((address, port), timeout=seconds)
        except OSError:  # the next one may work
            continue
    return socket.create_connection((addresses[-1], port), timeout=seconds)


def _retry_until(act: Callable[[], object], seconds: float, check: Callable[[], None]) -> object:
    """Retry an operation until it succeeds, the timeout is over, or `check` raises."""
    end = time.monotonic() + seconds
    while True:
        check()
        try:
            return act()
        except (TimeoutError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            if time.monotonic() >= end:
                msg = 'timed out'
                raise TimeoutError(msg) from None


def _seconds(asked: float | None) -> float:
    return 3600.0 if asked is None else max(0.0, min(float(asked), 3600.0))


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise OSError('malformed data') from None
