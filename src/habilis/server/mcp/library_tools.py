"""The tool library for MCP clients: search it, and call its tools by name."""

import asyncio
import inspect
from typing import Any

from habilis.core.errors import ToolCallError
from habilis.core.similar_names import similar_names
from habilis.forge.agent_library import AgentLibrary
from habilis.forge.library.library import Library
from habilis.server.mcp.calls import McpAnswer, McpCall, McpTool, answer_of_value
from habilis.tools.stubs import TypeNames
from habilis.tools.tool import AnyTool, Tool

MAX_LISTED = 20
"""A library with more tools is only searched: clients show all listed tools to their model."""


class LibraryTools:
    """The tools of a library. Each call runs in a sandbox of its own."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._tools = AgentLibrary(library)

    def names(self) -> list[str]:
        """The tools that there are now."""
        return self._library.names()

    def listed(self) -> list[McpTool]:
        """The tools to search and call, and the tools themselves if they are few; none for an empty library."""
        names = self.names()
        if not names:
            return []
        few = [self.find(name) for name in names] if len(names) <= MAX_LISTED else []
        return [*self._helpers(), *(found for found in few if found is not None)]

    def find(self, name: str) -> McpTool | None:
        """The tool of this name, if it can be used."""
        helper = next((one for one in self._helpers() if one.tool.name == name), None)
        if helper is not None:
            return helper
        made = self._tools.tool(name)
        return None if made is None else _mcp_tool(made)

    def _helpers(self) -> list[McpTool]:
        async def find_tools(query: str) -> str:
            """Search the library of tested tools. Returns their signatures; `call_tool` calls one by its name."""
            names = await asyncio.to_thread(self._tools.find, query, ())
            found = [self._tools.tool(name) for name in names]
            return '\n\n'.join(made.render(TypeNames()) for made in found if made is not None) or 'no tool fits'

        async def call_tool(name: str, arguments: dict[str, Any]) -> object:
            """Call a tool of the library with arguments by name; `find_tools` finds one."""
            made = self._tools.tool(name)
            if made is None:
                near = ', '.join(similar_names(name, self.names()))
                msg = f'there is no tool {name!r}; {f"similar: {near}" if near else "search with find_tools"}'
                raise ToolCallError(msg)
            return await made.run(made.validate_json(arguments))

        return [_mcp_tool(Tool[..., object](function)) for function in (find_tools, call_tool)]


def _mcp_tool(made: AnyTool) -> McpTool:
    async def answer(_call: McpCall, arguments: inspect.BoundArguments) -> McpAnswer:
        return answer_of_value(await made.run(arguments))

    return McpTool(tool=made, answer=answer, is_read_only=True)
