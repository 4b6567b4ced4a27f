"""What MCP servers said of the tools that were used before: kept in the data folder, to notice when it changes."""

import hashlib
from typing import Literal

from habilis.core.data_files import read_data, write_data
from habilis.core.narrowing import is_mapping

FILE = 'mcp_tools.json'
State = Literal['new', 'same', 'changed']


class KnownTools:
    """The tools of one server that were used before, by the fingerprint of what the server said of them."""

    def __init__(self, server: str) -> None:
        self._server = hashlib.sha256(server.encode()).hexdigest()[:16]  # a command line may have a key in it

    def states(self, tools: dict[str, str]) -> dict[str, State]:
        """Whether each tool was used before, and is still described in the same way."""
        known = self._known()
        return {
            name: 'new' if name not in known else 'same' if known[name] == said else 'changed'
            for name, said in tools.items()
        }

    def remember(self, tool: str, said: str) -> None:
        """The tool is used, as it is described now."""
        write_data(FILE, {**read_data(FILE), self._server: {**self._known(), tool: said}})

    def _known(self) -> dict[str, object]:
        found = read_data(FILE).get(self._server)
        return {str(name): said for name, said in found.items()} if is_mapping(found) else {}
