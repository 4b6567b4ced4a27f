"""Events of tool calls: calls, logs, approvals, messages to the user."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

from habilis.core.approval import Approval
from habilis.core.events import Event
from habilis.sandbox.contract import ToolCall
from habilis.tools.contract import ApprovalRequest, GateCall


@dataclass(frozen=True, kw_only=True)
class ToolCalled(Event):
    """A tool call starts. Its arguments are not validated yet."""

    kind: ClassVar[Literal['tool_called']] = 'tool_called'
    call: GateCall

    @property
    def text(self) -> str:
        """Name of the tool."""
        return self.call.tool


@dataclass(frozen=True, kw_only=True)
class ToolReturned(Event):
    """A tool call ended: with a result, an error or a denial."""

    kind: ClassVar[Literal['tool_returned']] = 'tool_returned'
    call: ToolCall

    @property
    def text(self) -> str:
        """Name of the tool."""
        return self.call.tool


@dataclass(frozen=True, kw_only=True)
class ToolLogged(Event):
    """A tool called `log`."""

    kind: ClassVar[Literal['tool_logged']] = 'tool_logged'
    call: GateCall
    line: str

    @property
    def text(self) -> str:
        """The logged line."""
        return self.line


@dataclass(frozen=True, kw_only=True)
class ToolProgress(Event):
    """A tool called `Context.progress`."""

    kind: ClassVar[Literal['tool_progress']] = 'tool_progress'
    call: GateCall
    done: float
    total: float | None = None
    message: str = ''

    @property
    def text(self) -> str:
        """How far the tool is, such as `3 of 10: downloading`."""
        share = f'{self.done:g}' if self.total is None else f'{self.done:g} of {self.total:g}'
        return f'{share}: {self.message}' if self.message else share


@dataclass(frozen=True, kw_only=True)
class ApprovalAsked(Event):
    """A person is asked to approve a call."""

    kind: ClassVar[Literal['approval_asked']] = 'approval_asked'
    request: ApprovalRequest

    @property
    def text(self) -> str:
        """The question."""
        return self.request.question


@dataclass(frozen=True, kw_only=True)
class ApprovalAnswered(Event):
    """A person approved or refused a call."""

    kind: ClassVar[Literal['approval_answered']] = 'approval_answered'
    request: ApprovalRequest
    approval: Approval

    @property
    def text(self) -> str:
        """`yes` or `no`; the scope, if more than this call is approved."""
        approval = self.approval
        if not approval.approved:
            return 'no'
        return 'yes' if approval.scope == 'once' else f'{approval.scope} {approval.prefix}'.rstrip()


@dataclass(frozen=True, kw_only=True)
class ApprovalUsed(Event):
    """A call is made without a question, because an earlier answer holds for it."""

    kind: ClassVar[Literal['approval_used']] = 'approval_used'
    request: ApprovalRequest
    number: int
    """This call among those of the tool that were approved in this cell."""

    calls: int | None = None
    """How many there may be; None: any number."""

    @property
    def text(self) -> str:
        """Such as `send_mail: call 3 of 50 in this cell`."""
        of = '' if self.calls is None else f' of {self.calls:,}'
        return f'{self.request.tool}: call {self.number:,}{of} in this cell'


@dataclass(frozen=True, kw_only=True)
class QuestionEvent(Event):
    """The agent asks its user a question."""

    kind: ClassVar[Literal['question']] = 'question'
    call: GateCall
    question: str

    @property
    def text(self) -> str:
        """The question."""
        return self.question


@dataclass(frozen=True, kw_only=True)
class NoticeEvent(Event):
    """The agent tells its user something."""

    kind: ClassVar[Literal['notice']] = 'notice'
    call: GateCall
    message: str

    @property
    def text(self) -> str:
        """The message."""
        return self.message


@dataclass(frozen=True, kw_only=True)
class HookFailed(Event):
    """A hook, a gate or an approval function raised an error."""

    kind: ClassVar[Literal['hook_failed']] = 'hook_failed'
    error: BaseException
    message: str

    @property
    def text(self) -> str:
        """Name of the hook and the error."""
        return self.message


ToolEvent = (
    ToolCalled
    | ToolLogged
    | ToolProgress
    | ApprovalAsked
    | ApprovalAnswered
    | ApprovalUsed
    | QuestionEvent
    | NoticeEvent
    | ToolReturned
    | HookFailed
)

Emit = Callable[[ToolEvent], None]
"""Takes an event. Must not block."""
