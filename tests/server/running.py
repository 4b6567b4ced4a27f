"""A running service for tests, on a port of its own."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Generator

import uvicorn

from habilis.server.app import make_app
from habilis.server.serve import listen, make_server
from habilis.server.settings import ServiceSettings


@contextlib.contextmanager
def running(settings: ServiceSettings | None = None) -> Generator[str]:
    """The address of a service, which stops in the end."""
    settings = settings or ServiceSettings(port=0)
    with serving(make_server(make_app(settings), settings), listen(settings)) as address:
        yield address


@contextlib.contextmanager
def serving(server: uvicorn.Server, listening: socket.socket) -> Generator[str]:
    """The address of a server, which stops in the end."""
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])), daemon=True)
    thread.start()
    try:
        yield f'http://127.0.0.1:{listening.getsockname()[1]}'
    finally:
        server.should_exit = True
        thread.join(600)  # what it has not closed by then would be found by another test
        assert not thread.is_alive(), 'the server does not stop'
        listening.close()
