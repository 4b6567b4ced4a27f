"""What can be done with an agent beside runs: add tools and validators, use it as a tool of another, stop its runs."""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Never, TypeVar, cast, overload

from habilis.agent.agent_tools import AgentTool, check_cycles, each_tool
from habilis.agent.loop.output_validators import OutputValidator
from habilis.agent.options import AnyTool, check_types
from habilis.agent.runner import Runner
from habilis.agent.wrong_guesses import check_names
from habilis.core.errors import RunNotFound
from habilis.sandbox.contract import Side
from habilis.tools import Tool, Toolset
from habilis.tools.contract import OnError, Preview
from habilis.tools.tool import MakesTool, caller_names, tool_maker
from habilis.tools.toolset import unique_names

F = TypeVar('F', bound=AnyTool)
V = TypeVar('V', bound=OutputValidator)


class Decorators:
    """Base class of `Agent`."""

    _runner: Runner

    @overload
    def tool(self, function: F) -> F: ...
    @overload
    def tool(
        self,
        *,
        name: str | None = None,
        timeout: float | None = None,
        retries: int = 0,
        read_only: bool = False,
        destructive: bool = False,
        idempotent: bool = True,
        in_memory: bool = False,
        needs_approval: bool = False,
        side: Side = 'code',
        on_error: OnError = 'raise',
        as_sync: bool = False,
        preview: Preview | None = None,
    ) -> Callable[[F], F]: ...
    def tool(self, function: AnyTool | None = None, *, name: str | None = None, **options: Any) -> Any:
        """Add a tool to the runs that start from now on: `@agent.tool`, or with the options of `@tool`.

        Returns the function unchanged.
        """
        make = tool_maker(caller_names(sys._getframe(1)), name, **options)  # pyright: ignore[reportPrivateUsage]

        def add(target: Any) -> Any:
            check_types('Agent', {'tools': [target]})
            is_made = isinstance(target, Tool | Toolset | MakesTool) and not (name or options)
            self._add_tool(cast('AnyTool', target) if is_made else make(cast('Callable[..., object]', target)))
            return cast('Any', target)

        return add if function is None else add(function)

    def _add_tool(self, added: AnyTool) -> None:
        runner = self._runner
        check_cycles(runner, [added])
        tools = (*runner.setup.tools, added)
        unique_names(each_tool(tools))
        runner.setup = replace(runner.setup, tools=tools)

    def output_validator(self, function: V, /) -> V:
        """Add an output validator to the runs that start from now on: `@agent.output_validator`.

        Returns the function unchanged.
        """
        runner = self._runner
        check_types('Agent', {'output_validators': [function]})
        runner.setup = replace(runner.setup, output_validators=(*runner.setup.output_validators, function))
        return function

    def stop(self, run_id: str) -> None:
        """Stop a run that is under way in this agent: `Agent.run` raises `RunStopped`, and the run can be resumed.

        Stopping a subagent (`event.run` of its events) raises an error in the code that called `delegate`, which goes
        on. Thread-safe. Raises `RunNotFound`.
        """
        if not self._runner.stop(run_id):
            msg = f'no run {run_id} is under way here'
            raise RunNotFound(msg)

    def as_tool(
        self,
        *,
        name: str | None = None,
        description: str | None = None,
        needs_approval: bool = False,
        as_sync: bool = True,
        **unknown: Never,
    ) -> Tool[..., object]:
        """This agent as a tool of another: a function of a task, which returns the answer.

        Its run is nested in the run that calls it, counts for its usage, and gets its deps. Without an answer the call
        raises `ToolCallError`. `Agent(tools=[other])` does the same.

        Args:
            name: name of the tool (default: the name of the agent).
            description: what the model is told about it.
            needs_approval: a person must approve each call.
            as_sync: False to let code `await` the call, so that it can make several at the same time.
        """
        check_names('as_tool', unknown, ('name', 'description', 'needs_approval', 'as_sync'), {})
        return AgentTool(
            self._runner, name=name, description=description, needs_approval=needs_approval, as_sync=as_sync
        )
