"""`habilis mcp`: all subcommands."""

from habilis.cli.mcp.serve import EPILOG, serve
from habilis.cli.options import command_group

app = command_group('Serve Python, agents, flows and tools to MCP clients.')
app.command(epilog=EPILOG)(serve)


@app.callback()
def mcp() -> None:
    """Serve Python, agents, flows and tools to MCP clients."""
