"""`Toolset`: a group of tools."""

import copy
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from habilis.core.errors import ToolDefinitionError
from habilis.tools.tool import AnyTool, MakesTool, as_tool


class Toolset:
    """Tools that are enabled and disabled together."""

    def __init__(
        self,
        name: str,
        tools: 'Iterable[AnyTool | MakesTool | Callable[..., object]]',
        enabled: bool = True,
        *,
        for_subagents: bool = True,
        description: str = '',
    ) -> None:
        self.name = name
        self.description = description
        """What its tools are for, in one line: the prompt has it where it does not have the tools."""

        self.tools: tuple[AnyTool, ...] = tuple(as_tool(tool) for tool in tools)
        self.enabled = enabled
        """Whether its tools are enabled at the start. A toolbox can change that later."""

        self.for_subagents = for_subagents
        """Whether subagents of the run get its tools too, not only the agent that talks with a person."""

        self.needs_workspace = False
        """Whether its tools work on the workspace of the run."""

        self.needs_processes = False
        """Whether its tools start processes in the sandbox of the run."""

        self.folder: Path | None = None
        """The folder that its tools work on; None for the workspace of the run."""

        self.asks_to_change: tuple[str, ...] = ()
        """The tools that ask a person before they change files. Then code cannot change these files."""

        unique_names(self.tools)

    def reading(self) -> 'Toolset':
        """A copy with the tools that change nothing (`read_only=True`)."""
        made = copy.copy(self)
        made.tools = tuple(tool for tool in self.tools if tool.options.read_only)
        made.asks_to_change = ()
        return made

    async def opened(self, taken: Collection[str] = ()) -> 'Toolset':
        """The toolset for a run, ready for calls. One whose tools are elsewhere gets them; none has a `taken` name."""
        return self

    def newest(self) -> 'Toolset':
        """The toolset of now, if its tools may change during a run."""
        return self

    async def close(self) -> None:
        """Free what `opened` has opened. It may be opened again."""

    def __repr__(self) -> str:
        return f'<toolset {self.name}: {", ".join(tool.name for tool in self.tools)}>'


def unique_names(tools: Iterable[AnyTool]) -> dict[str, AnyTool]:
    """The tools by name. Raises `ToolDefinitionError` for duplicate names."""
    named: dict[str, AnyTool] = {}
    for tool in tools:
        if tool.name in named:
            msg = f'two tools have the name {tool.name!r}; rename one: @tool(name=…), or as_tool(name=…) of an agent'
            raise ToolDefinitionError(msg)
        named[tool.name] = tool
    return named
