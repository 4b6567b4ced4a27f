"""What a session tells its view, and what it asks of it. Read this first.

A *view* is whatever shows a session to a person: a terminal, a page, another protocol. It sends messages and commands
by calling the methods of `Session`, and gets events, questions and approvals back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

from habilis.agent.contract import Result, Waiting
from habilis.agent.events import AgentEvent
from habilis.assistant.file_edits import FileEdit
from habilis.assistant.project_instructions import InstructionFile
from habilis.core.errors import JournalError
from habilis.core.events import Event
from habilis.memory import MemoryContext
from habilis.tools import Approval, ApprovalRequest

# Events ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TurnStarted(Event):
    """A turn starts, or goes on from its record. `run` is its id in the journal."""

    kind: ClassVar[Literal['turn_started']] = 'turn_started'
    session: str
    message: str
    """What the user said."""

    memory: MemoryContext | None = None
    """What the memory has added to the message; None for a turn that goes on."""

    instructions: Sequence[InstructionFile] | None = None
    """Those of the project, as this turn has them; likewise."""


@dataclass(frozen=True, kw_only=True)
class TurnEnded(Event):
    """A turn has a result, or was stopped by an error."""

    kind: ClassVar[Literal['turn_ended']] = 'turn_ended'
    session: str
    result: Result[Any] | None = None
    error: BaseException | None = None
    edits: Sequence[FileEdit] = ()
    """What it has changed in the shared folder, in all."""


@dataclass(frozen=True, kw_only=True)
class FilesEdited(Event):
    """Code or a tool has changed files of the shared folder. What a person has approved with its diff is not in it."""

    kind: ClassVar[Literal['files_edited']] = 'files_edited'
    session: str
    edits: Sequence[FileEdit]


@dataclass(frozen=True, kw_only=True)
class TurnAbandoned(Event):
    """The unfinished turn cannot be continued. The message that should have continued it starts a new turn."""

    kind: ClassVar[Literal['turn_abandoned']] = 'turn_abandoned'
    session: str
    error: JournalError


SessionEvent = AgentEvent | TurnStarted | FilesEdited | TurnEnded | TurnAbandoned
"""What happens in a session: the events of its runs, between the start and the end of their turn."""


# The view -------------------------------------------------------------------------------------------------------------


class View(Protocol):
    """Shows a session to its user, and asks them. A question is cancelled with its turn."""

    @property
    def is_present(self) -> bool:
        """Whether somebody can answer. If not, nothing is asked: a call that needs approval waits in the journal."""
        ...

    def show(self, event: SessionEvent) -> None:
        """Called with every event, in order, on the event loop of the session."""
        ...

    async def answer(self, question: str) -> str | None:
        """The answer to a question of the model; None for no answer."""
        ...

    async def approve(self, request: ApprovalRequest) -> bool | Approval:
        """Whether a tool may be called, and perhaps others after it."""
        ...

    async def may_repeat(self, call: Waiting) -> bool:
        """Whether to repeat a call that was under way when the turn was cut short, and may have had its effect."""
        ...


class NoView:
    """Nobody is there."""

    is_present = False

    def show(self, event: SessionEvent) -> None:
        """Nothing."""

    async def answer(self, question: str) -> str | None:
        """No answer."""

    async def approve(self, request: ApprovalRequest) -> bool | Approval:
        """No."""
        return False

    async def may_repeat(self, call: Waiting) -> bool:
        """No."""
        return False


# State -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Unfinished:
    """A turn that was stopped or failed."""

    run: str
    message: str
    """What the user said."""
