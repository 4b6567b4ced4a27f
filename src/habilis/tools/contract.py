"""What the house knows of tools. Read this first.

A *tool* is a typed function of the host. A *toolset* is a group of them. A *toolbox* is what one run uses: every call
goes through its *gates*, and leaves a *record*. All that flows between them is here, as frozen data.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from habilis.core.codec import Json
from habilis.core.errors import HabilisError
from habilis.sandbox.contract import Side

OnError = Literal['raise', 'none']
"""What code gets when a tool fails: the exception, or `None` (and the error is shown to the model)."""

Preview = Callable[..., str | Awaitable[str]]
"""Takes a tool's arguments and says what the call would change, as a unified diff. Changes nothing itself."""


@dataclass(frozen=True, kw_only=True)
class ToolOptions:
    """How a tool is called."""

    timeout: float | None = None
    """Seconds for one attempt."""

    retries: int = 0
    """So many more attempts after one that failed."""

    idempotent: bool = True
    """Whether a second call with the same arguments does no harm."""

    in_memory: bool = False
    """All that it changes is memory of this process: a run that is resumed in another calls it again, to have it."""

    needs_approval: bool = False
    """A person is asked before each call."""

    side: Side = 'code'
    on_error: OnError = 'raise'
    as_sync: bool = False
    """An `async def` that code calls without `await`."""

    preview: Preview | None = None


@dataclass(frozen=True, kw_only=True)
class GateCall:
    """A call, as gates see it: the arguments were validated, and defaults are filled in."""

    id: int
    """Counts the calls of a toolbox; records and approvals of the same call carry it too."""

    tool: str
    arguments: Mapping[str, object]
    """By parameter; `*args` is one tuple and `**kwargs` one dict, under their names."""

    side: Side = 'code'
    """Who calls: `code` or `model`."""


@dataclass(frozen=True, kw_only=True)
class Allow:
    """No objection. The same as `None`: later gates are still asked."""


@dataclass(frozen=True)
class Deny:
    """The call does not happen (or its result is withheld). The model sees the reason."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class Change:
    """The call happens with other arguments. Those not named stay as they are."""

    arguments: Mapping[str, object]


@dataclass(frozen=True)
class Ask:
    """A person decides, after all gates were heard."""

    question: str = ''


@dataclass(frozen=True)
class ChangeResult:
    """The code gets this instead of what the tool returned."""

    value: object


Decision = Allow | Deny | Change | Ask
ResultDecision = ChangeResult | Deny
Gate = Callable[[GateCall], 'Decision | Awaitable[Decision | None] | None']
"""Sees each call first. Runs on the event loop, so it must not block."""

ResultGate = Callable[[GateCall, object], 'ResultDecision | Awaitable[ResultDecision | None] | None']
"""Sees each result. It is told from a `Gate` by its second parameter."""


@dataclass(frozen=True, kw_only=True)
class ApprovalRequest:
    """A question to a person: may this call happen?"""

    id: int
    tool: str
    arguments: Mapping[str, object]
    question: str
    diff: str = ''
    """What would change, as a unified diff; empty if the tool has no preview."""


Approve = Callable[[ApprovalRequest], 'bool | Deny | Awaitable[bool | Deny]']
"""Asks a person. Only `True` is a yes; `Deny` says why not. A plain function may block: it runs on a thread."""

PREVIEW = 'preview '
"""Begins the name under which a journal keeps what a person was shown of a call."""


class CallJournal(Protocol):
    """Keeps the calls of a run, so that none is made twice."""

    async def around_call(self, call: GateCall, once: bool, work: Callable[[], Awaitable[object]]) -> object:
        """What the call gave: from the record, or by doing the work. `once`: it must never be begun again."""
        ...

    async def approve(
        self, request: ApprovalRequest, person: Callable[[], Awaitable[bool | Deny]] | None
    ) -> bool | Deny:
        """What a person has said: from the record, or now; without a person who is there, the run waits for one."""
        ...


@dataclass(frozen=True, kw_only=True)
class ModelFunction:
    """A tool that the model itself may call."""

    name: str
    description: str
    parameters: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """JSON schema of an object."""


class NeedsAnswer(HabilisError):
    """Only a person can answer this. The run ends with the question, and goes on with the answer."""

    @property
    def question(self) -> str:
        """What the person is asked."""
        return str(self.args[0]) if self.args else ''
