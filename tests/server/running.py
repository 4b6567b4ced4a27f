"""A running service for tests, on a port of its own."""

import asyncio
import contextlib
import threading
from collections.abc import Generator

from habilis.server.app import make_app
from habilis.server.serve import listen, make_server
from habilis.server.settings import ServiceSettings


@contextlib.contextmanager
def running(settings: ServiceSettings | None = None) -> Generator[str]:
    """The address of a service, which stops in the end."""
    settings = settings or ServiceSettings(port=0)
    server = make_server(make_app(settings), settings)
    listening = listen(settings)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])), daemon=True)
    thread.start()
    try:
        yield f'http://127.0.0.1:{listening.getsockname()[1]}'
    finally:
        server.should_exit = True
        thread.join(20)
        listening.close()
