"""Subcommands of `habilis mcp` and their options. The other modules do the work.

Those modules are imported when a subcommand runs, so that `--help` is fast.
"""

from typing import Annotated

import typer

from habilis.cli.mcp.serve import EPILOG as SERVE_EPILOG
from habilis.cli.mcp.serve import serve
from habilis.cli.options import AsJson, command_group, not_empty

EPILOG = """\b
SERVER is a name in .mcp.json of this folder (or --config FILE), a command line in quotes, or a URL.

\b
Examples:
  habilis mcp list
  habilis mcp tools 'uvx mcp-server-time'
  habilis mcp call 'uvx mcp-server-time' get_current_time Europe/Rome
  habilis mcp doctor
  habilis run "Which of my tickets are late?" --mcp https://tickets.example.com/mcp

\b
Exit codes: 0 success, 1 error (or a server has problems), 2 usage error, 130 Ctrl-C.
"""

app = command_group('Serve to MCP clients; list, try and check MCP servers for the code.', EPILOG)
app.command(epilog=SERVE_EPILOG)(serve)

Server = Annotated[
    str, typer.Argument(metavar='SERVER', help='Name, command line or URL.', show_default=False, callback=not_empty)
]
Config = Annotated[
    str | None, typer.Option('--config', metavar='FILE', help='JSON file with servers (default: .mcp.json).')
]


@app.command('list')
def list_(as_json: AsJson = False, config: Config = None) -> None:
    """List the servers of .mcp.json. Starts none."""
    from habilis.cli.mcp.inspection import list_servers

    raise typer.Exit(list_servers(config, as_json=as_json))


@app.command()
def tools(server: Server, as_json: AsJson = False, config: Config = None) -> None:
    """Show the tools of a server as the code sees them, and those that cannot be used."""
    from habilis.cli.mcp.inspection import show_tools

    raise typer.Exit(show_tools(server, config, as_json=as_json))


@app.command(context_settings={'ignore_unknown_options': True})
def call(
    server: Server,
    tool: Annotated[str, typer.Argument(metavar='TOOL', help='Name of the tool.', show_default=False)],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar='ARG|NAME=VALUE', help='Arguments, as JSON or plain text.', show_default=False),
    ] = None,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Call a tool of a server, and print its result."""
    from habilis.cli.mcp.inspection import call_tool

    raise typer.Exit(call_tool(server, tool, arguments or [], config, as_json=as_json))


@app.command()
def doctor(
    server: Annotated[
        str | None, typer.Argument(metavar='SERVER', help='Default: all of .mcp.json.', show_default=False)
    ] = None,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Start servers and check what they offer. The exit code is 1 if one has a problem."""
    from habilis.cli.mcp.inspection import check_servers

    raise typer.Exit(check_servers(server, config, as_json=as_json))
