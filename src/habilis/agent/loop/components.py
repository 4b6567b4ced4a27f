"""The components of one run, put together by `setup.py`."""

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field

from habilis.agent.context.conversation import Conversation
from habilis.agent.durable.checkpoints import Checkpoints
from habilis.agent.durable.recorder import Recorder
from habilis.agent.hooks.dispatch import Dispatcher
from habilis.agent.loop.agreement import Comparison
from habilis.agent.loop.code_turn import CodeRunner
from habilis.agent.loop.final_answer import FinalAnswer
from habilis.agent.loop.limits import Meter
from habilis.agent.loop.model_turn import ModelTurn
from habilis.agent.loop.offered_tools import OfferedTools
from habilis.agent.loop.output_validators import OutputValidators
from habilis.agent.loop.tool_calls import ToolCaller
from habilis.agent.policies import History, Policy
from habilis.models.usage import Ledger
from habilis.tools import Toolbox

parent_ledgers: ContextVar[tuple[Ledger, ...]] = ContextVar('parent_ledgers', default=())
"""Ledgers of the runs around this one: a run inside a tool of another counts for that one too."""


@dataclass(kw_only=True)
class Components:
    """What a run is made of."""

    run_id: str
    conversation: Conversation
    model: ModelTurn
    code: CodeRunner | None
    """None for an agent without Python."""

    tools: ToolCaller
    toolbox: Toolbox
    offered: OfferedTools
    answer: FinalAnswer
    validators: OutputValidators
    policy: Policy
    history: History
    meter: Meter
    ledger: Ledger
    parent_ledgers: tuple[Ledger, ...]
    events: Dispatcher
    recorder: Recorder | None
    summary: str | None
    """Prompt of the final summary; None for no summary."""

    scripted: bool
    variables: Mapping[str, object] = field(default_factory=dict[str, object])
    temperature: float | None = None
    """Temperature of all requests; None leaves it to the settings of the model."""

    checkpoints: Checkpoints | None = None
    """Stores the files of the workspace after each step, where the agent was asked to."""

    comparison: Comparison | None = None
    """Solves the task again to compare the answers, where the agent was asked to."""
