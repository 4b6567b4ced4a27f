"""The UI-message stream of Vercel's AI SDK: `POST /api/chat`, where `DefaultChatTransport` of `ai` sends messages.

A chat is a conversation on this server, so of the messages the last one counts. An approval is asked for in the part of
its tool; the client answers it there, and sends the message back.
"""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from starlette.requests import Request
from starlette.responses import Response

from habilis.agent.contract import Result
from habilis.core.approval import Approval
from habilis.core.codec import Json
from habilis.core.errors import RunStopped
from habilis.server.assistant.conversations import Conversations
from habilis.server.assistant.models import file_at
from habilis.server.assistant.turn_parts import (
    Block,
    Call,
    CallResult,
    Part,
    Question,
    SentTurn,
    Step,
    Told,
    answer_turn,
    encode_image,
    plain,
)
from habilis.server.models import parse_request

HEADERS = {'x-vercel-ai-ui-message-stream': 'v1'}
DONE = 'data: [DONE]\n\n'


class _Model(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)


class _SentApproval(_Model):
    id: str
    approved: bool | None = None
    reason: str | None = None


class _Part(_Model):
    type: str
    text: str = ''
    url: str = ''
    filename: str | None = None
    tool_call_id: str = ''
    state: str | None = None
    approval: _SentApproval | None = None


class _Message(_Model):
    role: str
    parts: list[_Part] = []


class _ChatRequest(_Model):
    id: str = Field(min_length=1, max_length=200)
    messages: list[_Message] = Field(min_length=1)

    def turn(self) -> SentTurn:
        """What is wanted. Raises `BadRequest`."""
        last = self.messages[-1]
        if last.role == 'user':
            files = [file_at(part.url, part.filename or '') for part in last.parts if part.type == 'file']
            words = [part.text for part in last.parts if part.type == 'text' and part.text]
            return SentTurn(session=self.id, text='\n\n'.join(words), files=files)
        answered = [part.approval for part in last.parts if part.state == 'approval-responded' and part.approval]
        return SentTurn(
            session=self.id,
            answers={one.id: Approval(approved=one.approved is True, reason=one.reason or '') for one in answered},
            begun={part.tool_call_id for part in last.parts},
        )


async def chat(conversations: Conversations, request: Request) -> Response:
    """A message: a turn of the chat."""
    sent = parse_request(_ChatRequest, await request.body()).turn()
    return await answer_turn(conversations, request.scope['owner'], sent, _Form(), headers=HEADERS, last=DONE)


class _Form:
    """Chunks of a UI message."""

    def begin(self, run: str) -> Iterator[Json]:
        """See `Form`. A turn that goes on after an approval has the same id, and so goes on in the same message."""
        yield {'type': 'start', 'messageId': f'msg-{run}', 'messageMetadata': {'run': run}}

    def part(self, part: Part) -> Iterator[Json]:
        """See `Form`."""
        match part:
            case Block(text=text):
                name = 'text' if part.kind == 'answer' else 'reasoning'
                kind = 'delta' if text else 'start' if text is None else 'end'
                yield {'type': f'{name}-{kind}', 'id': part.id, **({'delta': text} if text else {})}
            case Step():
                yield {'type': 'finish-step' if part.ends else 'start-step'}
            case Call():
                yield from _call(part)
            case CallResult():
                yield from _result(part)
            case Told():
                yield {'type': f'data-{part.kind}', 'data': part.text, 'transient': part.kind != 'notice'}
            case Question():
                yield from _question(part)

    def end(self, result: Result[Any]) -> Iterator[Json]:
        """See `Form`."""
        reason = 'tool-calls' if result.waiting else 'stop' if result.ended in ('answer', 'question') else 'length'
        yield {'type': 'finish', 'finishReason': reason}

    def fail(self, error: BaseException) -> Iterator[Json]:
        """See `Form`."""
        if isinstance(error, RunStopped):
            yield {'type': 'abort', 'reason': str(error)}
        else:
            yield {'type': 'error', 'errorText': str(error) or type(error).__name__}
            yield {'type': 'finish', 'finishReason': 'error'}


def _call(part: Call) -> Iterator[Json]:
    how: dict[str, Json] = {'dynamic': True, 'providerExecuted': True}  # by this server, not by the client
    ids: dict[str, Json] = {'toolCallId': part.id, 'toolName': part.name}
    yield {'type': 'tool-input-available', **ids, 'input': plain(part.input), **how}


def _result(part: CallResult) -> Iterator[Json]:
    """A cell that waits has an output for now: the client sends no answer while a call of its message has none."""
    how: dict[str, Json] = {'toolCallId': part.id, 'dynamic': True, 'providerExecuted': True}
    if part.outcome == 'denied':
        yield {'type': 'tool-output-denied', 'toolCallId': part.id}
    elif part.outcome == 'failed':
        yield {'type': 'tool-output-error', 'errorText': part.output, **how}
    else:
        yield {'type': 'tool-output-available', 'output': part.output, **how}
    for one in part.images:
        yield {'type': 'file', 'mediaType': one.mime, 'url': f'data:{one.mime};base64,{encode_image(one)}'}


def _question(part: Question) -> Iterator[Json]:
    waiting = part.waiting
    if not waiting.tool:  # the client has no part for it; the API takes the answer
        yield {'type': 'data-question', 'id': part.id, 'data': {'path': waiting.path, 'question': waiting.question}}
        return
    if not part.call:
        yield from _call(Call(part.id, waiting.tool, waiting.arguments))
    call = part.call or part.id
    yield {'type': 'tool-approval-request', 'approvalId': part.id, 'toolCallId': call, 'reason': waiting.question}
