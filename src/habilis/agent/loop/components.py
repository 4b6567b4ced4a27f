"""What a run is made of."""

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from habilis.agent.loop.code_turn import Actor, StopTool
from habilis.agent.loop.model_turn import Asker
from habilis.agent.loop.limits import Meter
from habilis.agent.loop.tool_calls import Caller
from habilis.agent.context.conversation import Conversation
from habilis.agent.context.output import OutputType
from habilis.agent.durable.recorder import Recorder
from habilis.agent.hooks.dispatch import Watchers
from habilis.models.usage import Ledger
from habilis.tools import Toolbox

above: ContextVar[tuple[Ledger, ...]] = ContextVar('above', default=())
"""Where a run that is started inside a tool of another run writes down what it uses, too."""


class Closing:
    """A run that is done by hand, and closed by whoever does it. The agent that has begun it knows what there is to
    free."""

    free: Callable[[], Awaitable[None]] | None = None

    async def close(self) -> None:
        """Free its sandbox and let go of its record: nothing more is done in it. `agent.resume` finds it there."""
        if self.free is not None:
            await self.free()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


@dataclass(kw_only=True)
class Parts:
    """What a run is made of. Put together by the agent."""

    run_id: str
    task: str
    conversation: Conversation
    system_without_stop: str
    asker: Asker
    actor: Actor | None
    caller: Caller
    toolbox: Toolbox
    stop: StopTool
    output: OutputType
    meter: Meter
    ledger: Ledger
    outer: tuple[Ledger, ...]
    """Of the runs that wait for this one."""

    watchers: Watchers
    recorder: Recorder | None
    summary: str | None
    scripted: bool
    variables: Mapping[str, object] = field(default_factory=dict[str, object])
