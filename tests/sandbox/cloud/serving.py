"""Runs the application of a cloud for tests, on a port of its own."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Generator

import uvicorn
from starlette.types import ASGIApp


@contextlib.contextmanager
def serving(app: ASGIApp) -> Generator[str]:
    """The address of the application, which stops in the end."""
    config = uvicorn.Config(
        app, log_level='critical', timeout_graceful_shutdown=1, timeout_keep_alive=600, ws='websockets-sansio'
    )
    server = uvicorn.Server(config)
    with socket.create_server(('127.0.0.1', 0)) as listening:
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])), daemon=True)
        thread.start()
        yield f'http://127.0.0.1:{listening.getsockname()[1]}'
        server.should_exit = True
        thread.join(20)
