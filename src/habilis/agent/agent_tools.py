"""Agents as tools of other agents, and the tools of a run: resolved, and checked against its dependencies."""

import contextlib
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Protocol, cast

from habilis.agent.contract import Result
from habilis.agent.durable.file_history import NO_GIT
from habilis.agent.durable.records import Inputs
from habilis.agent.options import DELEGATE, AgentSetup, AnyTool, Helper, names_of_tools
from habilis.agent.run_spec import RunSpec, run_spec
from habilis.core.errors import AgentError, RunChanged, SandboxError, SkillError, ToolCallError
from habilis.journal.stores.urls import OFF
from habilis.sandbox import Sandbox
from habilis.sandbox.backends import backend
from habilis.sandbox.contract import why_no_processes
from habilis.sandbox.host.deadline import deadline_paused
from habilis.sandbox.options import SandboxSettings, backend_settings
from habilis.tools import Context, Tool, Toolset
from habilis.tools.context import ContextParameter, type_name
from habilis.tools.contract import ToolOptions
from habilis.tools.skills.skill import Skill
from habilis.tools.tool import as_tool

MAX_PRINTED = 500
"""Maximum number of characters that an error repeats of what an inner run without an answer has printed."""


class Runs(Protocol):
    """What an agent as a tool needs; `Runner` has it."""

    setup: AgentSetup

    async def run(self, spec: RunSpec) -> Result[object]: ...
    async def forget(self, run_id: str) -> None: ...
    def stop(self, run_id: str) -> bool: ...
    async def close(self) -> None: ...


class AgentTool(Tool[..., object]):
    """An agent that code calls like a function. Its run is nested in the run that calls it, and gets its deps."""

    def __init__(
        self,
        runner: Runs,
        *,
        name: str | None = None,
        description: str | None = None,
        needs_approval: bool = False,
        as_sync: bool = True,
    ) -> None:
        setup = runner.setup
        self.runner = runner

        async def with_variables(ctx: Context[object], task: str, variables: dict[str, Any] | None = None) -> Any:
            return await answer_of(self.runner, run_spec(task, {'variables': variables, 'deps': ctx.deps}), self.name)

        async def in_words(ctx: Context[object], task: str) -> Any:
            return await answer_of(self.runner, run_spec(task, {'deps': ctx.deps}), self.name)

        function = with_variables if setup.python else in_words
        function.__annotations__['return'] = Any if setup.output_type is None else setup.output_type
        options = ToolOptions(needs_approval=needs_approval, as_sync=as_sync)
        super().__init__(function, name=name or setup.name, options=options)
        self.description = description or _description(setup)

    def _context_argument(self, context: Context[object] | None) -> tuple[Context[object], ...]:
        return (context or Context(None),)  # its own run says what it needs


async def answer_of(runner: Runs, spec: RunSpec, name: str) -> object:
    """The answer of a run inside a tool call. Raises `ToolCallError` if it ends without one."""
    with deadline_paused():  # the inner run has limits of its own, and takes longer than a cell may
        result = await runner.run(spec)
    if result.ended == 'answer':
        return result.output
    await runner.forget(result.run_id)  # without a journal it would stay open to be resumed
    why = f'it asks: {result.question}' if result.question is not None else f'it ended with {result.ended}'
    printed = next((step.cell.stdout.strip() for step in result.steps[-1:] if step.cell is not None), '')
    last = f', and had printed: {printed[-MAX_PRINTED:]}' if printed else ''
    msg = f'{name} gave no answer: {why}{last}'
    raise ToolCallError(msg)


def _description(setup: AgentSetup) -> str:
    text = f'Give the agent {setup.name} a task in words, with all it needs to know; returns its answer.'
    return f'{text} `variables` are data for its code, by name.' if setup.python else text


# The tools of a run ---------------------------------------------------------------------------------------------------


def resolve_tools(tools: Iterable[AnyTool]) -> tuple[Toolset | Tool[..., object], ...]:
    """Tools and toolsets, with agents and plain functions made into tools."""
    return tuple(one if isinstance(one, Toolset) else as_tool(one) for one in tools)


async def open_tools(tools: Iterable[AnyTool], opened: set[Toolset]) -> tuple[AnyTool, ...]:
    """The tools with those of servers fetched; adds the toolsets to close. No two have the same name."""
    ready: list[AnyTool] = []
    taken = {tool.name for tool in each_tool(tools)}
    for one in tools:
        found = await one.opened(taken - {tool.name for tool in one.tools}) if isinstance(one, Toolset) else one
        if isinstance(one, Toolset) and found is not one:
            opened.add(one)
        taken |= {tool.name for tool in found.tools} if isinstance(found, Toolset) else set()
        ready.append(found)
    return tuple(ready)


def each_tool(tools: Iterable[AnyTool]) -> Iterator[Tool[..., object]]:
    """All tools, those of toolsets too."""
    for one in resolve_tools(tools):
        yield from one.tools if isinstance(one, Toolset) else (one,)


def tools_and_helpers(setup: AgentSetup) -> tuple[AnyTool, ...]:
    """The tools of an agent, those of its kinds of subagents, and the agents among these."""
    of_kinds = [kind.tools or () if isinstance(kind, Helper) else (kind,) for kind in setup.helpers.values()]
    return (*setup.tools, *chain.from_iterable(of_kinds))


def delegate_name(setup: AgentSetup) -> str:
    """Name of the tool that starts subagents; empty for an agent that has none."""
    return DELEGATE if setup.helpers else ''


def check_cycles(runner: Runs, tools: Iterable[AnyTool]) -> None:
    """Refuse an agent that would be its own tool, directly or through others. Raises `AgentError`."""
    for tool in each_tool(tools):
        if isinstance(tool, AgentTool):
            if tool.runner is runner:
                msg = f'the agent {runner.setup.name} cannot be its own tool, not even through other agents'
                raise AgentError(msg)
            check_cycles(runner, tools_and_helpers(tool.runner.setup))


def check_deps(setup: AgentSetup, tools: Sequence[AnyTool], deps: object) -> None:
    """Refuse dependencies that the agent, its tools or their agents cannot use. Raises `AgentError` or `TypeError`."""
    wanted = [] if setup.deps_type is None else [(f'the agent {setup.name}', ContextParameter(deps=setup.deps_type))]
    for tool in each_tool(tools):
        if isinstance(tool, AgentTool):
            check_deps(tool.runner.setup, tools_and_helpers(tool.runner.setup), deps)
        elif tool.context is not None:
            wanted.append((f'the tool {tool.name}', tool.context))
    for who, parameter in wanted:
        if parameter.accepts(deps):
            continue
        needs = f'{who} needs deps of type {parameter.type_name}'
        if deps is None:
            msg = f'{needs}: pass them by name, as in run(…, deps=…) or resume(…, deps=…)'
            raise AgentError(msg)
        msg = f'{needs}, not {name_of_deps(deps)}'
        raise TypeError(msg)


def check_sandbox(setup: AgentSetup, tools: Iterable[AnyTool]) -> None:
    """Refuse toolsets and checkpoints that need more than the sandbox of the runs has. Raises `AgentError`."""
    main = next(iter(setup.sandbox.values()), None) if isinstance(setup.sandbox, Mapping) else setup.sandbox
    toolsets = [one for one in tools if isinstance(one, Toolset)]
    needing = [one.name for one in toolsets if one.needs_processes]
    if needing and main is not None and (reason := why_no_processes_in(main, setup.sandbox_settings)):
        msg = f'the toolset {needing[0]} needs a sandbox that starts processes: {reason}'
        raise AgentError(msg)
    named = setup.sandbox_settings.get('workspace')
    if main.has_workspace if isinstance(main, Sandbox) else named is not None and named is not False:
        return
    needing = [f'the toolset {one.name}' for one in toolsets if one.needs_workspace]
    if setup.checkpoints or needing:
        who = 'checkpoints=True' if setup.checkpoints else needing[0]
        msg = f"{who} needs a workspace: pass Agent(…, workspace='folder')"
        raise AgentError(msg)


def why_no_processes_in(sandbox: Sandbox | str, settings: SandboxSettings) -> str:
    """Why this sandbox cannot start processes; empty if it can, or if it is not usable: then the run says so."""
    if isinstance(sandbox, Sandbox):
        return sandbox.why_no_processes
    if sandbox == 'auto':  # takes `process` for native packages, and else `wasm`
        sandbox = 'process' if settings.get('packages') else 'wasm'
    with contextlib.suppress(SandboxError, TypeError):
        return why_no_processes(backend(sandbox, **backend_settings(settings)))
    return ''


def check_skills(setup: AgentSetup, tools: Iterable[AnyTool]) -> None:
    """Refuse skills that ask for tools that the run does not have. Raises `SkillError`."""
    if not setup.skills or not isinstance(setup.sandbox, str):
        return
    names, reason = {tool.name for tool in each_tool(tools)}, why_no_processes_in(setup.sandbox, setup.sandbox_settings)
    for skill in setup.skills:
        if why := skill.missing_tool(names, reason):
            raise SkillError(why)


def check_given_again(inputs: Inputs, spec: RunSpec, skills: Iterable[Skill]) -> None:
    """Refuse to resume a run without what it was started with and the journal cannot hold."""
    if spec.on_change == 'fail':
        _check_unchanged(inputs.skills, skills)
    missing = [name for name in inputs.own_tools if name not in names_of_tools(spec.tools)]
    if missing:
        msg = f'the run was started with tools of its own; pass them again: resume(…, tools=[{", ".join(missing)}])'
        raise AgentError(msg)
    if inputs.own_output and spec.output_type is None:
        msg = f'the run was started with its own output type; pass it again: resume(…, output_type={inputs.own_output})'
        raise AgentError(msg)
    if inputs.deps_name and spec.deps is None:
        msg = (
            f'the run needs deps of type {inputs.deps_name}, which are not recorded; pass them again: resume(…, deps=…)'
        )
        raise AgentError(msg)


def _check_unchanged(recorded: Mapping[str, str], skills: Iterable[Skill]) -> None:
    """Refuse to resume a run whose skills are not what they were. Raises `RunChanged`."""
    now = {skill.name: skill.digest for skill in skills}
    for name, digest in recorded.items():
        if now.get(name) != digest:
            how = 'has changed since the run was started' if name in now else 'is missing: pass it to the agent again'
            msg = f"the skill {name} {how}; to resume with what is there now, pass on_change='continue'"
            raise RunChanged(msg)


def check_checkpoints(setup: AgentSetup) -> None:
    """Refuse checkpoints that could not be stored, or not be found again. Raises `AgentError`."""
    if not setup.checkpoints:
        return
    if setup.journal == OFF:
        msg = "checkpoints=True needs a journal, which says to which run they belong: leave out journal='off'"
        raise AgentError(msg)
    if setup.sandbox_settings.get('workspace') is True:
        msg = "checkpoints=True needs a folder that stays: pass workspace='folder' instead of workspace=True"
        raise AgentError(msg)
    if shutil.which('git') is None:
        raise AgentError(NO_GIT)


def needs_sandbox(tools: Iterable[AnyTool]) -> bool:
    """Whether some of the tools work in the sandbox or on its workspace, also where the model writes no code."""
    return any(isinstance(one, Toolset) and (one.needs_workspace or one.needs_processes) for one in tools)


def name_of_deps(deps: object) -> str:
    """Name of the type of dependencies, for the journal and for errors, which must not show what is in them."""
    return '' if deps is None else type_name(cast('object', type(deps)))
