"""The options of an agent, and the checks of all options, before anything is started."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, TypedDict, cast, get_origin

from habilis.agent.context.instructions import Instructions, is_instructions
from habilis.agent.context.prompt import prompt_file
from habilis.agent.context.truncation import Bounds
from habilis.agent.contract import RunLimits
from habilis.agent.durable.runs import JournalChoice
from habilis.agent.hooks.dispatch import Hook
from habilis.agent.library import LibraryChoice, is_library_choice
from habilis.agent.loop.output_validators import OutputValidator
from habilis.agent.loop.sandboxes import SandboxChoice
from habilis.agent.policies import Policy
from habilis.core.errors import AgentError
from habilis.core.limits import Limits
from habilis.core.narrowing import is_list, is_mapping, is_tuple
from habilis.core.settings import Settings
from habilis.core.settings_sources import PROJECT_FILES
from habilis.models.config import ModelConfig
from habilis.models.contract import Message, Model, Recollection
from habilis.models.files import File
from habilis.models.registry import Overrides as ModelSettings
from habilis.sandbox import Sandbox
from habilis.sandbox.code_rules import CodeRules
from habilis.sandbox.options import PathLike, SandboxSettings, SiblingFiles
from habilis.tools import Approve, Gate, ResultGate, Toolset
from habilis.tools.skills.skill import Skill
from habilis.tools.skills.sources import SkillSource, load_skills
from habilis.tools.tool import MakesTool
from habilis.tools.validation import describe_value

AnyTool = Toolset | MakesTool | Callable[..., object]
"""A `Tool`, a group of them, a plain function with type hints, or another agent."""

ModelChoice = str | ModelConfig | Model
"""`provider:model`, an alias, a configuration or a model."""

OnDisagreement = Literal['first', 'ask']

DELEGATE = 'delegate'
"""Name of the tool that starts subagents."""


@dataclass(frozen=True)
class Helper:
    """A kind of subagent: in what it differs from the agent that it works for."""

    description: str
    """What it is good for, for the model that chooses the kind."""

    _: KW_ONLY
    instructions: Instructions = ''
    """After those of the agent."""

    model: ModelChoice | None = None
    """None: that of the agent."""

    tools: Sequence[AnyTool] | None = None
    """None: those of the run that it works for, without those for talking with a person, and those for files and
    commands, which its own code does as well, unless changes need approval. With read-only files, only tools with
    `read_only=True`."""

    limits: RunLimits | None = None
    """None: those of the agent. A limit that the run around it reaches ends it too."""

    files: SiblingFiles = 'shared'
    """Whether it works in the workspace of the run that it works for, can only read it, or has a temporary one of its
    own. Its variables are always its own."""


Helpers = Mapping[str, Helper | MakesTool]
"""Kinds of subagents by name; a whole agent may be a kind."""


class WorkOptions(TypedDict, total=False):
    """The options of `Agent` that `habilis.assistant.Session` takes too."""

    tools: Iterable[AnyTool]
    helpers: Helpers | bool
    library: LibraryChoice | None
    skills: Iterable[SkillSource]
    instructions: Instructions
    limits: RunLimits | None
    workspace: PathLike | bool | None
    packages: Iterable[PathLike] | None
    network: bool | Iterable[str] | None
    sandbox: SandboxChoice | None
    sandbox_settings: SandboxSettings | None
    hooks: Iterable[Hook]
    gates: Iterable[Gate | ResultGate]
    checkpoints: bool
    settings: Settings | None


class AgentOptions(WorkOptions, total=False):
    """The options of `Agent` beside `model` and `output_type`, which explains them."""

    model_settings: ModelSettings | None
    output_validators: Iterable[OutputValidator]
    deps_type: Any
    code_rules: CodeRules | None
    python: bool
    talk: bool
    observations: Bounds | None
    summary: str | None
    approve: Approve | None
    name: str
    policy: str | Policy | None
    agree: int
    on_disagreement: OnDisagreement
    escalate: ModelChoice | None
    journal: JournalChoice


AGENT_OPTIONS = ('model', 'output_type', *AgentOptions.__annotations__)


@dataclass(frozen=True, kw_only=True)
class AgentSetup:
    """The options of an agent, checked and complete. `Agent` explains them."""

    model: ModelChoice | None = None
    model_settings: ModelSettings = field(default_factory=ModelSettings)
    output_type: Any = None
    output_validators: Sequence[OutputValidator] = ()
    tools: Sequence[AnyTool] = ()
    helpers: Helpers = field(default_factory=dict[str, Helper | MakesTool])
    """The kinds of subagents; empty for none."""

    library: LibraryChoice | None = None
    skills: Sequence[Skill] = ()
    deps_type: Any = None
    instructions: Instructions = ''
    limits: RunLimits
    sandbox: SandboxChoice
    sandbox_settings: SandboxSettings
    python: bool = True
    talk: bool = False
    observations: Bounds
    summary: str | None
    """Prompt of the summary; None for no summary."""

    hooks: Sequence[Hook] = ()
    gates: Sequence[Gate | ResultGate] = ()
    approve: Approve | None = None
    name: str = 'agent'
    policy: str | Policy | None = None
    agree: int = 1
    on_disagreement: OnDisagreement = 'first'
    escalate: ModelChoice | None = None
    journal: JournalChoice = field(repr=False)
    checkpoints: bool = False
    settings: Settings = field(repr=False)


Task = str | Sequence[str | File | Recollection]
"""What to do, in words; or a list of words, images, files and what a memory has for it."""


def names_of_tools(tools: Iterable[AnyTool]) -> tuple[str, ...]:
    """Names of functions and toolsets, as a reader knows them."""
    names = (getattr(one, 'name', None) or getattr(one, '__name__', None) or type(one).__name__ for one in tools)
    return tuple(str(name) for name in names)


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
    given: SandboxSettings, options: Mapping[str, object], sandbox: SandboxChoice, settings: Settings
) -> SandboxSettings:
    """The settings of the sandbox that is made for each run; `options` are those that `Agent` has by name."""
    named = {name: value for name, value in options.items() if value is not None}
    if not isinstance(sandbox, str):
        if given or named:
            names = ', '.join(named or ['sandbox_settings'])
            msg = f'{names}: only for a sandbox that the agent creates, and this one was passed in'
            raise AgentError(msg)
        return given
    limits = Limits(seconds=settings.sandbox_seconds, memory_mb=settings.sandbox_memory_mb)
    # Code inside may have written the files of the project, so they must not allow it more.
    protect = settings.sandbox_protect or settings.origin('sandbox_protect') in PROJECT_FILES
    return SandboxSettings(**{'limits': limits, 'protect': protect, **named, **given})  # pyright: ignore[reportArgumentType]


def summary_prompt(summary: str) -> str | None:
    """The prompt of the summary; None for `off`."""
    if summary == 'off':
        return None
    return prompt_file('summary') if summary == 'default' else summary


# Checks ---------------------------------------------------------------------------------------------------------------

_Check = tuple[type, ...] | Callable[[object], bool]


def _is_text_mapping(value: object) -> bool:
    items = value.items() if is_mapping(value) else [(None, None)]
    return all(isinstance(name, str) and isinstance(text, str) for name, text in items)


def _are_tools(value: object) -> bool:
    return all(isinstance(item, Toolset | MakesTool) or callable(item) for item in _items(value))


def _are_functions(value: object) -> bool:
    return all(callable(item) and not isinstance(item, MakesTool) for item in _items(value))


def _are_skills(value: object) -> bool:
    return all(isinstance(item, Skill | str | os.PathLike) for item in _items(value))


def _items(value: object) -> Iterable[object]:
    """The items of a collection; one that is never right for anything else."""
    return cast('Iterable[object]', value) if isinstance(value, Iterable) and not isinstance(value, str) else [None]


def _is_type(value: object) -> bool:
    return isinstance(value, type) or value is Any or get_origin(value) is not None


def _is_output_type(value: object) -> bool:
    """Whether it has the form of a type. The first run looks into it: a class may be incomplete until then."""
    return _is_type(value) or type(value).__module__ in {'typing', 'typing_extensions'}


def _is_messages(value: object) -> bool:
    items = _items(value)
    return isinstance(value, Sequence) and all(isinstance(message, Message) for message in items)


def _is_model_settings(value: object) -> bool:
    return is_mapping(value) and {*value} <= {*ModelSettings.__annotations__}


def _is_helpers(value: object) -> bool:
    kinds = value if is_mapping(value) else {'': value}
    return isinstance(value, bool) or all(isinstance(kind, Helper | MakesTool) for kind in kinds.values())


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


_TEXT: tuple[_Check, str] = ((str,), 'text')
_DATA: tuple[_Check, str] = ((Mapping,), 'a dict of values by name')
_FUNCTIONS: tuple[_Check, str] = (_are_functions, 'a list of functions')
_TOOLS: tuple[_Check, str] = (_are_tools, 'a list of functions, toolsets and agents')
_MODEL: tuple[_Check, str] = (
    (str, ModelConfig, Model),
    'a name such as `provider:model`, a `ModelConfig` or a `Model`',
)

_CHECKS: Mapping[str, tuple[_Check, str]] = {
    'agree': (_is_count, 'a whole number of solutions, 1 for no comparison'),
    'artifacts': (_is_text_mapping, 'a dict of texts by name'),
    'code_rules': ((CodeRules,), '`habilis.CodeRules(…)`; for `small` pass policy'),
    'deps_type': (_is_type, 'a class'),
    'escalate': _MODEL,
    'gates': _FUNCTIONS,
    'helpers': (_is_helpers, 'True, or a dict of `Helper(…)` and agents by name'),
    'history': (_is_messages, 'a list of messages, such as `Result.messages`'),
    'hooks': _FUNCTIONS,
    'instructions': (is_instructions, 'text, a function that returns text, or a list of these'),
    'library': (is_library_choice, 'the folder of a tool library, a `Library`, or True for the one of the settings'),
    'limits': ((RunLimits,), '`RunLimits(…)`'),
    'meta': _DATA,
    'model': _MODEL,
    'model_settings': (_is_model_settings, f'a dict with some of {", ".join(ModelSettings.__annotations__)}'),
    'name': _TEXT,
    'observations': ((Bounds,), '`Bounds(…)`'),
    'on_disagreement': (lambda value: value in ('first', 'ask'), "'first' or 'ask'"),
    'output_type': (
        _is_output_type,
        'a type such as `int`, `list[str]`, a dataclass, a TypedDict or a pydantic model, not a dict or a JSON schema',
    ),
    'output_validators': _FUNCTIONS,
    'policy': ((str, Policy), "'general', 'small', or an object with the methods of `habilis.agent.Policy`"),
    'run_id': _TEXT,
    'sandbox': ((str, Sandbox, Mapping), 'the name of a backend, a `Sandbox`, or several by name'),
    'session': _TEXT,
    'skills': (_are_skills, 'a list of folders with SKILL.md, zip files and names of skills'),
    'summary': _TEXT,
    'tools': _TOOLS,
    'user': _TEXT,
    'variables': _DATA,
}
"""What an argument must be, and the same in words."""


def checked_library(library: LibraryChoice | None, *, python: bool) -> LibraryChoice | None:
    """The library of an agent; None for none. Its tools are called by code."""
    if library is None or library is False:
        return None
    if not python:
        msg = 'the tools of a library are called by code, and this agent writes none (python=False)'
        raise AgentError(msg)
    return library


def checked_skills(sources: Iterable[SkillSource], sandbox: SandboxChoice, *, python: bool) -> tuple[Skill, ...]:
    """The skills of an agent, which are files that its code reads. Raises `SkillError` or `AgentError`."""
    if (skills := load_skills(sources)) and not python:
        msg = 'skills are files that code reads, and this agent writes none (python=False)'
        raise AgentError(msg)
    if skills and not isinstance(sandbox, str):
        msg = 'skills: only for a sandbox that the agent creates, and this one was passed in'
        raise AgentError(msg)
    return skills


def split_task(task: object) -> tuple[str, tuple[File, ...], str]:
    """The words of a task, its images and files, and what a memory has for it."""
    if not is_list(task) and not is_tuple(task):
        return cast('str', task), (), ''  # checked with the request
    parts = task
    wrong = next((part for part in parts if not isinstance(part, str | File | Recollection)), None)
    if wrong is not None:
        msg = f"a part of the task must be text, Image('a.png') or File('a.csv'), not {describe_value(wrong)}"
        raise TypeError(msg)
    words = '\n'.join(part for part in parts if isinstance(part, str))
    memory = '\n'.join(part.text for part in parts if isinstance(part, Recollection))
    return words, tuple(part for part in parts if isinstance(part, File)), memory


def check_task(task: object) -> None:
    """Refuse an empty task, or one that is not text."""
    if not isinstance(task, str):
        msg = f'the task must be text, not {describe_value(task)}'
        raise TypeError(msg)
    if not task.strip():
        msg = 'the task is empty: say what to do'
        raise AgentError(msg)


def check_model_settings(model: ModelChoice | None, model_settings: ModelSettings | None) -> None:
    """Refuse settings for a model that is already made."""
    if model_settings and not isinstance(model, str | None):
        msg = 'model_settings are for a model given by its name; set them in the ModelConfig or model itself'
        raise AgentError(msg)


def check_types(where: str, given: Mapping[str, object]) -> None:
    """Refuse arguments of the wrong type. None counts as absent."""
    for name, value in given.items():
        check, words = _CHECKS.get(name, ((object,), ''))
        if value is not None and not (isinstance(value, check) if isinstance(check, tuple) else check(value)):
            msg = f'{where}: {name} must be {words}, not {describe_value(value)}'
            raise TypeError(msg)
