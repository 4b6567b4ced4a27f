"""MCP servers from what people have already: a command line, an address, or a file with `mcpServers`."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from habilis.core.errors import SettingsError
from habilis.core.narrowing import is_list, is_mapping
from habilis.tools.mcp.server import TIMEOUT, McpServer

PROJECT_FILE = '.mcp.json'
MAX_FILE = 1_000_000
_VARIABLE = re.compile(r'\$\{(\w+)(?::-([^}]*))?\}')


def servers_from(text: str) -> list[McpServer]:
    """The servers that a text names: a URL, the path of a JSON file, or a command line. Raises `SettingsError`."""
    text = text.strip()
    if text.startswith(('http://', 'https://')):
        return [McpServer(url=text, transport='sse' if text.rstrip('/').endswith('/sse') else 'http')]
    if text.endswith('.json') and (os.path.isfile(text) or not re.search(r'\s', text)):
        return read_servers(text)
    try:
        return [McpServer(text)]
    except ValueError as error:  # of shlex
        msg = f'{text!r} is not a command line: {error}'
        raise SettingsError(msg) from error


def read_servers(path: str | Path) -> list[McpServer]:
    """The servers of a file such as `.mcp.json`, under `mcpServers` or `servers`. Raises `SettingsError`."""
    try:
        with open(path, encoding='utf-8') as file:
            found: object = json.loads(file.read(MAX_FILE))
    except (OSError, ValueError) as error:
        msg = f'{path} cannot be read as JSON: {error}'
        raise SettingsError(msg) from error
    named = (found.get('mcpServers') or found.get('servers')) if is_mapping(found) else None
    if not is_mapping(named):
        msg = f'{path} has no servers: expected {{"mcpServers": {{"name": {{"command": "…", "args": […]}}}}}}'
        raise SettingsError(msg)
    used = {str(name): entry for name, entry in named.items() if not (is_mapping(entry) and entry.get('disabled'))}
    return [_server(f'{path}: {name}', name, entry) for name, entry in used.items()]


def _server(where: str, name: str, entry: object) -> McpServer:
    if not is_mapping(entry):
        msg = f'{where}: expected an object with command or url'
        raise SettingsError(msg)
    command, url = _text(where, entry.get('command')), _text(where, entry.get('url') or entry.get('serverUrl'))
    if bool(command) == bool(url):
        msg = f'{where}: give command or url'
        raise SettingsError(msg)
    only = entry.get('only')
    timeout = entry.get('timeout')
    seconds = float(timeout) if isinstance(timeout, int | float) and timeout > 0 else TIMEOUT
    return McpServer(
        [command, *_texts(where, entry.get('args'))] if command else None,
        url=url or None,
        name=name,
        env=_named(where, entry.get('env')),
        cwd=_text(where, entry.get('cwd')) or None,
        headers=_named(where, entry.get('headers')),
        transport='sse' if entry.get('type') == 'sse' else 'http',
        only=None if only is None else _texts(where, only),
        timeout=seconds,
    )


def _text(where: str, value: object) -> str:
    """A text, with `${NAME}` and `${NAME:-default}` replaced from the environment."""
    if value is None:
        return ''
    if not isinstance(value, str):
        msg = f'{where}: {json.dumps(value)[:50]} is not text'
        raise SettingsError(msg)

    def look_up(found: re.Match[str]) -> str:
        value = os.environ.get(found[1])
        if value is None and found.lastindex == 1:
            msg = f'{where}: the environment variable {found[1]} is not set'
            raise SettingsError(msg)
        return found[2] if value is None else value

    return _VARIABLE.sub(look_up, value)


def _texts(where: str, value: object) -> list[str]:
    if value is not None and not is_list(value):
        msg = f'{where}: {json.dumps(value)[:50]} is not a list of texts'
        raise SettingsError(msg)
    return [_text(where, one) for one in value or ()]


def _named(where: str, value: object) -> Mapping[str, str]:
    if value is not None and not is_mapping(value):
        msg = f'{where}: {json.dumps(value)[:50]} is not an object of texts'
        raise SettingsError(msg)
    return {str(name): _text(where, one) for name, one in (value or {}).items()}
