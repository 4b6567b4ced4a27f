"""The options of an agent and of a run, checked before anything is started."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from inspect import Parameter, signature
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, cast

from habilis.agent.context.prompt import prompt_file
from habilis.agent.context.truncation import Bounds
from habilis.agent.contract import RunLimits
from habilis.agent.durable.runs import JournalChoice
from habilis.agent.hooks.dispatch import Hook
from habilis.agent.loop.sandboxes import SandboxChoice
from habilis.agent.policies import Policy
from habilis.core.errors import AgentError
from habilis.core.limits import Limits
from habilis.core.settings import Settings
from habilis.models.config import ModelConfig
from habilis.models.contract import Message, Model
from habilis.sandbox import Sandbox
from habilis.sandbox.options import PathLike
from habilis.sandbox.options import Settings as SandboxSettings
from habilis.tools import Approve, Gate, ResultGate, Toolset
from habilis.tools.validation import describe_value

S = TypeVar('S')
R = TypeVar('R')
P = ParamSpec('P')

AnyTool = Toolset | Callable[..., Any]
"""A `Tool`, a group of them, or a plain function with type hints."""

ModelChoice = str | ModelConfig | Model
"""`provider:model`, an alias, a configuration or a model."""

OnDisagreement = Literal['first', 'ask']


@dataclass(frozen=True, kw_only=True)
class AgentSetup:
    """The options of an agent, checked and complete. `Agent` explains them."""

    tools: Sequence[AnyTool]
    sandbox: SandboxChoice
    sandbox_settings: SandboxSettings
    instructions: str
    limits: RunLimits
    observations: Bounds
    summary: str | None
    """Prompt of the summary; None for no summary."""

    python: bool
    hooks: Sequence[Hook]
    gates: Sequence[Gate | ResultGate]
    approve: Approve | None
    name: str
    policy: str | Policy | None
    agree: int
    on_disagreement: OnDisagreement
    escalate: ModelChoice | None
    journal: JournalChoice = field(repr=False)
    settings: Settings = field(repr=False)


@dataclass(frozen=True)
class RunRequest:
    """The parameters of `Agent.run`."""

    task: str
    """What to do, in words."""

    variables: Mapping[str, object] | None = field(default=None, kw_only=True)
    """Plain data that code finds under these names; `Result.variables` has them as code left them."""

    artifacts: Mapping[str, str] | None = field(default=None, kw_only=True)
    """Named documents for the first step."""

    history: Sequence[Message] = field(default=(), kw_only=True)
    """Messages of an earlier run to continue from."""

    limits: RunLimits | None = field(default=None, kw_only=True)
    """Limits of this run, instead of the agent's."""

    max_steps: int | None = field(default=None, kw_only=True)
    """Limit of steps, instead of the agent's."""

    hooks: Sequence[Hook] = field(default=(), kw_only=True)
    """Hooks of this run, after the agent's."""

    run_id: str | None = field(default=None, kw_only=True)
    """Name to resume it by; generated if absent."""

    user: str | None = field(default=None, kw_only=True)
    """Owner of the run, where several people share a journal."""

    session: str | None = field(default=None, kw_only=True)
    """Conversation it belongs to; without `history` it continues the last run of that session."""

    meta: Mapping[str, object] | None = field(default=None, kw_only=True)
    """Plain data kept with the run."""

    def __post_init__(self) -> None:
        check_task(self.task)
        check_types('a run', {item.name: getattr(self, item.name) for item in fields(self) if item.init})

    def limits_or(self, default: RunLimits) -> RunLimits:
        """The limits of this run."""
        return with_max_steps(self.limits or default, self.max_steps)


RUN_OPTIONS = tuple(item.name for item in fields(RunRequest) if item.name != 'task')


def make_request(task: object, options: Mapping[str, Any], of_agent: Iterable[str]) -> RunRequest:
    """A request with these options; `of_agent` are those of `Agent`, to be told apart."""
    check_names('a run', options, RUN_OPTIONS, {'Agent(…)': of_agent})
    return RunRequest(cast('str', task), **options)


def takes_parameters_of(
    source: Callable[P, RunRequest],
) -> Callable[[Callable[Concatenate[S, ...], R]], Callable[Concatenate[S, P], R]]:
    """Give a method the parameters of `RunRequest`, for readers and type checkers: they are listed only there."""

    def decorate(method: Callable[Concatenate[S, ...], R]) -> Callable[Concatenate[S, P], R]:
        own = signature(method)
        parameters = [Parameter('self', Parameter.POSITIONAL_ONLY), *signature(source).parameters.values()]
        setattr(method, '__signature__', own.replace(parameters=parameters))  # noqa: B010
        return method

    return decorate


def with_max_steps(limits: RunLimits, max_steps: int | None) -> RunLimits:
    """The limits with another limit of steps, if one is given."""
    return limits if max_steps is None else replace(limits, steps=max_steps)


def limits_from(settings: Settings) -> RunLimits:
    """The limits of a run that the settings name."""
    seconds = 'default' if settings.max_seconds is None else settings.max_seconds
    return RunLimits(
        steps=settings.max_steps,
        seconds=None if seconds == 'off' else seconds,
        tokens=settings.max_run_tokens,
        cost=settings.max_cost,
        tool_calls=settings.max_tool_calls,
    )


def bounds_from(settings: Settings) -> Bounds:
    """The bounds of observations that the settings name."""
    return Bounds(tokens=settings.observation_tokens, lines=settings.observation_lines)


def sandbox_settings_from(
    given: SandboxSettings, workspace: PathLike | bool | None, sandbox: SandboxChoice, settings: Settings
) -> SandboxSettings:
    """The settings of the sandbox that is made for each run."""
    if not isinstance(sandbox, str):
        if given or workspace is not None:
            msg = 'workspace and sandbox_settings are for a sandbox that the agent creates; this one was passed in'
            raise AgentError(msg)
        return given
    made = SandboxSettings(
        limits=Limits(seconds=settings.sandbox_seconds, memory_mb=settings.sandbox_memory_mb),
        workspace=workspace,
    )
    return SandboxSettings(**{**made, **given})  # pyright: ignore[reportArgumentType]


def summary_prompt(summary: str) -> str | None:
    """The prompt of the summary; None for `off`."""
    if summary == 'off':
        return None
    return prompt_file('summary') if summary == 'default' else summary


# Checks ---------------------------------------------------------------------------------------------------------------

_Check = tuple[type, ...] | Callable[[object], bool]


def _is_text_mapping(value: object) -> bool:
    items = cast('Mapping[object, object]', value).items() if isinstance(value, Mapping) else [(None, None)]
    return all(isinstance(name, str) and isinstance(text, str) for name, text in items)


def _is_messages(value: object) -> bool:
    items = cast('Sequence[object]', value) if isinstance(value, Sequence) else [None]
    return all(isinstance(message, Message) for message in items)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


_TEXT: tuple[_Check, str] = ((str,), 'text')
_DATA: tuple[_Check, str] = ((Mapping,), 'a dict of values by name')
_FUNCTIONS: tuple[_Check, str] = ((Iterable,), 'a list of functions')
_MODEL: tuple[_Check, str] = (
    (str, ModelConfig, Model),
    'a name such as `provider:model`, a `ModelConfig` or a `Model`',
)

_CHECKS: Mapping[str, tuple[_Check, str]] = {
    'agree': (_is_count, 'a whole number of solutions, 1 for no comparison'),
    'artifacts': (_is_text_mapping, 'a dict of texts by name'),
    'escalate': _MODEL,
    'gates': _FUNCTIONS,
    'history': (_is_messages, 'a list of messages, such as `Result.messages`'),
    'hooks': _FUNCTIONS,
    'instructions': _TEXT,
    'limits': ((RunLimits,), '`RunLimits(…)`'),
    'meta': _DATA,
    'model': _MODEL,
    'name': _TEXT,
    'observations': ((Bounds,), '`Bounds(…)`'),
    'on_disagreement': (lambda value: value in ('first', 'ask'), "'first' or 'ask'"),
    'policy': ((str, Policy), 'the name of a policy, or an object with the methods of `Policy`'),
    'run_id': _TEXT,
    'sandbox': ((str, Sandbox, Mapping), 'the name of a backend, a `Sandbox`, or several by name'),
    'session': _TEXT,
    'summary': _TEXT,
    'tools': _FUNCTIONS,
    'user': _TEXT,
    'variables': _DATA,
}
"""What an argument must be, and the same in words."""


def check_task(task: object) -> None:
    """Refuse an empty task, or one that is not text."""
    if not isinstance(task, str):
        msg = f'the task must be text, not {describe_value(task)}'
        raise TypeError(msg)
    if not task.strip():
        msg = 'the task is empty: say what to do'
        raise AgentError(msg)


def check_types(where: str, given: Mapping[str, object]) -> None:
    """Refuse arguments of the wrong type. None counts as absent."""
    for name, value in given.items():
        check, words = _CHECKS.get(name, ((object,), ''))
        if value is not None and not (isinstance(value, check) if isinstance(check, tuple) else check(value)):
            msg = f'{where}: {name} must be {words}, not {describe_value(value)}'
            raise TypeError(msg)


def check_names(where: str, given: Iterable[str], known: Iterable[str], elsewhere: Mapping[str, Iterable[str]]) -> None:
    """Refuse an unknown keyword with the right name: a mistyped limit would be no limit.

    `elsewhere` are the keywords of other calls that it may be meant for.
    """
    known = list(known)
    for name in given:
        if name in known:
            continue
        home = next((other for other, names in elsewhere.items() if name in names), None)
        if home is not None:
            hint = f': it is an option of {home}'
        elif (limit := name.removeprefix('max_')) in {item.name for item in fields(RunLimits)}:
            hint = f': pass limits=RunLimits({limit}=…)'
        elif near := get_close_matches(name, known, n=1, cutoff=0.5):
            hint = f'; did you mean {near[0]!r}?'
        else:
            hint = f'; it has {", ".join(known)}'
        msg = f'{where} has no option {name!r}{hint}'
        raise TypeError(msg)
