"""Tools of `raw_server.py`."""

import json
import sys
from pathlib import Path
from typing import Any

from habilis.tools import McpServer

PROGRAM = Path(__file__).with_name('raw_server.py')
ANY: dict[str, Any] = {'type': 'object'}


def tool(name: str = 'echo', does: str = 'echo', schema: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """One tool for the server, and what a call of it does."""
    return {'tool': {'name': name, 'inputSchema': schema or ANY, **more}, 'does': does}


def write_tools(folder: Path, *tools: dict[str, Any], name: str = 'raw') -> Path:
    """The file of the tools."""
    path = folder / f'{name}.json'
    path.write_text(json.dumps(tools))
    return path


def command(path: Path) -> list[str]:
    """What starts the server."""
    return [sys.executable, '-S', str(PROGRAM), str(path)]


def raw_server(folder: Path, *tools: dict[str, Any], name: str = 'raw', **options: Any) -> McpServer:
    """A server with these tools."""
    return McpServer(command(write_tools(folder, *tools, name=name)), name=name, **options)


def lines(folder: Path, what: str, name: str = 'raw') -> list[str]:
    """The `calls` or `starts` of the server."""
    path = folder / f'{name}.json.{what}'
    return path.read_text().splitlines() if path.exists() else []
