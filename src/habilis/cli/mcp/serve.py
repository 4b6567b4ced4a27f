"""`habilis mcp serve`: an MCP server over stdin and stdout, or over HTTP."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, cast

import typer

from habilis.cli.interrupt import run_interruptible
from habilis.cli.options import Journal, Network, User, folder, words
from habilis.cli.sandbox.command import Backend, MemoryMb, Packages, SandboxOptionsGroup, Seconds
from habilis.cli.serve.listening import announced_address, listening_socket, start_failures
from habilis.cli.serve.sandboxes import KEY_VARIABLE, Idle, Keys
from habilis.cli.settings import read_settings, settings_with_options
from habilis.cli.streams import say

if TYPE_CHECKING:
    from habilis.core.settings import Settings
    from habilis.journal import Store
    from habilis.sandbox.options import SandboxSettings
    from habilis.server.mcp.apps import App
    from habilis.server.mcp.settings import McpSettings
    from habilis.server.mcp.stdio import Wire
    from habilis.server.settings import ServiceSettings

EPILOG = f"""\b
Over HTTP, any address but this machine's needs a key: --key, or the environment variable {KEY_VARIABLE}.

\b
Examples:
  habilis mcp serve                            in the configuration of a client: Python in a sandbox
  habilis mcp serve -w data                    code can read the folder data
  habilis mcp serve -w data --write --packages pandas,matplotlib
  habilis mcp serve my_program:agent           an Agent or a flow as a tool, too
  habilis mcp serve --http                     for several clients, at http://127.0.0.1:8701/mcp
"""

Apps = Annotated[
    list[str] | None,
    typer.Argument(metavar='MODULE:NAME', help='Agents, flows and workflows of your program.', show_default=False),
]
Shared = Annotated[
    str | None,
    typer.Option('--workspace', '-w', metavar='DIR', help='Folder the code may read (default: none).', callback=folder),
]
Write = Annotated[bool, typer.Option('--write', help='Let the code change the files of the workspace.')]
Library = Annotated[
    str | None,
    typer.Option(
        '--library', metavar='DIR', help='Tool library to offer (default: that of `habilis tools`).', callback=folder
    ),
]
Http = Annotated[bool, typer.Option('--http', help='Serve over HTTP instead of stdin and stdout.')]
Host = Annotated[str, typer.Option('--host', metavar='ADDRESS', help='With --http: address to listen on.')]
Port = Annotated[int, typer.Option('--port', metavar='PORT', help='With --http: port to listen on; 0 for any.')]


def serve(
    apps: Apps = None,
    workspace: Shared = None,
    write: Write = False,
    packages: Packages = None,
    network: Network = None,
    sandbox: Backend = 'auto',
    seconds: Seconds = None,
    memory_mb: MemoryMb = None,
    library: Library = None,
    journal: Journal = None,
    user: User = None,
    http: Http = False,
    host: Host = '127.0.0.1',
    port: Port = 8701,
    key: Keys = None,
    idle: Idle = 900.0,
) -> None:
    """Serve an MCP client: Python in a sandbox, your agents and flows, the tool library and the run history."""
    from habilis.server.mcp.stdio import Wire

    wire = None if http else Wire()  # first of all: programs print when they are imported
    choice = SandboxOptionsGroup(
        sandbox=sandbox,
        seconds=seconds,
        memory_mb=memory_mb,
        workspace=workspace,
        read_only=bool(workspace) and not write,
        packages=packages,
        network=network,
    ).choice()
    settings = read_settings(lambda: settings_with_options({'library': library, 'journal': journal, 'user': user}))
    with start_failures(TypeError):
        service = _service(host, port, key, choice.backend, idle)
        _serve(wire, [_load(name) for name in apps or ()], _offered(settings, choice.settings, service))


def _service(host: str, port: int, keys: Sequence[str] | None, backend: str, idle: float) -> 'ServiceSettings':
    from habilis.server.mcp.settings import REQUEST_BYTES, SESSIONS
    from habilis.server.settings import ServiceSettings

    return ServiceSettings(
        host=host,
        port=port,
        keys=tuple(words(keys) or words([os.environ.get(KEY_VARIABLE, '')])),
        backend=backend,
        idle_seconds=idle,
        sandboxes=SESSIONS,
        body_bytes=REQUEST_BYTES,
    )


def _offered(settings: 'Settings', sandbox: 'SandboxSettings', service: 'ServiceSettings') -> 'McpSettings':
    from habilis.forge.library.stored import stored_library
    from habilis.server.mcp.settings import McpSettings

    return McpSettings(
        sandbox=sandbox,
        library=stored_library(settings),
        open_journal=_journal(settings),
        user=settings.user or '',
        service=service,
    )


def _load(name: str) -> 'App':
    from habilis.cli.program import load_object

    return cast('App', load_object(name, option='MODULE:NAME', example='my_program:agent'))  # the server checks it


def _journal(settings: 'Settings') -> 'Callable[[], Store] | None':
    from habilis.journal.stores.urls import OFF

    def open_now() -> 'Store':
        from habilis.cli.runs.journal import open_journal  # imports the agent: after the first answer

        return open_journal(settings, create=False)

    return None if settings.journal == OFF else open_now


def _serve(wire: 'Wire | None', apps: 'Sequence[App]', settings: 'McpSettings') -> None:
    from habilis.server.mcp.serve import http_server, serve_http, serve_stdio

    if wire is not None:
        run_interruptible(lambda: serve_stdio(wire, apps, settings))
        return
    server, listening = http_server(apps, settings), listening_socket(settings.service)
    place = announced_address(settings.service.host, listening.getsockname()[1])
    say(f'Serving MCP on http://{place}/mcp. Stop with Ctrl-C.')
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve_http(server, listening, apps))
