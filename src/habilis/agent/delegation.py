"""Subagents: `delegate`, the tool with which code hands a part of its task to another run, by the kind of work."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

from habilis.agent.agent_tools import AgentTool, Runs, answer_of, resolve_tools
from habilis.agent.context.instructions import parts_of
from habilis.agent.context.prompt import prompt_file
from habilis.agent.hooks.dispatch import Hook
from habilis.agent.loop.components import calling_run
from habilis.agent.options import DELEGATE, AgentSetup, AnyTool, Helper, Helpers
from habilis.agent.run_spec import RunSpec, run_spec
from habilis.core.errors import AgentError, RunStopped, ToolCallError
from habilis.models.contract import Model
from habilis.sandbox.host.deadline import deadline_paused
from habilis.tools import Context, Tool, Toolset, logs
from habilis.tools.contract import ToolOptions
from habilis.tools.tool import MakesTool, as_tool

MAX_DEPTH = 3
"""How deep subagents are nested at most: those of an agent are the first level."""

MAX_PARALLEL = 4
"""How many subagents of a run work at the same time; more wait for their turn."""

MakeRunner = Callable[[AgentSetup], Runs]


def built_in() -> dict[str, Helper]:
    """The kinds that every agent with subagents has, unless it has its own of the same name."""
    words = {
        'code': 'does a part of the work with Python, on the same files',
        'research': 'finds something out, names the sources, and changes nothing',
    }
    made = {name: Helper(text, instructions=prompt_file(f'helper_{name}')) for name, text in words.items()}
    return {**made, 'research': replace(made['research'], files='read_only')}


def helpers_from(given: Helpers | bool | None) -> Helpers:
    """The kinds of an agent, complete; none for None and False. Raises `AgentError` for one that cannot be a kind."""
    if given is None or given is False:
        return {}
    kinds: dict[str, Helper | MakesTool] = {**built_in(), **({} if given is True else given)}
    for name, kind in kinds.items():
        if not name.isidentifier():
            msg = f'helpers: {name!r} is not a Python identifier: choose a name such as {"reviewer"!r}'
            raise AgentError(msg)
        if not isinstance(kind, Helper) and not isinstance(as_tool(kind), AgentTool):
            msg = f'helpers: {name} must be a `Helper(…)` or an agent'
            raise AgentError(msg)
    return kinds


class Delegation:
    """The subagents of one agent. A kind that is a `Helper` has a runner made of the agent's setup."""

    def __init__(self, make_runner: MakeRunner) -> None:
        self._make_runner = make_runner
        self.runners: dict[str, Runs] = {}
        """Made when a kind is first used."""

    def tool(self, setup: AgentSetup, model: Model, tools: Sequence[AnyTool], hooks: Sequence[Hook]) -> Tool[..., Any]:
        """`delegate` for one run, with the tools and hooks of that run."""
        free = asyncio.Semaphore(MAX_PARALLEL)

        async def delegate(
            ctx: Context[Any], task: str, kind: str = 'code', variables: dict[str, Any] | None = None
        ) -> Any:
            _check_depth()
            spec = run_spec(task, {'variables': variables, 'deps': ctx.deps, 'hooks': hooks})
            helper = setup.helpers[kind]
            try:
                with deadline_paused():  # also while it waits for its turn
                    async with free:
                        if not isinstance(helper, Helper):
                            return await _ask_agent(helper, spec, kind)
                        given = _inherited_tools(tools, helper) if helper.tools is None else helper.tools
                        runner = self._runner(kind, helper, setup, model)
                        return await _ask_helper(runner, helper, replace(spec, tools=given), kind)
            except RunStopped:
                msg = f'{kind} was stopped'
                raise ToolCallError(msg) from None

        delegate.__annotations__['kind'] = Literal[tuple(setup.helpers)]  # pyright: ignore[reportInvalidTypeForm]
        made = Tool[..., Any](delegate, name=DELEGATE, options=ToolOptions())
        made.description = _description(setup)
        return made

    def _runner(self, kind: str, helper: Helper, setup: AgentSetup, model: Model) -> Runs:
        if kind not in self.runners:
            self.runners[kind] = self._make_runner(_setup_of(kind, helper, setup, model))
        return self.runners[kind]


def _inherited_tools(tools: Sequence[AnyTool], helper: Helper) -> list[AnyTool]:
    """The tools of a run that a subagent of this kind has: without those for talking with a person, and those that work
    in the sandbox, because its code does that itself, unless a person must agree to it."""
    found: list[AnyTool] = []
    for one in resolve_tools(tools):
        toolset = one if isinstance(one, Toolset) else Toolset('', [one])
        by_code = (toolset.needs_workspace or toolset.needs_processes) and not (
            toolset.asks_to_change and helper.files == 'shared'
        )
        if by_code or not toolset.for_subagents:
            continue
        if helper.files != 'read_only':
            found.append(one)
        elif (reading := toolset.reading()).tools:
            found.append(reading)
    return found


async def _ask_agent(agent: MakesTool, spec: RunSpec, kind: str) -> object:
    made = as_tool(agent)
    assert isinstance(made, AgentTool)
    own = made.runner.setup.hooks
    more = [hook for hook in spec.hooks if not any(hook is known for known in own)]
    return await answer_of(made.runner, replace(spec, hooks=more), kind)


async def _ask_helper(runner: Runs, helper: Helper, spec: RunSpec, kind: str) -> object:
    """The answer of a subagent, which works in a sandbox like that of the run that called it."""
    calling = logs.sandbox()
    assert calling is not None, 'a run with subagents has a sandbox'
    sandbox = await calling.sibling(files=helper.files)
    try:
        return await answer_of(runner, replace(spec, own_sandbox=sandbox), kind)
    finally:
        await sandbox.close()


def _setup_of(kind: str, helper: Helper, setup: AgentSetup, model: Model) -> AgentSetup:
    """The setup of the agent, as a subagent of this kind has it: without the instructions for talking with a person."""
    return replace(
        setup,
        name=kind,
        model=helper.model or model,
        model_settings={},
        output_type=None,
        output_validators=(),
        tools=(),
        helpers={},
        skills=[skill for skill in setup.skills if not skill.allowed_tools],  # it may not have these tools
        library=None if helper.files == 'read_only' else setup.library,
        talk=False,
        instructions=[*(() if setup.talk else parts_of(setup.instructions)), *parts_of(helper.instructions)],
        limits=helper.limits or setup.limits,
        summary=None,
        python=True,
        hooks=(),
        agree=1,
        escalate=None,
        checkpoints=False,
    )


def _check_depth() -> None:
    run = calling_run.get()
    if run is not None and run.depth > MAX_DEPTH:
        msg = f'subagents are nested {MAX_DEPTH} deep at most: do this task here'
        raise ToolCallError(msg)


def _description(setup: AgentSetup) -> str:
    lines = [
        'Give a part of the task to a subagent, in words, with all it needs to know; returns its answer.',
        'It sees neither your variables nor this conversation: `variables` are data for its code, by name.',
    ]
    if setup.python:
        lines.append('Several at once: `import asyncio; a, b = await asyncio.gather(delegate(…), delegate(…))`.')
        lines.append('An error is raised.')
    kinds = [f'- {name}: {_words(kind)}' for name, kind in setup.helpers.items()]
    return '\n'.join([' '.join(lines), 'Kinds:', *kinds])


def _words(kind: Helper | MakesTool) -> str:
    return kind.description if isinstance(kind, Helper) else as_tool(kind).description
