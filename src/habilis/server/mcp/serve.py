"""Runs the server, over stdin and stdout or over HTTP. The SDK is imported when it starts."""

import asyncio
import contextlib
import signal
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from habilis.server.mcp.settings import McpSettings
from habilis.server.mcp.stdio import Wire

if TYPE_CHECKING:
    from socket import socket

    from uvicorn import Server

    from habilis.server.mcp.apps import App


def serve_mcp(*apps: 'App', settings: McpSettings | None = None) -> None:
    """Serve agents and flows to the MCP client that has started this program, over stdin and stdout, until it ends.

    Args:
        apps: agents, flows and workflows; each becomes a tool of its name, beside `python`.
        settings: what else is offered: the sandbox of `python`, a tool library, a journal.
    """
    wire = Wire()
    with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
        asyncio.run(serve_stdio(wire, apps, settings or McpSettings()))


async def serve_stdio(wire: Wire, apps: 'Sequence[App]', settings: McpSettings) -> None:
    """Serve one client. The end of stdin, Ctrl-C and SIGTERM close its sandboxes, and stop its runs."""
    from habilis.server.mcp.protocol import McpService

    task = asyncio.current_task()
    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # Windows, or another thread
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: task and task.cancel())
    try:
        await wire.serve(McpService(settings, apps), settings.service.body_bytes)
    finally:
        await _close(apps)


def http_server(apps: 'Sequence[App]', settings: McpSettings) -> 'Server':
    """A server for many clients.

    Without keys everybody on this machine can connect, so that the run history is not offered.
    """
    from habilis.server.mcp.http import make_mcp_app
    from habilis.server.serve import make_server

    if not settings.service.keys:
        settings = replace(settings, open_journal=None)
    return make_server(make_mcp_app(settings, apps), settings.service)


async def serve_http(server: 'Server', listening: 'socket', apps: 'Sequence[App]') -> None:
    """Serve until Ctrl-C or SIGTERM."""
    try:
        await server.serve([listening])
    finally:
        await _close(apps)


async def _close(apps: 'Sequence[App]') -> None:
    for app in apps:
        from habilis.agent.agent import Agent  # imported by the program whose agents these are

        if isinstance(app, Agent):
            await app.close()
