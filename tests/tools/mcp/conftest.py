"""Servers that are closed at the end of a test, and a data folder of its own."""

from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

from habilis.tools import McpServer, Toolbox
from tests.tools.mcp.raw import raw_server

Serve = Callable[..., Any]


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv('HABILIS_DATA', str(tmp_path / 'data'))
    return tmp_path / 'data'


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncGenerator[Serve]:
    """A toolbox with the tools of a raw server, or of another one."""
    servers: list[McpServer] = []

    async def open_box(
        *tools: Any, server: McpServer | None = None, box: dict[str, Any] | None = None, **options: Any
    ) -> Toolbox:
        servers.append(server or raw_server(tmp_path, *tools, **options))
        return Toolbox([await servers[-1].opened()], **(box or {}))

    yield open_box
    for server in servers:
        await server.close()
