"""An MCP server on standard input and output: `add`, and as many invented tools as its argument says."""

import sys

from mcp.server import MCPServer

from benchmarks.mcp.sample_tools import toolsets


def add(left: int, right: int) -> int:
    """The sum of two numbers."""
    return left + right


def main(count: int) -> None:
    """Serve until the input ends."""
    server = MCPServer('bench')
    server.add_tool(add)
    for toolset in toolsets(count):
        for tool in toolset.tools:
            server.add_tool(tool.function, name=tool.name, description=tool.description)
    server.run()


if __name__ == '__main__':
    main(int(sys.argv[1]))
