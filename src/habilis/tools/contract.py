"""The data types and protocols of tools. Read this first.

A *tool* is a typed function of the host. A *toolset* is a group of tools. A *toolbox* has the tools of one run: every
call goes through its *gates* and leaves a record, a `ToolCall`.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from habilis.core.approval import Approval
from habilis.core.codec import Json
from habilis.core.errors import HabilisError
from habilis.sandbox.contract import Side

OnError = Literal['raise', 'none']
"""What the code gets when a tool fails: the exception, or `None` (the error is shown to the model)."""

Preview = Callable[..., str | Awaitable[str]]
"""Takes the arguments of a call and returns a unified diff of what it would change. Has no effects."""


@dataclass(frozen=True, kw_only=True)
class ToolOptions:
    """The options of a tool."""

    timeout: float | None = None
    """Timeout of one attempt, in seconds."""

    retries: int = 0
    """Number of retries after a failed attempt."""

    read_only: bool = False
    """Whether it changes nothing outside of its run. Such a tool may also be called where nothing may be changed."""

    destructive: bool = False
    """Whether it may delete or overwrite something. A person who is asked about a call is told so."""

    idempotent: bool = True
    """Whether a second call with the same arguments does no harm."""

    in_memory: bool = False
    """Its effects are only in the memory of this process: a run that is resumed elsewhere repeats its calls."""

    needs_approval: bool = False
    """A person must approve each call."""

    side: Side = 'code'
    on_error: OnError = 'raise'
    as_sync: bool = False
    """Code calls this `async def` without `await`."""

    preview: Preview | None = None


@dataclass(frozen=True, kw_only=True)
class GateCall:
    """A call as gates see it, with validated arguments and defaults filled in."""

    id: int
    """Counts the calls of a toolbox; the record and the approval request of a call have the same id."""

    tool: str
    arguments: Mapping[str, object]
    """By parameter; `*args` is one tuple and `**kwargs` one dict, under their names."""

    side: Side = 'code'
    """Who calls: `code` or `model`."""


@dataclass(frozen=True, kw_only=True)
class Allow:
    """No objection, the same as `None`. Later gates still decide."""


@dataclass(frozen=True)
class Deny:
    """The call is not made, or its result is withheld. The model sees the reason."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class Change:
    """The call is made with other arguments. Those not named stay unchanged."""

    arguments: Mapping[str, object]


@dataclass(frozen=True)
class Ask:
    """A person decides, after all gates."""

    question: str = ''


@dataclass(frozen=True)
class ChangeResult:
    """The code gets this value instead of the result."""

    value: object


Decision = Allow | Deny | Change | Ask
ResultDecision = ChangeResult | Deny
Gate = Callable[[GateCall], 'Decision | Awaitable[Decision | None] | None']
"""Decides about each call. Runs on the event loop, so it must not block."""

ResultGate = Callable[[GateCall, object], 'ResultDecision | Awaitable[ResultDecision | None] | None']
"""Decides about each result. Has a second parameter, unlike a `Gate`."""


@dataclass(frozen=True, kw_only=True)
class ApprovalRequest:
    """A question to a person: may this call be made?"""

    id: int
    tool: str
    arguments: Mapping[str, object]
    question: str
    diff: str = ''
    """What would change, as a unified diff; empty if the tool has no preview."""

    code: str = ''
    """The code of the cell that makes the call; empty for a call of the model."""


Approve = Callable[[ApprovalRequest], 'bool | Approval | Awaitable[bool | Approval]']
"""Asks a person. Only `True` and an `Approval` approve. A plain function may block: it runs on a thread."""

PREVIEW = 'preview '
"""Prefix of the name under which a journal records the preview that a person was shown."""


class CallJournal(Protocol):
    """Records the calls of a run, so that none is made twice."""

    async def around_call(self, call: GateCall, once: bool, work: Callable[[], Awaitable[object]]) -> object:
        """The result of a call, from its record or by doing the work. `once`: it must never be started again."""
        ...

    async def approve(self, request: ApprovalRequest, person: Callable[[], Awaitable[Approval]] | None) -> Approval:
        """The answer of a person, from the record or now. Without a person, the run waits for an answer."""
        ...


@dataclass(frozen=True, kw_only=True)
class ModelFunction:
    """A tool that the model itself may call."""

    name: str
    description: str
    parameters: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """JSON schema of an object."""


class NeedsAnswer(HabilisError):
    """A tool needs an answer from a person. The run stops with the question, and is resumed with the answer."""

    @property
    def question(self) -> str:
        """The question to the person."""
        return str(self.args[0]) if self.args else ''
