"""`habilis serve sandboxes`."""

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING, Annotated

import typer

from habilis.cli.serve.listening import announced_address, listening_socket, start_failures
from habilis.cli.streams import say

if TYPE_CHECKING:
    from socket import socket

    from uvicorn import Server

    from habilis.server.settings import ServiceSettings

KEY_VARIABLE = 'HABILIS_SERVER_KEY'

EPILOG = """\b
Examples:
  habilis serve sandboxes                        for programs of this machine
  HABILIS_SERVER_KEY=$(openssl rand -hex 32) habilis serve sandboxes --host 0.0.0.0
  curl -X POST http://127.0.0.1:8700/v1/sandboxes

\b
From Python:
  await Sandbox.create('remote', url='http://127.0.0.1:8700', key='…')
"""


Keys = Annotated[
    list[str] | None,
    typer.Option(
        '--key',
        metavar='KEY',
        help=f'Key of a caller. Can be repeated. Other users can see it here: prefer {KEY_VARIABLE}.',
    ),
]
PerAddress = Annotated[
    int, typer.Option('--per-address', metavar='N', min=1, help='Connections of one address, and requests of one key.')
]
TrustedProxies = Annotated[
    list[str] | None,
    typer.Option(
        '--trusted-proxy',
        metavar='ADDRESS',
        help='Address or network of a proxy whose X-Forwarded-For is believed. Can be repeated.',
    ),
]
Idle = Annotated[
    float, typer.Option('--idle', metavar='S', min=1, help='Seconds after which an unused sandbox is closed.')
]


def sandboxes(
    host: Annotated[str, typer.Option('--host', metavar='ADDRESS', help='Address to listen on.')] = '127.0.0.1',
    port: Annotated[int, typer.Option('--port', metavar='PORT', help='Port to listen on; 0 for any.')] = 8700,
    key: Keys = None,
    backend: Annotated[str, typer.Option('--backend', metavar='NAME', help='Sandbox backend to run.')] = 'wasm',
    image: Annotated[str | None, typer.Option('--image', metavar='IMAGE', help='Image for --backend docker.')] = None,
    e2b: Annotated[bool, typer.Option('--e2b', help="Serve E2B's SDK, too. Its sandboxes have a shell.")] = False,
    per_key: Annotated[int, typer.Option('--per-key', metavar='N', min=1, help='Sandboxes of one key.')] = 100,
    per_address: PerAddress = 250,
    trusted_proxy: TrustedProxies = None,
    idle: Idle = 900.0,
) -> None:
    """Serve sandboxes over HTTP: create, run cells, files, snapshots; and the backend `remote`."""
    keys = tuple(key or os.environ.get(KEY_VARIABLE, '').split(','))
    with start_failures(TypeError):
        from habilis.server.settings import ServiceSettings

        settings = ServiceSettings(
            host=host,
            port=port,
            keys=tuple(name.strip() for name in keys if name.strip()),
            backend=backend,
            backend_settings={'image': image} if image else {},
            e2b=e2b,
            sandboxes_per_key=per_key,
            per_caller=per_address,
            trusted_proxies=tuple(trusted_proxy or ()),
            idle_seconds=idle,
        )
        server, listening = _listen(settings)
    _announce(settings, announced_address(settings.host, listening.getsockname()[1]))
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(server.serve([listening]))


def _listen(settings: 'ServiceSettings') -> 'tuple[Server, socket]':
    """The server, and the socket it is to serve. The backends it needs are there."""
    from habilis.sandbox import backends
    from habilis.server.serve import make_server  # says what is missing

    backend = backends.backend(settings.backend, **settings.backend_settings)
    if settings.e2b and not getattr(backend, 'has_processes', False):
        backends.backend('process')
    from habilis.server.app import make_app

    return make_server(make_app(settings), settings), listening_socket(settings)


def _announce(settings: 'ServiceSettings', place: str) -> None:
    say(f'Serving {settings.backend} sandboxes on http://{place} (API: http://{place}/docs). Stop with Ctrl-C.')
    if settings.e2b:
        say(f"For E2B's SDK: E2B_API_URL=http://{place} E2B_SANDBOX_URL=http://{place} E2B_API_KEY=KEY")
