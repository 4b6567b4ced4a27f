"""pydantic-ai: `HabilisToolset` and `HabilisCodeMode`, one tool `run_python` whose code calls the other tools."""

import builtins
import keyword
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai import ModelRetry, RunContext, ToolReturn
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, ToolSearch
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.tools import AgentDepsT, ToolDefinition, ToolDenied
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
from pydantic_core import SchemaValidator, core_schema, to_jsonable_python

from habilis.integrations.cells import failure_of, printed_by, result_of
from habilis.sandbox.host.functions import HostFunction, label_arguments
from habilis.sandbox.options import SandboxSettings
from habilis.sandbox.session import Sandbox

RUN_PYTHON = 'run_python'
DESCRIPTION = """\
Run Python in a sandbox and return what it prints and the value of its last expression. Variables, imports and functions
stay for the next call. The standard library is there; `await` works at top level."""
FUNCTIONS = 'These functions are defined already. They are asynchronous: `await` them; `asyncio.gather` runs several.'
_SCHEMA = {'type': 'object', 'properties': {'code': {'type': 'string'}}, 'required': ['code']}
_CODE = core_schema.typed_dict_schema({'code': core_schema.typed_dict_field(core_schema.str_schema())})


@dataclass(kw_only=True)
class _RunPython(ToolsetTool[AgentDepsT]):
    inside: dict[str, ToolsetTool[AgentDepsT]]


@dataclass
class HabilisToolset(WrapperToolset[AgentDepsT]):
    """Replaces the tools of `wrapped` by `run_python`, whose code calls them. Each run has a sandbox of its own.

    Tools that wait for a person or run elsewhere, and those whose name cannot be that of a function, stay as they are.
    """

    backend_name: str = 'auto'
    settings: SandboxSettings = field(default_factory=SandboxSettings)
    """Arguments of `Sandbox.create`."""

    max_retries: int = 3
    """How many times in succession code may fail."""

    _opened: list[Sandbox] = field(default_factory=list[Sandbox])
    """The sandbox of the run, once it is started. The copies for each step share the list."""

    async def for_run(self, ctx: RunContext[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        return replace(self, wrapped=await self.wrapped.for_run(ctx), _opened=[])

    async def __aexit__(self, *args: Any) -> bool | None:
        while self._opened:
            await self._opened.pop().close()
        return await super().__aexit__(*args)

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        tools = await super().get_tools(ctx)
        inside = {name: tool for name, tool in tools.items() if _is_function(tool.tool_def, ctx)}
        stubs = [FUNCTIONS, *(tool.tool_def.render_signature('...', is_async=True) for tool in inside.values())]
        definition = ToolDefinition(
            name=RUN_PYTHON,
            description='\n\n'.join([DESCRIPTION, *(stubs if inside else [])]),
            parameters_json_schema=_SCHEMA,
            metadata={'code_arg_name': 'code', 'code_arg_language': 'python'},
            sequential=True,
        )
        check, retries = SchemaValidator(_CODE), self.max_retries
        run = _RunPython(toolset=self, tool_def=definition, max_retries=retries, args_validator=check, inside=inside)
        return {**{name: tool for name, tool in tools.items() if name not in inside}, RUN_PYTHON: run}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> Any:
        """Run code, or call a tool that stayed as it is. Code that fails raises `ModelRetry`."""
        if not isinstance(tool, _RunPython):
            return await super().call_tool(name, tool_args, ctx, tool)
        if not self._opened:
            self._opened.append(await Sandbox.create(self.backend_name, **self.settings))
        assert ctx.tool_manager is not None
        manager = ToolManager(self.wrapped, ctx.tool_manager.root_capability, ctx=ctx, tools=tool.inside)
        functions = [_function(each.tool_def, manager) for each in tool.inside.values()]
        cell = await self._opened[0].run(tool_args['code'], tools=[*(self.settings.get('tools') or ()), *functions])
        if not cell.ok:
            raise ModelRetry(printed_by(cell) + failure_of(cell))
        shown = {'output': printed_by(cell), 'result': result_of(cell)}
        return {name: value for name, value in shown.items() if value not in ('', None)}


@dataclass
class HabilisCodeMode(AbstractCapability[AgentDepsT]):
    """`HabilisToolset` around all tools of an agent: `Agent(…, capabilities=[HabilisCodeMode()])`."""

    backend_name: str = 'auto'
    settings: SandboxSettings = field(default_factory=SandboxSettings)
    max_retries: int = 3

    def get_ordering(self) -> CapabilityOrdering:
        """Around tool search, whose own tool stays one of the model."""
        return CapabilityOrdering(position='outermost', wraps=[ToolSearch])

    def get_wrapper_toolset(self, toolset: AbstractToolset[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        return HabilisToolset(toolset, self.backend_name, self.settings, self.max_retries)


def _is_function(tool: ToolDefinition, ctx: RunContext[AgentDepsT]) -> bool:
    """Whether code may call a tool: it is there now, no part of the framework, and does not run code itself."""
    is_plain = tool.kind == 'function' and tool.tool_kind is None and not tool.unless_native
    runs_code = 'code_arg_name' in (tool.metadata or {})
    is_name = tool.name.isidentifier() and not keyword.iskeyword(tool.name) and not hasattr(builtins, tool.name)
    return is_plain and is_name and not runs_code and ctx.is_tool_available(tool)


def _function(tool: ToolDefinition, manager: ToolManager[AgentDepsT]) -> HostFunction:
    parameters = tuple(tool.function_signature.params)

    async def call(*args: object, **kwargs: object) -> object:
        part = ToolCallPart(tool_name=tool.name, args=label_arguments(parameters, args, kwargs))
        result: object = await manager.handle_call(part, wrap_validation_errors=False)
        if isinstance(result, ToolDenied):
            raise PermissionError(result.message)
        return to_jsonable_python(result.return_value if isinstance(result, ToolReturn) else result)

    return HostFunction(name=tool.name, call=call, is_async=True, parameters=parameters, doc=tool.description)
