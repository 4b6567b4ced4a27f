"""The connections of the service: how many there are, and how long a client may take.

uvicorn closes a connection that is idle after an answer. One that has begun a request or does not read its answer would
stay for ever, and enough of them would leave no room for others.
"""

import asyncio
import ipaddress
import json
import logging
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable

from habilis.server.settings import HttpSettings

READ_BYTES = 64 << 10
"""What a client must read of a waiting answer in the time of a request."""

LOG_SECONDS = 60.0
"""A reason for closing connections is logged once in so many seconds, with a count."""

_NO_LINGER = struct.pack('ii', 1, 0)
logger = logging.getLogger('uvicorn.error')  # the log of the server, which is printed


def address_group(address: str) -> str:
    """The address under which a client is counted: all of an IPv6 /64 are one client."""
    try:
        parsed = ipaddress.ip_address(address.partition('%')[0])
    except ValueError:
        return 'unknown'
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, 64), strict=False))


class Connections:
    """All connections of a server."""

    def __init__(self, settings: HttpSettings) -> None:
        self.seconds = settings.body_seconds
        self._settings = settings
        self._live: set[Connection] = set()
        self._by_address: Counter[str] = Counter()
        self._logged: dict[str, float] = {}
        self._unlogged: Counter[str] = Counter()

    def add(self, connection: 'Connection') -> str | None:
        """Count a connection. Returns why there is no room for it; then it is not counted."""
        address = connection.address
        is_full = self._by_address[address] >= self._settings.per_caller
        if is_full and not self._settings.is_proxy(connection.client):
            return f'there are {self._settings.per_caller} connections from this address'
        if len(self._live) >= self._settings.connections and not self._close_one():
            return f'there are {self._settings.connections} connections'
        self._live.add(connection)
        self._by_address[address] += 1
        return None

    def remove(self, connection: 'Connection') -> None:
        """Forget a connection."""
        if connection in self._live:
            self._live.remove(connection)
            self._by_address[connection.address] -= 1
            if not self._by_address[connection.address]:
                del self._by_address[connection.address]

    def close(self) -> None:
        """Close what is left when the server has stopped: one that was accepted late, or whose client does not read."""
        for connection in tuple(self._live):
            connection.abort('the server has stopped')

    def _close_one(self) -> bool:
        """Close the connection that has waited for its request the longest, to make room for another."""
        waiting = [connection for connection in self._live if connection.is_waiting()]
        if waiting:
            longest = min(waiting, key=lambda connection: connection.since)
            longest.abort('others wanted to connect, and it was the one without a request for the longest time')
        return bool(waiting)

    def log(self, address: str, reason: str) -> None:
        """Log why a connection is closed, unless the same was logged a moment ago: floods must not fill a disk."""
        now = time.monotonic()
        if now - self._logged.get(reason, -LOG_SECONDS) < LOG_SECONDS:
            self._unlogged[reason] += 1
            return
        self._logged[reason] = now
        more = self._unlogged.pop(reason, 0)
        logger.warning('closed a connection from %s: %s%s', address, reason, f' ({more:,} more before)' if more else '')


class Connection:
    """Closes one connection if its client is too slow.

    `waits_for` returns what is to come from the client, as an object that is another one for each part of each request;
    or None while it is our turn.
    """

    def __init__(
        self, connections: Connections, transport: asyncio.Transport, client: str, waits_for: Callable[[], object]
    ) -> None:
        self.client = client
        self.address = address_group(client)
        self.since = time.monotonic()
        self._connections = connections
        self._transport = transport
        self._waits_for = waits_for
        self._awaited: object = waits_for()
        self._holds = False
        self._unread: tuple[int, float] | None = None
        self._timer: asyncio.TimerHandle | None = None
        refusal = connections.add(self)
        if refusal:
            connections.log(self.address, refusal)
            transport.write(_refusal(refusal))
            transport.close()
        self._wait()

    def is_waiting(self) -> bool:
        """Whether it waits for a request, or for the rest of one."""
        return self._waits_for() is not None

    def hold_answers(self, held: bool) -> None:
        """More is to be sent than the client has read, and nothing is added to it; or it is so no longer."""
        self._holds, self._unread = held, None

    def abort(self, reason: str) -> None:
        """Close it at once. The system drops what the client has not read, and does not wait for it either."""
        self._connections.log(self.address, reason)
        self._transport.get_extra_info('socket').setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self._transport.abort()
        self.end()

    def end(self) -> None:
        """It is closed, or another object watches it."""
        self._connections.remove(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self) -> None:
        pause = min(1.0, self._connections.seconds / 4)
        self._timer = asyncio.get_running_loop().call_later(pause, self._check)

    def _check(self) -> None:
        now, seconds = time.monotonic(), self._connections.seconds
        awaited = self._waits_for()
        if awaited != self._awaited:
            self._awaited, self.since = awaited, now
        if self._is_unread(now, seconds):
            self.abort(f'it read less than {READ_BYTES:,} bytes of an answer in {seconds:g} s')
        elif awaited is not None and now - self.since > seconds and not self._transport.is_closing():
            self._connections.log(self.address, f'its request did not arrive in {seconds:g} s')
            self._transport.close()  # after what is still to be sent
            self._wait()
        else:
            self._wait()

    def _is_unread(self, now: float, seconds: float) -> bool:
        """Whether the client has read almost nothing for too long."""
        left = self._transport.get_write_buffer_size() if self._holds or self._transport.is_closing() else 0
        if not left:
            self._unread = None
        elif self._unread is None or self._unread[0] - left >= READ_BYTES:
            self._unread = left, now
        return self._unread is not None and now - self._unread[1] > seconds


def _refusal(reason: str) -> bytes:
    """A problem as in RFC 9457; `error` is what the other services have."""
    detail = f'{reason}; close some, or try again later'
    problem = {'type': 'about:blank', 'title': 'TooManyConnections', 'status': 429, 'detail': detail, 'error': detail}
    body = json.dumps(problem).encode()
    kind = 'application/problem+json'
    head = f'HTTP/1.1 429 Too Many Requests\r\nContent-Length: {len(body)}\r\nContent-Type: {kind}\r\n'
    return f'{head}Retry-After: 5\r\nConnection: close\r\n\r\n'.encode() + body
