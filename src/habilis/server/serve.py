"""Runs the service: the only module that imports uvicorn."""

import asyncio
import socket
from typing import Any

from habilis.sandbox.remote.wire import MAX_FRAME
from habilis.server.settings import ServiceSettings

try:
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol

    from habilis.server.app import make_app
except ImportError as error:
    msg = 'the server is missing: pip install "habilis[server]"'
    raise ImportError(msg) from error

MAX_CONNECTIONS = 1000


def make_server(settings: ServiceSettings) -> uvicorn.Server:
    """A server that can be started with `serve` and stopped with `should_exit`."""
    config = uvicorn.Config(
        make_app(settings),
        host=settings.host,
        port=settings.port,
        http=_timed(settings.body_seconds),
        ws='websockets-sansio',
        ws_max_size=MAX_FRAME,
        ws_per_message_deflate=False,
        limit_concurrency=MAX_CONNECTIONS,
        h11_max_incomplete_event_size=64 << 10,
        timeout_graceful_shutdown=5,
        access_log=False,
        log_level='warning',
        server_header=False,
    )
    return uvicorn.Server(config)


def listen(settings: ServiceSettings) -> socket.socket:
    """A socket for the server. Raises `OSError` if the port is taken."""
    family = socket.AF_INET6 if ':' in settings.host else socket.AF_INET
    return socket.create_server((settings.host.strip('[]'), settings.port), family=family, backlog=512)


def _timed(seconds: float) -> type[H11Protocol]:
    """A protocol that closes a connection whose request does not arrive in time, which uvicorn waits for endlessly."""

    class Timed(H11Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            asyncio.get_running_loop().call_later(seconds, self._close_if_silent)

        def _close_if_silent(self) -> None:
            if self.scope is None and not self.transport.is_closing():  # type: ignore[truthy-bool]
                self.transport.close()

    return Timed
