"""The result of a run, its steps and its limits. Read this first."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal

from typing_extensions import TypeVar

from habilis.models.contract import Message, Reply, Usage
from habilis.sandbox import ToolCall
from habilis.sandbox.contract import Cell

T = TypeVar('T', default=Any)
LOCAL_SECONDS = 600.0
"""Default time limit of a run with a model on this machine, whose processor it keeps busy: ten minutes are enough for
twenty steps of a small model, and a run that goes in circles ends within a coffee break."""

Ended = Literal[
    'answer',
    'question',
    'approval',
    'max_steps',
    'max_seconds',
    'max_requests',
    'max_tokens',
    'max_cost',
    'max_tool_calls',
    'invalid_output',
]
"""Why a run stopped. All but `answer` can be resumed: `agent.resume(result.run_id)`; `approval` once a person has
answered."""


@dataclass(frozen=True, kw_only=True)
class RunLimits:
    """Limits of one run. Reaching one ends the run by its name; None is no limit."""

    steps: int | None = 20
    """Maximum number of model replies that are acted on."""

    seconds: float | Literal['default'] | None = 'default'
    """Time in which the run works, without the time that a person takes to approve a call. By default
    `LOCAL_SECONDS` with a model on this machine, no limit with others."""

    requests: int | None = None
    """Maximum number of model requests, repairs and summary included."""

    tokens: int | None = None
    """Maximum number of input and output tokens, as the provider counts them."""

    cost: float | None = None
    """Maximum cost in US dollars, where prices are known."""

    tool_calls: int | None = None

    def __post_init__(self) -> None:
        for name in ('steps', 'seconds', 'requests', 'tokens', 'cost', 'tool_calls'):
            value = getattr(self, name)
            if name == 'seconds' and value == 'default':
                continue
            kind, words = (int | float, 'a number') if name in ('seconds', 'cost') else (int, 'a whole number')
            good = isinstance(value, kind) and value is not True and value > 0 and math.isfinite(value)
            if value is not None and not good:
                msg = f'RunLimits.{name} must be {words} more than zero, or None for no limit, not {value!r}'
                raise ValueError(msg)


@dataclass(frozen=True, kw_only=True)
class Step:
    """One turn of the loop: the reply, the code that was run, and what the model saw of it."""

    number: int
    reply: Reply
    code: str | None = None
    """The code that was run, byte for byte as the model wrote it."""

    cell: Cell | None = None
    calls: tuple[ToolCall, ...] = ()
    observation: str | None = None
    """Text sent back to the model; None in the step that ended the run."""

    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """A decision that a run waits for."""

    path: str
    """Path in the journal, to answer this one and not another."""

    question: str
    tool: str = ''
    """The tool that waits for approval; empty for other questions."""

    arguments: Mapping[str, object] = field(default_factory=dict[str, object])
    diff: str = ''
    """What the call would change, if the tool has a preview."""

    code: str = ''
    """The code that makes the call."""


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Whether independent solutions of the same task gave the same answer. True in a condition only if they did."""

    agreed: bool | None
    """None if it could not be found out; see `reason`."""

    outputs: tuple[object, ...] = ()
    """The answers, the first solution's first."""

    reason: str = ''
    """Why there was no comparison, or why the larger model did not decide."""

    decided_by: str = ''
    """Name of the model that the task was handed to after a disagreement."""

    def __bool__(self) -> bool:
        return self.agreed is True


@dataclass(frozen=True, kw_only=True)
class Result(Generic[T]):
    """The outcome of a run."""

    output: T
    """The answer. None unless `ended` is `answer`."""

    ended: Ended
    run_id: str
    steps: tuple[Step, ...] = ()
    usage: Usage = field(default_factory=Usage)
    usage_by_model: Mapping[str, Usage] = field(default_factory=dict[str, Usage])
    seconds: float = 0.0
    messages: tuple[Message, ...] = ()
    """The conversation, to continue it: `agent.run('…', history=result.messages)`."""

    variables: Mapping[str, object] = field(default_factory=dict[str, object])
    """The variables passed to the run, with their values at its end."""

    summary: str | None = None
    question: str | None = None
    """The question to the user, if the run ended with `question`."""

    waiting: tuple[Waiting, ...] = ()
    """Open decisions, if the run ended with `approval`: use `habilis runs approve` or `agent.answer`."""

    scripted: bool = False
    """Whether the replies came from a script, not from a model."""

    agreement: Agreement | None = None
    """Comparison with further solutions, for an agent with `agree=2` or more."""

    @property
    def cost(self) -> float | None:
        """US dollars, where prices are known."""
        return self.usage.cost
