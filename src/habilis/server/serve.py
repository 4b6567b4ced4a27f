"""Runs a service: the only module that imports uvicorn."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any, cast

from habilis.sandbox.remote.wire import MAX_FRAME
from habilis.server.connections import Connection, Connections
from habilis.server.settings import HttpSettings

try:
    import uvicorn
    from starlette.types import ASGIApp
    from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
    from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
except ImportError as error:
    msg = 'the server is missing: pip install "habilis[server]"'
    raise ImportError(msg) from error

_BAD_REQUEST = b'HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'


class _StoppableServer(uvicorn.Server):
    """Ends what would not end by itself, before and after it waits for the answers under way."""

    def __init__(self, config: uvicorn.Config, before_stop: Callable[[], None], connections: Connections) -> None:
        super().__init__(config)
        self._before_stop = before_stop
        self._connections = connections

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._before_stop()
        await super().shutdown(sockets)
        self._connections.close()


def make_server(app: ASGIApp, settings: HttpSettings, before_stop: Callable[[], None] = lambda: None) -> uvicorn.Server:
    """A server of an application that can be started with `serve` and stopped with `should_exit`."""
    connections = Connections(settings)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.certificate_key,
        http=_http_protocol(connections),
        ws=_websocket_protocol(connections),
        ws_max_size=MAX_FRAME,
        ws_per_message_deflate=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        h11_max_incomplete_event_size=64 << 10,
        timeout_graceful_shutdown=5,
        access_log=False,
        log_level='warning',
        server_header=False,
    )
    return _StoppableServer(config, before_stop, connections)


def listen(settings: HttpSettings) -> socket.socket:
    """A socket for the server. Raises `OSError` if the port is taken."""
    family = socket.AF_INET6 if ':' in settings.host else socket.AF_INET
    return socket.create_server((settings.host.strip('[]'), settings.port), family=family, backlog=512)


class _Watched(asyncio.Protocol):
    """What both protocols tell the object that watches their connection."""

    _watched: Connection

    def connection_lost(self, exc: Exception | None) -> None:
        self._watched.end()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        self._watched.hold_answers(True)
        super().pause_writing()

    def resume_writing(self) -> None:
        self._watched.hold_answers(False)
        super().resume_writing()


def _http_protocol(connections: Connections) -> type[H11Protocol]:
    """The HTTP protocol of uvicorn, with connections that are watched."""

    class Http(_Watched, H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._watched = Connection(connections, transport, _address(self.client), self._awaited)

        def handle_websocket_upgrade(self, event: Any) -> None:
            self._watched.end()
            super().handle_websocket_upgrade(event)

        def _awaited(self) -> object:
            cycle = cast('RequestResponseCycle | None', self.cycle)
            if cycle is None or cycle.response_complete:
                return 'a request', cycle
            return ('the body', cycle) if cycle.more_body else None

    return Http


def _websocket_protocol(connections: Connections) -> type[WebSocketsSansIOProtocol]:
    """The WebSocket protocol of uvicorn, with connections that are watched."""

    class WebSocket(_Watched, WebSocketsSansIOProtocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._watched = Connection(connections, transport, _address(self.client), self._awaited)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if not self.handshake_initiated and not self.transport.is_closing():
                # The head is complete, so it is not a handshake: it has a body, or one of its headers is malformed.
                self.transport.write(b''.join(self.conn.data_to_send()) or _BAD_REQUEST)
                self.transport.close()

        def _awaited(self) -> object:
            return None if self.handshake_complete else 'a handshake'

    return WebSocket


def _address(client: tuple[str, int] | None) -> str:
    return client[0] if client else ''
