"""`habilis mcp list`, `tools`, `call` and `doctor`."""

import inspect
import json
import os
import shlex
import time
from collections.abc import Awaitable, Callable, Sequence

import typer

from habilis.agent.hooks.sanitize import escape_controls
from habilis.cli.interrupt import run_interruptible
from habilis.cli.printing import print_json, print_table
from habilis.cli.run.report import print_answer
from habilis.cli.streams import say
from habilis.cli.terminal_user import TerminalUser
from habilis.cli.tools.arguments import parse_arguments
from habilis.core.codec import pack
from habilis.core.errors import HabilisError, SettingsError, ToolArgumentsError
from habilis.core.similar_names import similar_names
from habilis.tools import Toolbox
from habilis.tools.mcp.config import PROJECT_FILE, read_servers, servers_from
from habilis.tools.mcp.remote_tools import RemoteTools
from habilis.tools.mcp.server import McpServer


def list_servers(config: str | None, *, as_json: bool) -> int:
    """Print the servers of the file."""
    found = [{'name': server.name, 'address': server.address} for server in configured(config)]
    if as_json:
        print_json(found)
    elif found:
        print_table(('NAME', 'ADDRESS'), [(one['name'], one['address']) for one in found], flexible=('ADDRESS',))
    else:
        say(f'there is no {PROJECT_FILE} here; name a file with --config, or a server with --mcp of `habilis run`')
    return 0


def show_tools(server: str, config: str | None, *, as_json: bool) -> int:
    """Print the tools of a server."""

    async def show(_: McpServer, tools: RemoteTools) -> int:
        if as_json:
            used = [{'name': one.name, 'description': one.description, 'stub': one.stub} for one in tools.tools]
            print_json({'tools': used, 'refused': tools.refused})
            return 0
        print(escape_controls(Toolbox([tools]).stubs()))
        _say_refused(tools)
        return 0

    return _with(find_server(server, config), show)


def call_tool(server: str, tool: str, texts: Sequence[str], config: str | None, *, as_json: bool) -> int:
    """Call a tool and print its result."""

    async def call(_: McpServer, tools: RemoteTools) -> int:
        found = next((one for one in tools.tools if one.name == tool), None)
        if found is None:
            near = similar_names(tool, [one.name for one in tools.tools], n=1)
            msg = f'there is no tool {tool!r}' + (f'; did you mean {near[0]}?' if near else '')
            raise typer.BadParameter(msg, param_hint='TOOL')
        user = TerminalUser()
        box = Toolbox([tools], approve=user.approve if user.is_present else None)
        try:
            args, kwargs = parse_arguments(inspect.signature(found.function), texts)
            found.validate(args, kwargs)
        except (typer.BadParameter, ToolArgumentsError) as error:
            reason = error.message if isinstance(error, typer.BadParameter) else str(error)
            signature = f'{tool}{found.signature}'
            msg = reason if signature in reason else f'{reason}\n{signature}'
            raise typer.BadParameter(msg, param_hint='ARGUMENTS') from None
        result = await box.call(tool, *args, **kwargs)
        if as_json:
            print(json.dumps(pack(result)))
        else:
            print_answer(result)
        return 0

    return _with(find_server(server, config), call)


def check_servers(server: str | None, config: str | None, *, as_json: bool) -> int:
    """Start servers, and print what is wrong with them."""
    servers = [find_server(server, config)] if server is not None else configured(config)
    rows = [_check(one) for one in servers]
    if as_json:
        print_json(rows)
    else:
        for row in rows:
            print(f'{row["name"]}: {row["problem"] or row["offers"]}')
    if not rows:
        say(f'there is no {PROJECT_FILE} here; name a server')
    return 1 if any(row['problem'] for row in rows) else 0


def _check(server: McpServer) -> dict[str, object]:
    started, row = time.monotonic(), {'name': server.name, 'address': server.address, 'problem': '', 'offers': ''}

    async def look(server: McpServer, tools: RemoteTools) -> int:
        client = await server.connection.client()
        took = time.monotonic() - started
        row['offers'] = f'{len(tools.tools)} tools, protocol {client.protocol_version}, started in {took:.1f} s'
        row['problem'] = '; '.join(f'{name} cannot be used: {reason}' for name, reason in tools.refused.items())
        return 0

    try:
        _with(server, look)
    except HabilisError as error:
        row['problem'] = str(error)
    return dict(row)


def _with(server: McpServer, work: Callable[[McpServer, RemoteTools], Awaitable[int]]) -> int:
    async def run() -> int:
        try:
            tools = await server.opened()
            assert isinstance(tools, RemoteTools)
            return await work(server, tools)
        finally:
            await server.close()

    return run_interruptible(run)


def _say_refused(tools: RemoteTools) -> None:
    for name, reason in tools.refused.items():
        say(f'{name} cannot be used: {reason}')


def find_server(text: str, config: str | None) -> McpServer:
    """The server of this name in the file; else one by its address or command line."""
    known = {server.name: server for server in configured(config)}
    if text in known:
        return known[text]
    if len(text.split()) == 1 and not text.startswith('http') and (near := similar_names(text, known, n=1)):
        msg = f'there is no server {text!r}; did you mean {near[0]}?'
        raise SettingsError(msg)
    [first, *others] = servers_from(text)
    if others:
        msg = f'{text} has several servers: name one of them with --config {shlex.quote(text)}'
        raise SettingsError(msg)
    return first


def configured(config: str | None) -> list[McpServer]:
    """The servers of a file, by default that of this folder; none if there is none."""
    path = config or PROJECT_FILE
    return read_servers(path) if config or os.path.isfile(path) else []
