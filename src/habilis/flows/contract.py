"""What the house knows of flows. Read this first.

A *flow* is an `async def` whose *steps* are recorded in a journal as they end. The same flow can be gone on with in
another process: what was recorded is answered from there, and the first step without a record is done. Between its
steps a flow is plain Python, and has to do the same again when it is given the same answers: what depends on the time,
on chance or on the world belongs into a step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from habilis.core.codec import Json
from habilis.core.errors import HabilisError


class FlowError(HabilisError):
    """A flow cannot do what was asked; the root of what flows raise on purpose."""


class FlowDefinitionError(FlowError):
    """A function cannot be a flow or step as it is, or the parts of a `Workflow` do not fit together."""


class FlowArgumentsError(FlowError):
    """The arguments do not fit the parameters, or cannot be saved. Nothing was recorded, nothing was done."""


class StepTimeout(FlowError, TimeoutError):
    """A step, or a flow, took longer than its time limit. The message names it."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a run waits for a person to answer."""

    path: str
    """The place in the run: `answer_run` wants it if there are several questions."""

    request: Json
    """All that was said with it."""

    @property
    def text(self) -> str:
        """The question, in words."""
        return str(self.request.get('question', '')) if isinstance(self.request, dict) else str(self.request)


class FlowPaused(FlowError):
    """The run waits for a person. Answer with `answer_run`, then resume it: here, or elsewhere, days later."""

    def __init__(self, run: str = '', questions: Sequence[Question] = ()) -> None:
        lines = ''.join(f'\n  {question.path}: {question.text}' for question in questions)
        super().__init__(f'{run} waits for a person to answer; answer, then resume it:{lines}')
        self.run = run
        self.questions = tuple(questions)


@dataclass(frozen=True, kw_only=True)
class StepOptions:
    """How a step is done."""

    retries: int = 0
    """So many more attempts after one that failed. What was recorded inside the step is not done again."""

    retry_delay: float = 0.5
    """Seconds before the second attempt; doubled before each further one."""

    timeout: float | None = None
    """Seconds for one attempt."""

    idempotent: bool = True
    """False: never begun a second time. If it was under way when the process died, a person is asked."""


State = Literal['done', 'failed', 'running', 'waiting', 'not run']


@dataclass(frozen=True, kw_only=True)
class StepStatus:
    """What the records say of one step."""

    path: str
    name: str
    state: State
    seconds: float | None = None
    """How long it took, where that is known."""

    error: str = ''


@dataclass(frozen=True, kw_only=True)
class Job:
    """A run that is to be begun, or gone on with, somewhere."""

    target: str = ''
    """`module:name` of a flow. Empty to go on with the run that `run` names."""

    inputs: Mapping[str, object] = field(default_factory=dict[str, object])
    """Its arguments by name, as plain data."""

    run: str = ''
    user: str = ''
    session: str = ''


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a job ended, or where it waits."""

    run: str
    status: Literal['waiting', 'stopped', 'failed', 'done']
    value: object = None
    """What the flow returned, if it is done."""

    error: str = ''
