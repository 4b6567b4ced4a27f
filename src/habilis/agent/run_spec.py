"""What one run is given: its options as type checkers see them, and `RunSpec`, which they become."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self, TypedDict

from habilis.agent.contract import RunLimits
from habilis.agent.durable.records import Inputs
from habilis.agent.hooks.dispatch import Hook
from habilis.agent.options import AGENT_OPTIONS, AnyTool, Task, check_task, check_types, split_task
from habilis.agent.wrong_guesses import check_names
from habilis.journal import OnChange
from habilis.models.contract import Message
from habilis.models.files import File
from habilis.sandbox import Sandbox


class _LiveOptions(TypedDict, total=False):
    """Options that are not recorded, or count anew: who resumes a run passes them again."""

    tools: Sequence[AnyTool] | None
    deps: object
    limits: RunLimits | None
    max_steps: int | None
    hooks: Sequence[Hook] | None


class _NewRunOptions(_LiveOptions, total=False):
    variables: Mapping[str, object] | None
    artifacts: Mapping[str, str] | None
    run_id: str | None
    meta: Mapping[str, object] | None


class TurnOptions(_NewRunOptions, total=False):
    """The options of `Chat.run` beside `output_type`. `Agent.run` explains them."""

    resume: bool


class StartOptions(_NewRunOptions, total=False):
    """The options of `Agent.start` beside `output_type`."""

    history: Sequence[Message] | None
    user: str | None
    session: str | None


class RunOptions(StartOptions, TurnOptions, total=False):
    """The options of `Agent.run` beside `output_type`."""


class ResumptionOptions(_LiveOptions, total=False):
    """The options of `Agent.resume` beside `output_type`."""

    user: str | None
    on_change: OnChange


@dataclass(frozen=True, kw_only=True)
class RunSpec(Inputs):
    """A run to start or to resume. `Inputs` is the part that is recorded; the rest is known to this process only.

    `Agent.run` and `Agent.resume` explain the options.
    """

    attached: Sequence[File] = ()
    """Images and files that came with the task, with their data."""

    output_type: Any = None
    tools: Sequence[AnyTool] = ()
    deps: object = field(default=None, repr=False)
    max_steps: int | None = None
    hooks: Sequence[Hook] = ()
    run_id: str = ''
    resume: bool = False
    user: str | None = None
    session: str = ''
    answer: str | None = None
    on_change: OnChange = 'fail'
    own_sandbox: Sandbox | None = field(default=None, repr=False)
    """Made for this run, and closed with it; for subagents."""

    @property
    def is_resumption(self) -> bool:
        """Whether it names a run to resume, whose task is in its record."""
        return bool(self.run_id) and not self.task

    @property
    def has_limits(self) -> bool:
        """Whether it names limits."""
        return self.limits is not None or self.max_steps is not None

    def limits_or(self, default: RunLimits) -> RunLimits:
        """The limits of this run; by default those of its agent."""
        limits = self.limits or default
        return limits if self.max_steps is None else replace(limits, steps=self.max_steps)

    def with_recorded(self, inputs: Inputs, files: Sequence[File]) -> Self:
        """The run with what is in its record, and with these files of it."""
        recorded = {item.name: getattr(inputs, item.name) for item in fields(Inputs)}
        return replace(self, **recorded, attached=files)


def run_spec(
    task: Task,
    options: Mapping[str, Any],
    known: type = RunOptions,
    *,
    where: str = 'a run',
    elsewhere: Mapping[str, Iterable[str]] | None = None,
) -> RunSpec:
    """A new run with these options, of those that are known. Raises `TypeError` or `AgentError` if one is wrong."""
    check_names(where, options, option_names(known), elsewhere or {'Agent(…)': AGENT_OPTIONS})
    words, files, memory = split_task(task)
    check_task(words)
    given = _checked('a run', options)
    if given.get('resume') and not given.get('run_id'):
        msg = "resume=True needs the name of the run: run(task, run_id='nightly', resume=True)"
        raise TypeError(msg)
    return RunSpec(task=words, attached=files, memory=memory, **given)


def resume_spec(run_id: str, answer: str | None, options: Mapping[str, Any]) -> RunSpec:
    """A run to resume with these options. Raises `TypeError` if one is wrong."""
    check_names('resume', options, option_names(ResumptionOptions), {'run(…)': RUN_OPTIONS, 'Agent(…)': AGENT_OPTIONS})
    return RunSpec(task='', run_id=run_id, answer=answer, **_checked('resume', options))


def option_names(options: type) -> tuple[str, ...]:
    """The names of the options of a method."""
    return ('output_type', *options.__annotations__)


def _checked(where: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are given: None counts as absent."""
    check_types(where, options)
    given = {name: value for name, value in options.items() if value is not None}
    return {**given, 'history': tuple(given['history'])} if 'history' in given else given


RUN_OPTIONS = option_names(RunOptions)
