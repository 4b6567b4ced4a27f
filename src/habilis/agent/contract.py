"""What a run of the agent gives back, and the bounds it keeps. Read this first."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal

from typing_extensions import TypeVar

from habilis.models.contract import Message, Reply, Usage
from habilis.sandbox.contract import Cell
from habilis.sandbox import ToolCall

T = TypeVar('T', default=Any)

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
"""Why a run stopped. All but `answer` can be gone on with: `agent.resume(result.run_id)`; `approval` when a person has
answered what it waits for."""


@dataclass(frozen=True, kw_only=True)
class RunLimits:
    """Bounds for one run. Passing one ends it by name; None is no bound."""

    steps: int | None = 20
    """Replies of the model that are acted on."""

    seconds: float | None = None
    requests: int | None = None
    """Calls of the model, repairs and summary included."""

    tokens: int | None = None
    """Input and output together, as the provider counts them."""

    cost: float | None = None
    """US dollars, where prices are known."""

    tool_calls: int | None = None

    def __post_init__(self) -> None:
        for name in ('steps', 'seconds', 'requests', 'tokens', 'cost', 'tool_calls'):
            value = getattr(self, name)
            kind, words = (int | float, 'a number') if name in ('seconds', 'cost') else (int, 'a whole number')
            good = isinstance(value, kind) and value is not True and value > 0 and math.isfinite(value)
            if value is not None and not good:
                msg = f'RunLimits.{name} must be {words} more than zero, or None for no limit, not {value!r}'
                raise ValueError(msg)


@dataclass(frozen=True, kw_only=True)
class Step:
    """One turn: what the model said, what was run, what it saw of it."""

    number: int
    reply: Reply
    code: str | None = None
    cell: Cell | None = None
    calls: tuple[ToolCall, ...] = ()
    observation: str | None = None
    """What goes back to the model; None where the run ended."""

    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Something that a person has to decide before a run can go on."""

    path: str
    """Where in the run; to answer this one and not another."""

    question: str
    tool: str = ''


@dataclass(frozen=True, kw_only=True)
class Result(Generic[T]):
    """How a run ended, and everything about it."""

    output: T
    """The answer. None unless `ended` is `answer`."""

    ended: Ended
    run_id: str
    steps: tuple[Step, ...] = ()
    usage: Usage = field(default_factory=Usage)
    usage_by_model: Mapping[str, Usage] = field(default_factory=dict[str, Usage])
    seconds: float = 0.0
    messages: tuple[Message, ...] = ()
    """The conversation, to go on with: `agent.run('…', history=result.messages)`."""

    variables: Mapping[str, object] = field(default_factory=dict[str, object])
    """The variables given to the run, as the code left them."""

    summary: str | None = None
    question: str | None = None
    """What the agent wants to know from its user, where it ended with `question`."""

    waiting: tuple[Waiting, ...] = ()
    """What people have to decide, where it ended with `approval`: `habilis runs approve`, or `agent.answer`."""

    scripted: bool = False
    """Its model answered from a script: nothing here was thought by a model."""

    @property
    def cost(self) -> float | None:
        """US dollars, where prices are known."""
        return self.usage.cost
