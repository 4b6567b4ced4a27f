"""Tools that the prompt does not describe, because there are too many: code finds them by a search, and calls them by
name. A library of tools is searched with them."""

import json
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Protocol

from habilis.core.errors import ToolCallError
from habilis.core.similar_names import similar_names
from habilis.tools.contract import ToolOptions
from habilis.tools.search_index import FoundTool, IndexedTool, SearchIndex, split_name
from habilis.tools.stubs import TypeNames
from habilis.tools.tool import AnyTool, Tool

SEARCH = 'search_tools'
DESCRIBE = 'describe_tool'

MAX_FOUND = 5
MAX_NAMED = 10
"""Tools that a search shows, and further ones that it only names."""

MAX_DESCRIPTION = 300
MAX_SHOWN = 1200
"""Characters of the description, and of all, that a search shows of one tool."""

MAX_LINES = 25
MAX_LINE = 50
"""Toolsets that the prompt names, and characters that it says about each: it stays small, however many there are."""

_CANDIDATES = 50


class SearchableTools(Protocol):
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
        library: SearchableTools | None = None,
    ) -> None:
        """A catalog of toolsets: their descriptions and tools, by name. `enabled` is asked again for each search."""
        self._enabled = enabled
        self._is_for_code = is_for_code
        self._library = library
        self.replace(toolsets)

    def replace(self, toolsets: Mapping[str, tuple[str, Sequence[AnyTool]]]) -> None:
        """Have these toolsets from now on."""
        self._toolsets = toolsets
        self._tools = {tool.name: tool for _, tools in toolsets.values() for tool in tools}
        self.__dict__.pop('_index', None)

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
        found = {
            name: (description, names)
            for name, (description, tools) in self._toolsets.items()
            if (names := [tool.name for tool in tools if tool.name in self._enabled])
        }
        words = _typical_words({name: names for name, (_, names) in found.items()})
        lines = [
            f'- {name} ({len(names):,}): {_line(description or ", ".join(words[name]), MAX_LINE)}'
            for name, (description, names) in found.items()
        ]
        if len(lines) > MAX_LINES:
            rest = [*found][MAX_LINES:]
            count = sum(len(found[name][1]) for name in rest)
            lines[MAX_LINES:] = [f'- others ({count:,}): {_line(", ".join(rest), MAX_LINES * MAX_LINE // 5)}']
        return lines

    def _search(self, query: str) -> str:
        own = self._index.search(query, limit=_CANDIDATES, threshold=0.0) if self._tools else []
        found = [one for one in own if one.name in self._enabled]
        found += [] if self._library is None else self._library.search(query)
        best = [*dict.fromkeys(one.name for one in sorted(found, key=lambda one: -one.score))]
        tools = [tool for name in best[: MAX_FOUND + MAX_NAMED] if (tool := self._find(name)) is not None]
        shown = [self._brief(tool) for tool in tools[:MAX_FOUND]]
        if len(tools) > MAX_FOUND:
            shown.append(f'# less likely: {", ".join(tool.name for tool in tools[MAX_FOUND:])}')
        return '\n\n'.join(shown) or 'no tool fits; try other words'

    def _describe(self, name: str) -> str:
        if (found := self._find(name)) is not None:
            return self.show(found)
        near = similar_names(name, self._tools, n=3, cutoff=0.7)
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


def _line(text: str, length: int) -> str:
    """The first line of a text, bounded."""
    line = ' '.join(text.strip().partition('\n')[0].split())
    return line if len(line) <= length else f'{line[: length - 1].rpartition(" ")[0]} …'


def _typical_words(names: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The words in the names of each toolset's tools, most frequent first, without those that most toolsets have."""
    counts = {group: Counter(word for name in of for word in split_name(name)) for group, of in names.items()}
    groups = Counter(word for words in counts.values() for word in words)
    common = {word for word, count in groups.items() if 2 * count > len(names) > 2}
    return {
        group: [word for word, _ in words.most_common() if word not in common and word != group.lower()]
        for group, words in counts.items()
    }
