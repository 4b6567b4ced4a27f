"""What an agent was asked to be."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

from habilis.agent.arguments import check_kinds, check_names, check_task
from habilis.agent.contract import RunLimits
from habilis.agent.context.truncation import Bounds
from habilis.agent.durable.runs import JournalChoice
from habilis.agent.context.prompt import prompt_file
from habilis.agent.loop.sandboxes import SandboxChoice
from habilis.agent.hooks.dispatch import Hook
from habilis.core.errors import AgentError
from habilis.core.limits import Limits
from habilis.core.settings import Settings, load_settings
from habilis.models.contract import Message
from habilis.sandbox.options import PathLike
from habilis.sandbox.options import Settings as SandboxSettings
from habilis.tools import Approve, Gate, ResultGate, Toolset

AnyTool = Toolset | Callable[..., Any]
"""A `Tool`, a group of them, or a plain function with type hints."""


class AgentOptions(TypedDict, total=False):
    """The keyword arguments of `Agent`, which explains them."""

    tools: Iterable[AnyTool]
    sandbox: SandboxChoice
    workspace: PathLike | bool | None
    sandbox_settings: SandboxSettings
    instructions: str
    limits: RunLimits
    observations: Bounds
    summary: str
    python: bool
    hooks: Iterable[Hook]
    gates: Iterable[Gate | ResultGate]
    approve: Approve | None
    name: str
    journal: JournalChoice
    settings: Settings


class RunOptions(TypedDict, total=False):
    """The keyword arguments of `Agent.run`, which explains them."""

    variables: Mapping[str, object] | None
    artifacts: Mapping[str, str] | None
    history: Sequence[Message]
    limits: RunLimits | None
    max_steps: int | None
    hooks: Sequence[Hook]
    run_id: str | None
    user: str | None
    session: str | None
    meta: Mapping[str, object] | None


@dataclass(frozen=True, kw_only=True)
class AgentSetup:
    """The same, checked and complete."""

    tools: Sequence[AnyTool]
    sandbox: SandboxChoice
    sandbox_settings: SandboxSettings
    instructions: str
    limits: RunLimits
    observations: Bounds
    summary: str | None
    """The prompt for it; None for no summary."""

    python: bool
    hooks: Sequence[Hook]
    gates: Sequence[Gate | ResultGate]
    approve: Approve | None
    name: str
    journal: JournalChoice = field(repr=False)
    settings: Settings = field(repr=False)


_OF_AGENT = ('model', 'output_type', *AgentOptions.__annotations__)
_OF_RUN = tuple(RunOptions.__annotations__)


def check_run(task: str, options: RunOptions) -> None:
    """Refuse what cannot be run, before anything is begun."""
    check_task(task)
    check_names('a run', options, _OF_RUN, {'Agent(…)': _OF_AGENT})
    check_kinds('a run', options)


def make_setup(model: object, options: AgentOptions) -> AgentSetup:
    """Arguments first, then settings, then defaults."""
    check_names('Agent', options, _OF_AGENT, {'run(…)': {*_OF_RUN} - {'max_steps'}})
    check_kinds('Agent', {'model': model, **options})
    settings = options.get('settings') or load_settings()
    sandbox = options.get('sandbox', settings.sandbox)
    return AgentSetup(
        tools=tuple(options.get('tools') or ()),
        sandbox=sandbox,
        sandbox_settings=_sandbox_settings(options, sandbox, settings),
        instructions=options.get('instructions', ''),
        limits=options.get('limits') or limits_from(settings),
        observations=options.get('observations')
        or Bounds(tokens=settings.observation_tokens, lines=settings.observation_lines),
        summary=_summary(options.get('summary', settings.summary)),
        python=options.get('python', True),
        hooks=tuple(options.get('hooks') or ()),
        gates=tuple(options.get('gates') or ()),
        approve=options.get('approve'),
        name=options.get('name', 'agent'),
        journal=options.get('journal') or settings.journal,
        settings=settings,
    )


def limits_from(settings: Settings) -> RunLimits:
    """The limits of a run that the settings name."""
    return RunLimits(
        steps=settings.max_steps,
        seconds=settings.max_seconds,
        tokens=settings.max_run_tokens,
        cost=settings.max_cost,
        tool_calls=settings.max_tool_calls,
    )


def _sandbox_settings(options: AgentOptions, sandbox: SandboxChoice, settings: Settings) -> SandboxSettings:
    given = options.get('sandbox_settings', SandboxSettings())
    workspace = options.get('workspace')
    if not isinstance(sandbox, str):
        if given or workspace is not None:
            msg = 'workspace and sandbox_settings are for a sandbox the agent makes; this one was made by you'
            raise AgentError(msg)
        return given
    made = SandboxSettings(
        limits=Limits(seconds=settings.sandbox_seconds, memory_mb=settings.sandbox_memory_mb),
        workspace=workspace,
    )
    return SandboxSettings(**{**made, **given})  # pyright: ignore[reportArgumentType]


def _summary(summary: str) -> str | None:
    if summary == 'off':
        return None
    return prompt_file('summary') if summary == 'default' else summary
