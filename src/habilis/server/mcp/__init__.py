"""Habilis for MCP clients: the tool `python`, agents, flows, the tool library and the run history."""

from habilis.server.mcp.serve import serve_mcp
from habilis.server.mcp.settings import McpSettings

__all__ = ['McpSettings', 'serve_mcp']
