"""Events of an agent's run. `AgentEvent` is the union of all kinds, those of tool calls included."""

from dataclasses import dataclass, field
from typing import ClassVar, Generic, Literal

from typing_extensions import TypeVar

from habilis.agent.context.output import as_text
from habilis.agent.contract import Result, Step
from habilis.core.events import Event
from habilis.core.previews import format_size
from habilis.models.contract import Delta, Message, Model, Progress, Reply
from habilis.models.retry import RetryNotice
from habilis.sandbox.contract import Cell, Stream
from habilis.tools.events import (
    ApprovalAnswered,
    ApprovalAsked,
    ApprovalUsed,
    HookFailed,
    NoticeEvent,
    QuestionEvent,
    ToolCalled,
    ToolEvent,
    ToolLogged,
    ToolProgress,
    ToolReturned,
)

__all__ = [
    'AgentEvent',
    'AnswerEvent',
    'AnswerRefused',
    'ApprovalAnswered',
    'ApprovalAsked',
    'ApprovalUsed',
    'CellFinished',
    'CodeEvent',
    'CompactedEvent',
    'Event',
    'FileAttached',
    'HookFailed',
    'ModelProgress',
    'ModelReplied',
    'ModelRequested',
    'NoticeEvent',
    'ObservationEvent',
    'OutputEvent',
    'QuestionEvent',
    'RetryEvent',
    'RunFailed',
    'RunFinished',
    'RunResumed',
    'RunStarted',
    'StepFinished',
    'StepStarted',
    'StreamEvent',
    'TextEvent',
    'ThinkingEvent',
    'ToolCalled',
    'ToolLogged',
    'ToolProgress',
    'ToolReturned',
]

T_co = TypeVar('T_co', covariant=True, default=object)


@dataclass(frozen=True, kw_only=True)
class RunStarted(Event):
    """A run starts."""

    kind: ClassVar[Literal['run_started']] = 'run_started'
    task: str
    model: Model

    @property
    def text(self) -> str:
        """The task."""
        return self.task


@dataclass(frozen=True, kw_only=True)
class RunResumed(Event):
    """A recorded run is resumed. The events of recorded steps are not emitted again."""

    kind: ClassVar[Literal['run_resumed']] = 'run_resumed'
    task: str
    model: Model

    @property
    def text(self) -> str:
        """The task."""
        return self.task


@dataclass(frozen=True, kw_only=True)
class FileAttached(Event):
    """A file that came with the task is where code can open it."""

    kind: ClassVar[Literal['file_attached']] = 'file_attached'
    name: str
    bytes: int
    path: str
    """Inside the sandbox."""

    @property
    def text(self) -> str:
        """Name, size and path."""
        return f'{self.name} ({format_size(self.bytes)}) as {self.path}'


@dataclass(frozen=True, kw_only=True)
class StepStarted(Event):
    """A step starts."""

    kind: ClassVar[Literal['step_started']] = 'step_started'


@dataclass(frozen=True, kw_only=True)
class ModelRequested(Event):
    """A request is sent to the model."""

    kind: ClassVar[Literal['model_requested']] = 'model_requested'
    model: Model
    messages: tuple[Message, ...] = field(repr=False)

    @property
    def text(self) -> str:
        """Name of the model."""
        return self.model.name


@dataclass(frozen=True, kw_only=True)
class ModelProgress(Event):
    """The model loads its weights or reads the prompt. Only models on this machine tell."""

    kind: ClassVar[Literal['model_progress']] = 'model_progress'
    progress: Progress

    @property
    def text(self) -> str:
        """Phase, and how far it is."""
        total = '' if self.progress.total is None else f' {self.progress.done} of {self.progress.total}'
        return f'{self.progress.phase}{total}'


@dataclass(frozen=True, kw_only=True)
class TextEvent(Event):
    """A part of the reply arrived: text, or arguments of a function call."""

    kind: ClassVar[Literal['text']] = 'text'
    delta: Delta

    @property
    def text(self) -> str:
        """The new text or arguments."""
        return self.delta.text or self.delta.arguments


@dataclass(frozen=True, kw_only=True)
class ThinkingEvent(Event):
    """A part of the model's thinking arrived."""

    kind: ClassVar[Literal['thinking']] = 'thinking'
    delta: Delta

    @property
    def text(self) -> str:
        """The new thinking."""
        return self.delta.thinking


@dataclass(frozen=True, kw_only=True)
class RetryEvent(Event):
    """A request failed and will be retried."""

    kind: ClassVar[Literal['retry']] = 'retry'
    notice: RetryNotice

    @property
    def text(self) -> str:
        """The error and when the request is retried."""
        notice = self.notice
        return f'{notice.error}; retrying in {notice.seconds:.1f} s (attempt {notice.attempt} of {notice.max_attempts})'


@dataclass(frozen=True, kw_only=True)
class ModelReplied(Event):
    """The reply is complete."""

    kind: ClassVar[Literal['model_replied']] = 'model_replied'
    reply: Reply

    @property
    def text(self) -> str:
        """Text of the reply."""
        return self.reply.text


@dataclass(frozen=True, kw_only=True)
class CodeEvent(Event):
    """Code is about to run."""

    kind: ClassVar[Literal['code']] = 'code'
    code: str

    @property
    def text(self) -> str:
        """The code."""
        return self.code


@dataclass(frozen=True, kw_only=True)
class OutputEvent(Event):
    """The code printed something."""

    kind: ClassVar[Literal['output']] = 'output'
    stream: Stream
    output: str

    @property
    def text(self) -> str:
        """The printed text."""
        return self.output


@dataclass(frozen=True, kw_only=True)
class CellFinished(Event):
    """The code ended, with or without an error."""

    kind: ClassVar[Literal['cell_finished']] = 'cell_finished'
    cell: Cell
    is_answer: bool = False
    """Whether its last call was `final_answer`."""

    @property
    def text(self) -> str:
        """Value of the last expression."""
        return self.cell.text or ''


@dataclass(frozen=True, kw_only=True)
class ObservationEvent(Event):
    """The observation for the model is ready."""

    kind: ClassVar[Literal['observation']] = 'observation'
    observation: str

    @property
    def text(self) -> str:
        """The observation."""
        return self.observation


@dataclass(frozen=True, kw_only=True)
class AnswerRefused(Event):
    """An output validator refused an answer, and the model is asked again."""

    kind: ClassVar[Literal['answer_refused']] = 'answer_refused'
    answer: object
    reason: str

    @property
    def text(self) -> str:
        """Why it was refused."""
        return self.reason


@dataclass(frozen=True, kw_only=True)
class CompactedEvent(Event):
    """Earlier steps were shortened or removed from the conversation."""

    kind: ClassVar[Literal['compacted']] = 'compacted'
    message: str

    @property
    def text(self) -> str:
        """What was done and why."""
        return self.message


@dataclass(frozen=True, kw_only=True)
class StepFinished(Event):
    """A step ended. `step` is its number, `finished` its record."""

    kind: ClassVar[Literal['step_finished']] = 'step_finished'
    finished: Step


@dataclass(frozen=True, kw_only=True)
class AnswerEvent(Event, Generic[T_co]):
    """The run has an answer."""

    kind: ClassVar[Literal['answer']] = 'answer'
    answer: T_co

    @property
    def text(self) -> str:
        """The answer as text."""
        return as_text(self.answer)


@dataclass(frozen=True, kw_only=True)
class RunFinished(Event, Generic[T_co]):
    """The run ended: with an answer, at a limit, or to wait for a person."""

    kind: ClassVar[Literal['run_finished']] = 'run_finished'
    result: Result[T_co]

    @property
    def text(self) -> str:
        """Why the run ended."""
        return self.result.ended


@dataclass(frozen=True, kw_only=True)
class RunFailed(Event):
    """The run raised an exception or was cancelled."""

    kind: ClassVar[Literal['run_failed']] = 'run_failed'
    error: BaseException

    @property
    def text(self) -> str:
        """Class and message of the error."""
        return f'{type(self.error).__name__}: {as_text(self.error)}'.removesuffix(': ')


_BeforeTheEnd = (
    RunStarted
    | RunResumed
    | FileAttached
    | StepStarted
    | ModelRequested
    | ModelProgress
    | TextEvent
    | ThinkingEvent
    | RetryEvent
    | ModelReplied
    | CodeEvent
    | OutputEvent
    | ToolEvent
    | CellFinished
    | ObservationEvent
    | AnswerRefused
    | CompactedEvent
    | StepFinished
)

AgentEvent = _BeforeTheEnd | AnswerEvent | RunFinished | RunFailed
"""Any event, as hooks get it."""

StreamEvent = _BeforeTheEnd | AnswerEvent[T_co] | RunFinished[T_co] | RunFailed
"""The same for an agent whose output type is known: `agent.stream` of an `Agent[City]` yields `StreamEvent[City]`."""
