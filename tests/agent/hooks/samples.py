"""Events for tests, made from a text."""

from collections.abc import Callable
from dataclasses import replace

from habilis.agent.contract import Result, Step
from habilis.agent.events import (
    AgentEvent,
    AnswerEvent,
    AnswerRefused,
    ApprovalAnswered,
    ApprovalAsked,
    ApprovalUsed,
    CellFinished,
    CodeEvent,
    CompactedEvent,
    FileAttached,
    HookFailed,
    ModelProgress,
    ModelReplied,
    ModelRequested,
    NoticeEvent,
    ObservationEvent,
    OutputEvent,
    QuestionEvent,
    RetryEvent,
    RunFailed,
    RunFinished,
    RunResumed,
    RunStarted,
    StepFinished,
    StepStarted,
    TextEvent,
    ThinkingEvent,
    ToolCalled,
    ToolLogged,
    ToolProgress,
    ToolReturned,
)
from habilis.core.approval import Approval
from habilis.core.errors import ModelError
from habilis.models.contract import Delta, Message, Progress, Reply
from habilis.models.retry import RetryNotice
from habilis.models.scripted import ScriptedModel
from habilis.sandbox.contract import Cell, ToolCall
from habilis.tools import ApprovalRequest, GateCall


def call(text: str = '') -> GateCall:
    """A call in which everything is the text."""
    return GateCall(id=1, tool=text, arguments={text: text})


def request(text: str = '') -> ApprovalRequest:
    """A request in which everything is the text."""
    return ApprovalRequest(id=1, tool=text, arguments={text: text}, question=text, diff=f'+{text}')


def model(name: str = 'script') -> ScriptedModel:
    """A model of this name."""
    return ScriptedModel([], name=f'scripted:{name}')


SAMPLES: dict[str, Callable[[str], AgentEvent]] = {
    'run_started': lambda text: RunStarted(task=text, model=model(text)),
    'run_resumed': lambda text: RunResumed(task=text, model=model(text)),
    'file_attached': lambda text: FileAttached(name=text, bytes=9214, path=f'/inputs/{text}'),
    'step_started': lambda _text: StepStarted(),
    'model_requested': lambda text: ModelRequested(model=model(text), messages=(Message(role='user', text=text),)),
    'model_progress': lambda _text: ModelProgress(progress=Progress(phase='reading', done=3, total=9)),
    'text': lambda text: TextEvent(delta=Delta(text=text)),
    'thinking': lambda text: ThinkingEvent(delta=Delta(thinking=text)),
    'retry': lambda text: RetryEvent(
        notice=RetryNotice(attempt=2, max_attempts=4, seconds=1.0, error=ModelError(text))
    ),
    'model_replied': lambda text: ModelReplied(reply=Reply(text=text)),
    'code': lambda text: CodeEvent(code=text),
    'output': lambda text: OutputEvent(stream='stdout', output=text),
    'tool_called': lambda text: ToolCalled(call=call(text)),
    'tool_logged': lambda text: ToolLogged(call=call(text), line=text),
    'tool_progress': lambda text: ToolProgress(call=call(text), done=3, total=9, message=text),
    'approval_asked': lambda text: ApprovalAsked(request=request(text)),
    'approval_answered': lambda text: ApprovalAnswered(request=request(text), approval=Approval()),
    'approval_used': lambda text: ApprovalUsed(request=request(text), number=3, calls=50),
    'question': lambda text: QuestionEvent(call=call(text), question=text),
    'notice': lambda text: NoticeEvent(call=call(text), message=text),
    'tool_returned': lambda text: ToolReturned(call=ToolCall(id=1, tool=text, arguments={}, ok=True, result=text)),
    'cell_finished': lambda text: CellFinished(cell=Cell(text=text)),
    'observation': lambda text: ObservationEvent(observation=text),
    'answer_refused': lambda text: AnswerRefused(answer=1, reason=text),
    'compacted': lambda text: CompactedEvent(message=text),
    'hook_failed': lambda text: HookFailed(error=ValueError(text), message=text),
    'step_finished': lambda text: StepFinished(finished=Step(number=1, reply=Reply(text=text))),
    'answer': lambda text: AnswerEvent(answer=text),
    'run_finished': lambda text: RunFinished(result=Result(output=text, ended='answer', run_id='1')),
    'run_failed': lambda text: RunFailed(error=ModelError(text)),
}
"""One event of each kind."""


def sample(kind: str, text: str = '', *, run: str = '', agent: str = '') -> AgentEvent:
    """An event of this kind."""
    return replace(SAMPLES[kind](text), run=run, agent=agent)
