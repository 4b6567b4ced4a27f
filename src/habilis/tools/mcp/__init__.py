"""Tools of MCP servers, as toolsets. The package `mcp` is imported when a server is first opened."""

from habilis.tools.mcp.config import read_servers, servers_from
from habilis.tools.mcp.server import McpServer

__all__ = ['McpServer', 'read_servers', 'servers_from']
