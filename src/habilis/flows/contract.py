"""The contract of flows: errors, options and results. Read this first.

A *flow* is an `async def` whose *steps* are recorded in a journal as they end. Any process can resume the flow:
recorded steps return their recorded results, and the first step without a record runs. Between its steps a flow is
plain Python that must be deterministic: code that depends on time, randomness or the outside world belongs in a step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from habilis.core.codec import Json
from habilis.core.errors import HabilisError


class FlowError(HabilisError):
    """The base of all errors that flows raise."""


class FlowDefinitionError(FlowError):
    """A function cannot be a flow or step, or the parts of a `Workflow` do not fit together."""


class FlowArgumentsError(FlowError):
    """The arguments do not match the parameters, or cannot be recorded. Nothing was run or recorded."""


class StepTimeout(FlowError, TimeoutError):
    """A step or a flow took longer than its timeout. The message names it."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question that a run waits for a person to answer."""

    path: str
    """The path in the run; `answer_run` needs it if there are several questions."""

    request: Json
    """Everything that was recorded with the question."""

    @property
    def text(self) -> str:
        """The question itself."""
        return str(self.request.get('question', '')) if isinstance(self.request, dict) else str(self.request)


class FlowPaused(FlowError):
    """The run waits for a person. Answer with `answer_run`, then resume it: in any process, at any time."""

    def __init__(self, run: str = '', questions: Sequence[Question] = ()) -> None:
        lines = ''.join(f'\n  {question.path}: {question.text}' for question in questions)
        super().__init__(f'{run} waits for a person: answer its questions, then resume it:{lines}')
        self.run = run
        self.questions = tuple(questions)


@dataclass(frozen=True, kw_only=True)
class StepOptions:
    """Options of a step."""

    retries: int = 0
    """Maximum number of attempts after the first. Steps recorded inside the step are not repeated."""

    retry_delay: float = 0.5
    """Seconds before the first retry; doubled before each further one."""

    timeout: float | None = None
    """Seconds for one attempt."""

    idempotent: bool = True
    """False: never started twice. If it was running when the process died, a person is asked."""


State = Literal['done', 'failed', 'running', 'waiting', 'not run']


@dataclass(frozen=True, kw_only=True)
class StepStatus:
    """The state of one step, according to the records."""

    path: str
    name: str
    state: State
    seconds: float | None = None
    """Duration, where it is known."""

    error: str = ''


@dataclass(frozen=True, kw_only=True)
class Job:
    """A run that an engine shall start or resume."""

    target: str = ''
    """`module:name` of a flow. Empty to resume the run named by `run`."""

    inputs: Mapping[str, object] = field(default_factory=dict[str, object])
    """Arguments by name, as plain data."""

    run: str = ''
    user: str = ''
    session: str = ''


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a job ended, or that it waits for a person."""

    run: str
    status: Literal['waiting', 'stopped', 'failed', 'done']
    value: object = None
    """The return value of the flow, if it is done."""

    error: str = ''
