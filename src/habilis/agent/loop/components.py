"""The components of one run, put together by `setup.py`."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

from habilis.agent.context.conversation import Conversation
from habilis.agent.contract import Ended
from habilis.agent.durable.checkpoints import Checkpoints
from habilis.agent.loop.agreement import Comparison
from habilis.agent.loop.code_turn import CodeRunner
from habilis.agent.loop.foundation import Foundation
from habilis.agent.loop.model_turn import ModelTurn
from habilis.agent.loop.offered_tools import OfferedTools
from habilis.agent.loop.output_validators import OutputValidators
from habilis.agent.loop.tool_calls import ToolCaller
from habilis.models.usage import Ledger

parent_ledgers: ContextVar[tuple[Ledger, ...]] = ContextVar('parent_ledgers', default=())
"""Ledgers of the runs around this one: a run inside a tool of another counts for that one too."""


@dataclass(frozen=True, kw_only=True)
class CallingRun:
    """A run whose step is under way, as a run inside one of its tools knows it."""

    id: str
    depth: int
    """How many runs are around what its tools do, itself included."""

    limit_reached: Callable[[], Ended | None]
    """The limit that it, or a run around it, has reached, with all that was used inside it."""


calling_run: ContextVar[CallingRun | None] = ContextVar('calling_run', default=None)
"""The run whose tool is running."""


@dataclass(frozen=True, kw_only=True)
class Components(Foundation):
    """What a run is made of."""

    conversation: Conversation
    model: ModelTurn
    code: CodeRunner | None
    """None for an agent without Python."""

    tools: ToolCaller
    offered: OfferedTools
    validators: OutputValidators
    parent_ledgers: tuple[Ledger, ...]
    summary: str | None
    """Prompt of the final summary; None for no summary."""

    scripted: bool
    temperature: float | None = None
    """Temperature of all requests; None leaves it to the settings of the model."""

    checkpoints: Checkpoints | None = None
    """Stores the files of the workspace after each step, where the agent was asked to."""

    comparison: Comparison | None = None
    """Solves the task again to compare the answers, where the agent was asked to."""

    parent: CallingRun | None = None
    """The run whose tool started this one."""

    def limit_reached(self, steps: int = 0) -> Ended | None:
        """The limit that this run or one around it has reached."""
        reached = self.meter.limit_reached(steps, self.ledger.total)
        return reached or (self.parent.limit_reached() if self.parent is not None else None)

    def as_calling(self) -> CallingRun:
        """This run, for the runs inside its tools."""
        depth = 1 if self.parent is None else self.parent.depth + 1
        return CallingRun(id=self.spec.run_id, depth=depth, limit_reached=self.limit_reached)
