"""Tools that the prompt does not describe, because there are too many: code finds them by a search, and calls them by
name. A library of tools is searched with them."""

import json
from collections.abc import Callable, Container, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Protocol

from habilis.core.errors import ToolCallError
from habilis.core.similar_names import similar_names
from habilis.tools.contract import ToolOptions
from habilis.tools.search_index import FoundTool, IndexedTool, SearchIndex
from habilis.tools.stubs import TypeNames
from habilis.tools.tool import AnyTool, Tool

SEARCH = 'search_tools'
DESCRIBE = 'describe_tool'

MAX_FOUND = 5
MAX_DESCRIPTION = 300
MAX_SHOWN = 1200
"""Characters of the description, and of all, that a search shows of one tool."""

MAX_LINES = 30
MAX_LINE = 60
"""Toolsets that the prompt names, and characters that it says about each: it stays small, however many there are."""

_CANDIDATES = 50
_NAMES_IN_LINE = 3


class ToolSource(Protocol):
    """More tools to search: a library."""

    def search(self, query: str) -> Sequence[FoundTool]:
        """The tools that fit a query, best first."""
        ...

    def tool(self, name: str) -> AnyTool | None:
        """The tool of that name; None if there is none that can be used."""
        ...


class Catalog:
    """The tools of a run that its prompt does not describe."""

    def __init__(
        self,
        toolsets: Mapping[str, tuple[str, Sequence[AnyTool]]],
        enabled: Container[str],
        *,
        is_for_code: Callable[[AnyTool], bool],
        library: ToolSource | None = None,
    ) -> None:
        """A catalog of toolsets: their descriptions and tools, by name. `enabled` is asked again for each search."""
        self._toolsets = toolsets
        self._enabled = enabled
        self._is_for_code = is_for_code
        self._library = library
        self._tools = {tool.name: tool for _, tools in toolsets.values() for tool in tools}

    def helpers(self, options: ToolOptions) -> list[AnyTool]:
        """The tools that search and describe the others. A library alone needs no descriptions: a search shows all."""

        def search_tools(query: str) -> str:
            """Search for tools by what they do. Returns their signatures; call one by its name in the next cell."""
            return self._search(query)

        def describe_tool(name: str) -> str:
            """All about one tool: its types and its whole description."""
            return self._describe(name)

        made = [search_tools, describe_tool] if self._tools else [search_tools]
        return [Tool[..., object](function, options=options) for function in made]

    def lines(self) -> list[str]:
        """The toolsets with the number of their tools, a line each."""
        lines: list[str] = []
        more = 0
        for name, (description, tools) in self._toolsets.items():
            names = [tool.name for tool in tools if tool.name in self._enabled]
            if names and len(lines) < MAX_LINES:
                lines.append(f'- {name} ({len(names):,}): {shorten_line(description) or _some(names)}')
            else:
                more += len(names)
        return [*lines, f'- other toolsets ({more:,})'] if more else lines

    def _search(self, query: str) -> str:
        own = self._index.search(query, limit=_CANDIDATES, threshold=0.0) if self._tools else []
        found = [one for one in own if one.name in self._enabled]
        found += [] if self._library is None else self._library.search(query)
        best = {one.name: None for one in sorted(found, key=lambda one: -one.score)}
        tools = [tool for name in best if (tool := self._find(name)) is not None][:MAX_FOUND]
        return '\n\n'.join(self._brief(tool) for tool in tools) or 'no tool fits; try other words'

    def _describe(self, name: str) -> str:
        if (found := self._find(name)) is not None:
            return self.show(found)
        near = similar_names(name, self._tools, n=3, cutoff=0.5)
        msg = f'there is no tool called {name!r}; ' + (
            f'did you mean {" or ".join(near)}?' if near else 'search for it'
        )
        raise ToolCallError(msg)

    def _find(self, name: str) -> AnyTool | None:
        if name in self._tools:
            return self._tools[name] if name in self._enabled else None
        return None if self._library is None else self._library.tool(name)

    def show(self, tool: AnyTool) -> str:
        """A tool as code calls it, or as the model does."""
        if self._is_for_code(tool):
            return tool.stub
        return f'{tool.name}: {tool.description}\n{json.dumps(tool.parameters)}'

    def _brief(self, tool: AnyTool) -> str:
        """The same, without what is too long for a list."""
        short = copy(tool)
        short.description = tool.description.partition('\n\n')[0][:MAX_DESCRIPTION]
        text = self.show(short)
        if len(text) <= MAX_SHOWN:
            return text
        without_types = short.render(TypeNames()) if self._is_for_code(tool) else text
        return f'{without_types[:MAX_SHOWN]}\n# more: {DESCRIBE}({tool.name!r})'

    @cached_property
    def _index(self) -> SearchIndex:
        index = SearchIndex(None)
        index.replace_all(
            IndexedTool(
                name=tool.name,
                version=1,
                summary=tool.description.partition('\n')[0],
                signature='',
                text=f'{name} {tool.description} {tool.signature}',
            )
            for name, (_, tools) in self._toolsets.items()
            for tool in tools
        )
        return index


def shorten_line(text: str) -> str:
    """The first line of a text, bounded."""
    line = ' '.join(text.strip().partition('\n')[0].split())
    return line if len(line) <= MAX_LINE else f'{line[: MAX_LINE - 1]}…'


def _some(names: Sequence[str]) -> str:
    """Names from all over a toolset, in its order."""
    step = max(1, len(names) // _NAMES_IN_LINE)
    shown = names[::step][:_NAMES_IN_LINE]
    return shorten_line(', '.join(shown) + (', …' if len(shown) < len(names) else ''))
