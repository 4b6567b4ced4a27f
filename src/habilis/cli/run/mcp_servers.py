"""The MCP servers that a command names, and those of a project, which are used once the user has agreed."""

import hashlib
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from habilis.cli.run.request import CommandRequest
from habilis.cli.streams import say
from habilis.core.data_files import read_data, write_data
from habilis.tools.mcp.config import PROJECT_FILE, read_servers, servers_from
from habilis.tools.mcp.server import McpServer
from habilis.tools.toolsets.user import AskPerson

AGREED = 'mcp_files.json'


def servers_of(request: CommandRequest, ask: AskPerson | None) -> list[McpServer]:
    """The servers that a request names. Their questions go to the user, and the workspace is where they work."""
    roots = [request.workspace] if request.workspace is not None else []
    return [server.with_person(ask, roots) for text in request.mcp for server in servers_from(text)]


def project_file(request: CommandRequest) -> Path | None:
    """The file with servers in the workspace, unless it is named already."""
    if request.workspace is None:
        return None
    try:
        path = Path(request.workspace).resolve() / PROJECT_FILE
        return path if path.is_file() and str(path) not in request.mcp else None
    except (OSError, RuntimeError):  # the sandbox says what is wrong with the folder
        return None


def is_agreed(path: Path) -> bool | None:
    """Whether the user wants this file, as it is now, to start programs; None if they were not asked."""
    known = read_data(AGREED).get(str(path))
    return None if known is None or known not in (_digest(path), f'no {_digest(path)}') else known == _digest(path)


def remember_agreement(path: Path, agreed: bool) -> None:
    """Remember the answer, until the file changes."""
    write_data(AGREED, {**read_data(AGREED), str(path): _digest(path) if agreed else f'no {_digest(path)}'})


def agreement_question(path: Path) -> str:
    """What the file would start."""
    lines = [f'  {server.name}: {server.address}' for server in read_servers(path)]
    return '\n'.join([f'{path} starts or reaches these MCP servers, outside of the sandbox:', *lines, 'Use them?'])


def with_project_servers(request: CommandRequest, confirm: Callable[[str], bool] | None) -> CommandRequest:
    """The request with the servers of the workspace, if the user agrees or has agreed."""
    path = project_file(request)
    if path is None or request.spec.is_resumption:
        return request
    agreed = is_agreed(path)
    if agreed is None and confirm is not None:
        agreed = confirm(agreement_question(path))
        remember_agreement(path, agreed)
    if agreed is None:
        say(f'{path} is not used: it starts programs. Use it with --mcp {shlex.quote(str(path))}')
    return replace(request, mcp=(*request.mcp, str(path))) if agreed else request


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
