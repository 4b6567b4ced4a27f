"""The UI-message stream of Vercel's AI SDK: `POST /api/chat`, where `DefaultChatTransport` of `ai` sends messages.

A chat is a conversation on this server, so of the messages the last one counts. An approval is asked for in the part of
its tool; the client answers it there, and sends the message back.
"""

from collections.abc import Iterator

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from habilis.core.approval import Approval
from habilis.core.codec import Json
from habilis.core.errors import RunStopped
from habilis.server.assistant import turn_parts as turns
from habilis.server.assistant.conversations import Conversations
from habilis.server.assistant.models import CamelModel, file_at
from habilis.server.models import parse_request

HEADERS = {'x-vercel-ai-ui-message-stream': 'v1'}
DONE = 'data: [DONE]\n\n'
HERE: dict[str, Json] = {'dynamic': True, 'providerExecuted': True}
"""A call is made by this server, not by the client, which need not know the tool."""


class _SentApproval(CamelModel):
    id: str
    approved: bool = False
    reason: str = ''


class _UiPart(CamelModel):
    type: str
    text: str = ''
    url: str = ''
    filename: str = ''
    tool_call_id: str = ''
    state: str = ''
    approval: _SentApproval | None = None


class _UiMessage(CamelModel):
    role: str
    parts: list[_UiPart]


class _ChatRequest(CamelModel):
    id: str = Field(min_length=1, max_length=200)
    messages: list[_UiMessage] = Field(min_length=1)

    def turn(self) -> turns.SentTurn:
        """What is wanted. Raises `BadRequest`."""
        last = self.messages[-1]
        if last.role == 'user':
            files = [file_at(part.url, part.filename) for part in last.parts if part.type == 'file']
            words = [part.text for part in last.parts if part.type == 'text' and part.text]
            return turns.SentTurn(session=self.id, text='\n\n'.join(words), files=files)
        answered = [part.approval for part in last.parts if part.state == 'approval-responded' and part.approval]
        answers = {one.id: Approval(approved=one.approved, reason=one.reason) for one in answered}
        return turns.SentTurn(session=self.id, answers=answers, calls={part.tool_call_id for part in last.parts})


async def chat(conversations: Conversations, request: Request) -> Response:
    """A message: a turn of the chat."""
    sent = parse_request(_ChatRequest, await request.body()).turn()
    return await turns.answer_turn(conversations, request.scope['owner'], sent, _chunks, HEADERS, DONE)


def _chunks(part: turns.TurnPart) -> Iterator[Json]:
    match part:
        case turns.BegunPart(run):  # after an approval the run is the same, and so is the message
            yield {'type': 'start', 'messageId': f'msg-{run}', 'messageMetadata': {'run': run}}
        case turns.WordsPart(id, kind, text):
            name = 'text' if kind == 'answer' else 'reasoning'
            change = 'delta' if text else 'start' if text is None else 'end'
            yield {'type': f'{name}-{change}', 'id': id, **({'delta': text} if text else {})}
        case turns.StepPart():
            yield {'type': 'finish-step' if part.ends else 'start-step'}
        case turns.CallPart(id, name, input):
            yield {'type': 'tool-input-available', 'toolCallId': id, 'toolName': name, 'input': input, **HERE}
        case turns.ResultPart():
            yield _result(part)
        case turns.ToldPart(kind, text):
            yield {'type': f'data-{kind}', 'data': text, 'transient': kind != 'notice'}
        case turns.EndedPart(result, questions):
            for question in questions:
                yield from _question(question)
            is_said = result.ended in ('answer', 'question')
            yield {'type': 'finish', 'finishReason': 'tool-calls' if questions else 'stop' if is_said else 'length'}
        case turns.FailedPart(RunStopped() as error):
            yield {'type': 'abort', 'reason': str(error)}
        case turns.FailedPart(error):
            yield {'type': 'error', 'errorText': str(error) or type(error).__name__}
            yield {'type': 'finish', 'finishReason': 'error'}


def _result(part: turns.ResultPart) -> Json:
    """A cell that waits has an output for now: the client sends no answer while a call of its message has none."""
    if part.outcome == 'denied':
        return {'type': 'tool-output-denied', 'toolCallId': part.id}
    if part.outcome == 'failed':
        return {'type': 'tool-output-error', 'toolCallId': part.id, 'errorText': part.output, **HERE}
    return {'type': 'tool-output-available', 'toolCallId': part.id, 'output': part.output, **HERE}


def _question(question: turns.QuestionPart) -> Iterator[Json]:
    waiting = question.waiting
    if not waiting.tool:  # the client has no part for it; the API takes the answer
        yield {'type': 'data-question', 'data': {'path': waiting.path, 'question': waiting.question}}
        return
    if not question.call:
        yield from _chunks(turns.CallPart(question.id, waiting.tool, turns.plain(waiting.arguments)))
    ids: dict[str, Json] = {'approvalId': question.id, 'toolCallId': question.call or question.id}
    yield {'type': 'tool-approval-request', **ids, 'reason': waiting.question}
