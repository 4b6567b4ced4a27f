"""`Toolbox`: the tools of one run, for the code in the sandbox and for the model."""

import asyncio
import contextlib
import functools
from collections.abc import Callable, Collection, Container, Generator, Iterable, Mapping, Sequence

from habilis.core.errors import ToolCallError, ToolDefinitionError
from habilis.core.similar_names import similar_names
from habilis.sandbox import Sandbox
from habilis.sandbox.contract import Display, Side, ToolCall
from habilis.sandbox.host.functions import HostFunction
from habilis.tools.calls import Calls, PreparedCall, validate_now
from habilis.tools.catalog import Catalog, SearchableTools
from habilis.tools.context import Context
from habilis.tools.contract import Approve, CallJournal, Gate, ModelFunction, ResultGate, ToolOptions
from habilis.tools.events import Emit
from habilis.tools.grants import Grants
from habilis.tools.host_calls import HostCalls
from habilis.tools.logs import LOGGER
from habilis.tools.stubs import TypeNames
from habilis.tools.tool import AnyTool, MakesTool, as_tool
from habilis.tools.toolset import Toolset, unique_names


class Toolbox:
    """The tools of a run, with gates, approvals and records of calls."""

    def __init__(
        self,
        tools: 'Iterable[AnyTool | MakesTool | Toolset | Callable[..., object]]' = (),
        *,
        gates: 'Iterable[Gate | ResultGate]' = (),
        emit: Emit | None = None,
        approve: Approve | None = None,
        journal: CallJournal | None = None,
        code: bool = True,
        context: Context[object] | None = None,
        sandbox: Sandbox | None = None,
        grants: Grants | None = None,
        unlisted: Collection[str] = (),
        library: SearchableTools | None = None,
    ) -> None:
        """Create a toolbox.

        Args:
            tools: tools, toolsets and plain functions.
            gates: decide about calls, in this order; see `gates.py`.
            emit: called with each event, on the event loop of the run.
            approve: asks a person. Without it, calls that need approval are denied, or wait if there is a journal.
            journal: records the calls, so that none is made twice.
            code: whether the run has code that calls tools. If not, the model may call all of them.
            context: for tools that take one.
            sandbox: that of the run, for tools that work in it or on its workspace.
            grants: what a person has approved before, in the same conversation.
            unlisted: names of tools that the model is not told of: it searches for them, and calls them by name.
            library: more tools that it finds in the same way.
        """
        self._toolsets: dict[str, Toolset] = {}
        self._enabled: set[str] = set()
        self._code, self._library = code, library
        self._unlisted = set(unlisted)  # with those of the library that were called
        self._uncalled = set(unlisted)
        self._functions: dict[str, HostFunction] = {}
        self._described: list[AnyTool] = []
        self._stubs = ''  # of the tools that were described last
        self._tools = self._read(tools)
        self._catalog = self._make_catalog() if unlisted or library is not None else None
        self._calls = Calls(
            self._enabled,
            gates=gates,
            approve=approve,
            emit=emit,
            journal=journal,
            context=context,
            sandbox=sandbox,
            grants=grants,
        )
        self._host_calls = HostCalls(self._calls)

    def _read(self, given: 'Iterable[AnyTool | MakesTool | Toolset | Callable[..., object]]') -> dict[str, AnyTool]:
        """The tools by name. Raises `ToolDefinitionError`."""
        tools = unique_names([tool for one in given for tool in self._add(one)])
        if both := tools.keys() & self._toolsets.keys():
            msg = f'a tool and a toolset have the same name {min(both)!r}; rename one'
            raise ToolDefinitionError(msg)
        for tool in tools.values():
            if tool.name not in self._unlisted:  # else when it is called
                tool.check()
        return tools

    def _make_catalog(self) -> Catalog:
        """The tools that the model is not told of, with those to search for them."""
        catalog = Catalog(
            self._unlisted_toolsets(),
            self._enabled,
            is_for_code=lambda tool: self._code and self._is_for(tool, 'code'),
            library=self._library,
        )
        options = ToolOptions(read_only=True, side='both' if self._has_unlisted('model') else 'code')
        helpers = unique_names([*self._tools.values(), *catalog.helpers(options)])
        self._enabled.update(helpers.keys() - self._tools.keys())
        self._tools = helpers
        return catalog

    def _unlisted_toolsets(self) -> dict[str, tuple[str, list[AnyTool]]]:
        """The descriptions of the toolsets, with their tools that the model is not told of."""
        toolsets = {name: (one.description, self._unlisted_of(one.tools)) for name, one in self._toolsets.items()}
        grouped = {tool.name for _, tools in toolsets.values() for tool in tools}
        alone = self._unlisted_of(tool for tool in self._tools.values() if tool.name not in grouped)
        return {**toolsets, 'others': ('', alone)}

    def _unlisted_of(self, tools: Iterable[AnyTool]) -> list[AnyTool]:
        return [tool for tool in tools if tool.name in self._unlisted]

    def _add(self, given: 'AnyTool | MakesTool | Toolset | Callable[..., object]') -> tuple[AnyTool, ...]:
        if not isinstance(given, Toolset):
            tool = as_tool(given)
            self._enabled.add(tool.name)
            return (tool,)
        if given.name in self._toolsets:
            msg = f'two toolsets have the name {given.name!r}; rename one'
            raise ToolDefinitionError(msg)
        self._toolsets[given.name] = given
        if given.enabled:
            self._enabled.update(tool.name for tool in given.tools)
        return given.tools

    # Offered tools ----------------------------------------------------------------------------------------------------

    def functions(self) -> list[HostFunction]:
        """The tools for a sandbox. Disabled tools are included and refuse calls, so that they can be enabled later."""
        with contextlib.suppress(RuntimeError):  # no event loop runs here; `bind` may set one later
            self.bind(asyncio.get_running_loop())
        for tool in self._tools.values():
            is_new = tool.name not in self._functions and tool.name not in self._uncalled
            if is_new and tool.options.side != 'model':
                self._functions[tool.name] = self._host_calls.function(tool)
        return list(self._functions.values())

    def update(self) -> None:
        """Replace toolsets that have changed by themselves, such as those of a server. No other tool is replaced."""
        for name, before in list(self._toolsets.items()):
            if (now := before.newest()) is before:
                continue
            for tool in before.tools:
                self._tools.pop(tool.name, None)
                self._functions.pop(tool.name, None)
            gone = {tool.name for tool in before.tools}
            new = {tool.name: tool for tool in now.tools if tool.name not in self._tools}
            if gone & self._enabled or not gone:
                self._enabled.update(new)
            self._enabled.difference_update(gone - new.keys())
            self._tools |= new
            self._toolsets[name] = now
            if gone & self._unlisted and self._catalog is not None:
                self._unlisted |= new.keys()
                self._uncalled |= new.keys()
                self._catalog.replace(self._unlisted_toolsets())

    @property
    def has_uncalled(self) -> bool:
        """Whether there are tools that code could call by name without having been told of them."""
        return bool(self._uncalled) or self._library is not None

    def add_called(self, names: Iterable[str]) -> None:
        """Offer the tools that code calls by these names without having been told of them. No other is replaced."""
        for name in names:
            self._uncalled.discard(name)
            if self._library is None or name in self._tools or name in self._toolsets:
                continue
            if (found := self._library.tool(name)) is not None:
                self._tools[name] = found
                self._enabled.add(name)
                self._unlisted.add(name)

    def unlisted(self, side: Side = 'code') -> list[str]:
        """The enabled tools for this side that the model is not told of."""
        names = self._unlisted & self._enabled
        return [name for name, tool in self._tools.items() if name in names and self._is_for(tool, side)]

    def _has_unlisted(self, side: Side) -> bool:
        return any(self._is_for(self._tools[name], side) for name in self._unlisted)

    def more_toolsets(self) -> list[str]:
        """The toolsets with tools that the model is not told of, a line each."""
        return [] if self._catalog is None else self._catalog.lines()

    def describe(self, name: str) -> str:
        """The stub of one tool, with the types that it uses."""
        return self._tools[name].stub

    def stubs(self, only: Container[str] | None = None) -> str:
        """The enabled tools for code, or `only` those of these names, as Python stubs for the model."""
        tools = [tool for tool in self._offered('code') if only is None or tool.name in only]
        if tools != self._described:  # a run asks several times, always for the same
            names = TypeNames()
            functions = [tool.render(names) for tool in tools]
            self._described, self._stubs = tools, '\n\n'.join([*names.stubs(), *functions])
        return self._stubs

    def model_functions(self) -> list[ModelFunction]:
        """The enabled tools for the model, as function definitions."""
        return [
            ModelFunction(name=tool.name, description=tool.description, parameters=tool.parameters)
            for tool in self._offered('model')
        ]

    def names(self, side: Side = 'code') -> list[str]:
        """The names of the enabled tools for this side."""
        return [tool.name for tool in self._offered(side)]

    def signatures(self) -> dict[str, str]:
        """The signatures of the enabled tools for code, by name."""
        return {tool.name: tool.signature for tool in self._offered('code')}

    def nearest(self, name: str, side: Side = 'code') -> list[str]:
        """Tools with a similar name, the most similar first."""
        names = {known.lower(): known for known in self.names(side)}
        return [names[near] for near in similar_names(name.lower(), names, n=3, cutoff=0.5)]

    def enable(self, name: str) -> None:
        """Enable a tool, or all tools of a toolset."""
        self._enabled.update(self._named(name))

    def disable(self, name: str) -> None:
        """Disable a tool, or all tools of a toolset: the model no longer sees it, and calls are refused."""
        self._enabled.difference_update(self._named(name))

    def _named(self, name: str) -> set[str]:
        if name not in self._toolsets and name not in self._tools:
            known = ', '.join([*self._toolsets, *self._tools]) or 'none'
            msg = f'there is no tool or toolset called {name!r}; there are: {known}'
            raise ToolDefinitionError(msg)
        group = self._toolsets.get(name)
        return {tool.name for tool in group.tools} if group else {name}

    def _offered(self, side: Side) -> list[AnyTool]:
        tools = self._tools.values()
        listed = self._enabled - self._unlisted
        return [tool for tool in tools if tool.name in listed and self._is_for(tool, side)]

    def _is_for(self, tool: AnyTool, side: Side) -> bool:
        return tool.options.side in {side, 'both'} or (side == 'model' and not self._code)

    @contextlib.contextmanager
    def lent(self, tools: 'Iterable[AnyTool | MakesTool | Toolset | Callable[..., object]]') -> 'Generator[Toolbox]':
        """Add tools for the duration of a block. Yields a toolbox with only these, for their stubs."""
        more = Toolbox(tools, code=self._code)
        added = [*more._tools, *more._toolsets]
        both = [name for name in added if name in self._tools or name in self._toolsets]
        if both:
            msg = f'there is already a tool or toolset with the name {both[0]!r}; rename one'
            raise ToolDefinitionError(msg)
        self._tools.update(more._tools)
        self._toolsets.update(more._toolsets)
        self._enabled.update(more._enabled)
        try:
            yield more
        finally:
            self._enabled.difference_update(more._tools)
            for name in added:
                for kept in (self._tools, self._toolsets, self._functions):
                    kept.pop(name, None)

    @property
    def tools(self) -> 'Sequence[AnyTool]':
        """All tools, the disabled ones too."""
        return tuple(self._tools.values())

    @property
    def context(self) -> 'Context[object] | None':
        """The context that tools get. Another may be set between steps."""
        return self._calls.context

    @context.setter
    def context(self, context: 'Context[object]') -> None:
        self._calls.context = context

    # Records ----------------------------------------------------------------------------------------------------------

    def take_records(self) -> list[ToolCall]:
        """The calls that have ended since the last time, in the order in which they started."""
        return self._calls.take_records()

    def take_question(self) -> str | None:
        """The first question of a tool (`NeedsAnswer`) since the last time, even if the code caught the error."""
        return self._calls.take_question()

    def take_displays(self) -> list[Display]:
        """What the tools have displayed since the last time."""
        return self._calls.take_displays()

    # Calls ------------------------------------------------------------------------------------------------------------

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run gates, approvals, events and `async def` tools on this event loop. `functions` uses the running one."""
        self._calls.bind(loop)

    def open(self, code: str = '') -> None:
        """Start a cell. Its calls do not begin after `close` or `cancel`, or once the current task is cancelled."""
        self._calls.open(code)

    def close(self) -> None:
        """Let no further call of the cell begin, not even one that is waiting. Thread-safe."""
        self._calls.close()

    def release(self) -> None:
        """The run is over. The sandbox has functions of the toolbox: each would keep the other alive."""
        self._calls.sandbox = None

    def cancel(self) -> None:
        """End the cell, and cancel the calls that threads of sandboxes wait for: the code gets an error."""
        self._calls.end()
        self._host_calls.cancel()

    async def settle(self) -> None:
        """Wait for the records of the calls that `cancel` has ended."""
        await self._calls.settle()

    async def call(self, name: str, /, *args: object, **kwargs: object) -> object:
        """Call a tool from the host, as code does."""
        tool = self._find(name, 'code')
        bind = functools.partial(tool.validate, args, kwargs)
        return await self._calls.make(tool, bind, tool.labelled(args, kwargs))

    async def call_for_model(
        self, name: str, arguments: Mapping[str, object], *, ended: Callable[[ToolCall], object] | None = None
    ) -> object:
        """Make a function call of the model; returns plain data. Raises `ToolCallError`, or the error of the tool.

        `ended` is called with the record of the call, which `take_records` also returns.
        """
        return await self.make(self.prepare(name, arguments), ended=ended)

    def prepare(self, name: str, arguments: Mapping[str, object]) -> PreparedCall:
        """Validate a function call of the model, to be made later. Thread-safe: a validator may take its time."""
        tool = self._find(name, 'model')
        bind = validate_now(functools.partial(tool.validate_json, arguments))
        return PreparedCall(tool=tool, bind=bind, written=dict(arguments))

    async def make(self, call: PreparedCall, *, ended: Callable[[ToolCall], object] | None = None) -> object:
        """Make a prepared call, as `call_for_model` does."""
        return await self._calls.make(call.tool, call.bind, call.written, side='model', ended=ended)

    async def remember(self, call: ToolCall) -> None:
        """Continue after a call of an earlier process. A tool with effects in memory (`in_memory`) is called again."""
        self._calls.skip_ids(call.id)
        tool = self._tools.get(call.tool)
        if tool is not None and tool.options.in_memory and call.ok:
            try:
                await self._calls.repeat(tool, call.arguments or {})
            except Exception as error:  # the tool may have changed since then
                LOGGER.warning('%s could not be called again: %s', call.tool, error)

    def _find(self, name: str, side: Side) -> AnyTool:
        tool = self._tools.get(name)
        if tool is None or not self._is_for(tool, side):
            near = ' or '.join(self.nearest(name, side))
            known = ', '.join(self.names(side)) or 'none'
            msg = f'there is no tool called {name!r}; ' + (f'did you mean {near}?' if near else f'there are: {known}')
            raise ToolCallError(msg)
        return tool
