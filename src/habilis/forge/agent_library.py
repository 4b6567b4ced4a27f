"""The library in the runs of agents: they find tools, call them by name, and have new ones built."""

import asyncio
from collections.abc import Collection, Sequence
from pathlib import Path

from habilis.agent.loop.components import parent_ledgers
from habilis.core.errors import ForgeError, ToolCallError, ToolDefinitionError
from habilis.core.settings import Settings
from habilis.forge.build.forge import Forge
from habilis.forge.library.library import Library
from habilis.forge.library.stored import stored_library
from habilis.forge.library.tools import library_tool
from habilis.forge.source import HELPERS
from habilis.models.contract import Model, Usage
from habilis.models.counting import CountingModel
from habilis.sandbox import ToolCall
from habilis.sandbox.host.deadline import deadline_paused
from habilis.tools import Context, Tool
from habilis.tools.catalog import MAX_DESCRIPTION, MAX_FOUND
from habilis.tools.contract import ToolOptions
from habilis.tools.search_index import FoundTool
from habilis.tools.stubs import TypeNames

MAX_STUBS = 1200
"""Characters of what a run is told about tools that fit: the prompt stays small, however many there are."""

THRESHOLD = 0.1


class AgentLibrary:
    """A library as runs of agents use it."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def find(self, task: str, taken: Collection[str]) -> Sequence[str]:
        """The names of the few tools that fit a task, best first; none of those that are taken."""
        names: list[str] = []
        left = MAX_STUBS
        for name, stub in self._stubs(task):
            if name not in taken and len(stub) <= left:
                names.append(name)
                left -= len(stub)
        return names

    def _stubs(self, query: str) -> list[tuple[str, str]]:
        found = self.search(query)
        fitting = [one.name for one in found if one.score >= found[0].score / 2]  # where one fits, others are noise
        tools = [(name, self.tool(name)) for name in fitting]
        return [(name, made.render(TypeNames())) for name, made in tools if made is not None]

    def tool(self, name: str) -> Tool[..., object] | None:
        """The tool of that name; None if there is none that can be used."""
        if name not in self._library or name in HELPERS:
            return None
        try:
            found = library_tool(self._library, name)
        except (ForgeError, ToolDefinitionError):  # damaged, or edited by hand into something else
            return None
        found.description = found.description.partition('\n\n')[0][:MAX_DESCRIPTION]
        return found

    def search(self, query: str) -> Sequence[FoundTool]:
        """The tools that fit a query, best first."""
        return self._library.search(query, limit=MAX_FOUND, threshold=THRESHOLD)

    def helpers(self, model: Model) -> Sequence[Tool[..., object]]:
        """The tool with which code has new tools built by this model."""

        async def make_tool(ctx: Context[object], request: str, examples: list[str] | None = None) -> str:
            """Have a tool built, tested and kept, if later tasks need it, too. Takes a while.

            `request` says in words what it takes and returns; `examples` must hold, such as ["area(2, 3) == 6"].
            Call the new tool by its name in the next cell.
            """
            return await self._make(ctx, model, request, examples or [])

        return (Tool(make_tool, options=ToolOptions(as_sync=True)),)

    async def _make(self, ctx: Context[object], model: Model, request: str, examples: list[str]) -> str:
        def watch(stage: str, text: str) -> None:
            ctx.log(f'{stage}: {text}')

        ledgers = parent_ledgers.get()

        def count(name: str, usage: Usage) -> None:
            for ledger in ledgers:
                ledger.record(name, usage, agent=ledgers[0].name)

        forge = Forge(self._library, CountingModel(model, count), watch=watch)
        with deadline_paused():  # a build takes longer than a cell may
            try:
                built = await forge.build(request, examples)
            except ForgeError as error:
                raise ToolCallError(str(error)) from error
        if not built.name:
            msg = f'no tool was built: {built.reason}'
            raise ToolCallError(msg)
        made = await asyncio.to_thread(self.tool, built.name)
        assert made is not None
        return f'{made.render(TypeNames())}\n\nIt is tested. Call it by its name in the next cell.'

    def finished(self, task: str, calls: Sequence[ToolCall], *, ok: bool, run_id: str) -> None:
        """A run has ended, having called these tools."""
        called = [call.tool for call in calls if call.ok and call.tool in self._library]
        if called:
            self._library.usage.record_request(task, called, ok=ok, run=run_id)


def open_library(settings: Settings, folder: Path | None, /) -> AgentLibrary:
    """See `stored_library`."""
    return AgentLibrary(stored_library(settings, folder))
