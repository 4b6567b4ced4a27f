"""What a run is started with, and a started run with everything that is closed with it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from habilis.agent.durable.recorder import Recorder
from habilis.agent.durable.records import Prompt
from habilis.agent.durable.sessions import SessionState
from habilis.agent.hooks.dispatch import Dispatcher
from habilis.agent.library import ToolLibrary
from habilis.agent.loop.agreement import StartState
from habilis.agent.loop.run import Run
from habilis.agent.loop.sandboxes import Sandboxes
from habilis.agent.run_spec import RunSpec
from habilis.journal.lookup import check_user
from habilis.models.contract import Model
from habilis.models.usage import Ledger
from habilis.tools.contract import CallJournal

LoadModel = Callable[[], Model]


@dataclass(frozen=True, kw_only=True)
class RunInputs:
    """A run to start, with what the agent has for it: model, instructions, sandboxes, recorder."""

    spec: RunSpec
    model: Model
    instructions: str
    ledger: Ledger
    start: SessionState = field(default_factory=SessionState)
    """The conversation that the run continues."""

    sandboxes: Sandboxes | None = None
    """Those of the conversation, which have its variables already; None to open some for this run."""

    library: ToolLibrary | None = None
    """Where code finds tools that it calls by name, beside those it is told about."""

    found_tools: frozenset[str] = frozenset()
    """Names of the tools of the library that fit the task."""

    helpers: frozenset[str] = frozenset()
    """Names of the tools that search and extend the library, and delegate."""

    recorder: Recorder | None = None
    calls: CallJournal | None = None
    """Answers tool calls instead of the recorder."""

    temperature: float | None = None
    """Temperature of all requests."""

    load_larger: LoadModel | None = None
    """Loads the model to escalate to."""


@dataclass(frozen=True, kw_only=True)
class StartedRun:
    """A run and everything that is closed with it."""

    run: Run
    sandboxes: Sandboxes | None
    events: Dispatcher
    prompt: Prompt
    spec: RunSpec
    start_state: StartState | None = None
    recorder: Recorder | None = None

    def check_user(self, user: str | None) -> Self:
        """This run. Raises `RunNotFound` if it is recorded for another user; None: any user."""
        if self.recorder is not None:
            check_user(self.recorder.journal.info, user)
        return self

    async def close(self) -> None:
        """Free what was made for the run."""
        self.run.toolbox.release()
        if self.sandboxes is not None:
            await self.sandboxes.close()
        if self.start_state is not None:
            await self.start_state.close()
        await self.events.close()
        if self.recorder is not None:
            await self.recorder.close()
