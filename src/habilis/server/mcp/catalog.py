"""All tools that are offered: `python`, the agents and flows of the user's program, and the tool library."""

from collections.abc import Sequence

from habilis.core.errors import SettingsError
from habilis.server.mcp.apps import App, app_tool
from habilis.server.mcp.calls import McpTool
from habilis.server.mcp.library_tools import LibraryTools
from habilis.server.mcp.python_tool import NAME, PythonTool
from habilis.server.mcp.settings import McpSettings
from habilis.server.registry import SandboxRegistry


class McpCatalog:
    """The tools by name. A tool of the library does not replace another one."""

    def __init__(self, settings: McpSettings, registry: SandboxRegistry, apps: Sequence[App]) -> None:
        self._python = PythonTool(settings, registry)
        self._library = None if settings.library is None else LibraryTools(settings.library)
        self._apps: dict[str, McpTool] = {}
        for made in map(app_tool, apps):
            if made.tool.name in {NAME, *self._apps}:
                msg = f'there are two tools {made.tool.name!r}: give the agent or flow another name'
                raise SettingsError(msg)
            self._apps[made.tool.name] = made

    def listed(self, *, takes_session: bool) -> list[McpTool]:
        """The tools that clients show to their models."""
        own = {NAME: self._python.tool(takes_session=takes_session), **self._apps}
        library = [] if self._library is None else self._library.listed()
        return [*own.values(), *(one for one in library if one.tool.name not in own)]

    def find(self, name: str, *, takes_session: bool) -> McpTool | None:
        """The tool of this name, listed or not."""
        if name == NAME:
            return self._python.tool(takes_session=takes_session)
        return self._apps.get(name) or (None if self._library is None else self._library.find(name))

    def names(self) -> list[str]:
        """The names of the tools that come and go: those of the library."""
        return [] if self._library is None else self._library.names()
