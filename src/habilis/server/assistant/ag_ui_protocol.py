"""AG-UI 1.0: `POST /ag-ui`, which `HttpAgent` of `@ag-ui/client` talks to.

A thread is a conversation on this server, so of the messages the last one counts. What waits for a person ends the run
with an interrupt; the next run answers it with `resume`.
"""

import json
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from starlette.requests import Request
from starlette.responses import Response

from habilis.agent.contract import Result
from habilis.core.approval import Approval
from habilis.core.codec import Json
from habilis.core.errors import RunStopped
from habilis.models.files import File
from habilis.server.assistant.conversations import Conversations
from habilis.server.assistant.models import decode_file, read_answer
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
from habilis.server.operations import BadRequest

VERSION = '1.0'
APPROVAL: Json = {
    'type': 'object',
    'properties': {'approved': {'type': 'boolean'}, 'reason': {'type': 'string'}},
    'required': ['approved'],
}
AGAIN: Json = {'type': 'object', 'properties': {'again': {'const': True}}, 'required': ['again']}
"""Answers as JSON Schema: to an approval, and to a call that was cut short and may be made again."""


class _Model(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)


class _Source(_Model):
    type: str
    value: str
    mime_type: str = ''


class _Part(_Model):
    type: str
    text: str = ''
    source: _Source | None = None

    def file(self) -> File | None:
        """The file of a part that has one. Raises `BadRequest`."""
        if self.source is None:
            return None
        if self.source.type != 'data':
            msg = 'content: send files and images as data; nothing is fetched from other addresses'
            raise BadRequest(msg)
        return decode_file(self.source.value, media_type=self.source.mime_type)


class _ToolCall(_Model):
    id: str


class _Message(_Model):
    role: str
    content: str | list[_Part] | dict[str, object] | None = None
    tool_calls: list[_ToolCall] | None = None
    tool_call_id: str = ''

    @property
    def parts(self) -> list[_Part]:
        """Its content."""
        return self.content if isinstance(self.content, list) else [_Part(type='text', text=str(self.content or ''))]


class _Context(_Model):
    description: str
    value: str


class _Resume(_Model):
    interrupt_id: str
    status: Literal['resolved', 'cancelled']
    payload: object = None


class _RunInput(_Model):
    thread_id: str = Field(min_length=1, max_length=200)
    run_id: str = Field(min_length=1, max_length=200)
    messages: list[_Message]
    tools: list[object] = []
    context: list[_Context] = []
    resume: list[_Resume] = []

    def turn(self) -> SentTurn:
        """What is wanted. Raises `ValueError` or `BadRequest`."""
        if self.tools:
            msg = 'tools: the agent calls its own tools; those of a client cannot be called here'
            raise BadRequest(msg)
        answers: dict[str, Json | Approval] = {
            one.interrupt_id: Approval(approved=False) if one.status == 'cancelled' else read_answer(one.payload)
            for one in self.resume
        }
        last = self.messages[-1] if self.messages and self.messages[-1].role == 'user' else _Message(role='user')
        words = [part.text for part in last.parts if part.text]
        return SentTurn(
            session=self.thread_id,
            text='\n\n'.join([*words, *(f'{one.description}: {one.value}' for one in self.context if words)]),
            files=[file for part in last.parts if (file := part.file()) is not None],
            answers=answers,
            begun={call.id for message in self.messages for call in message.tool_calls or ()},
            ended={message.tool_call_id for message in self.messages},
        )


async def run_agent(conversations: Conversations, request: Request) -> Response:
    """A run: a turn of the thread."""
    wanted = parse_request(_RunInput, await request.body())
    form = _Form(wanted.thread_id, wanted.run_id)
    return await answer_turn(conversations, request.scope['owner'], wanted.turn(), form, headers={})


class _Form:
    """AG-UI events."""

    def __init__(self, thread: str, run: str) -> None:
        self._ids: dict[str, Json] = {'threadId': thread, 'runId': run}
        self._interrupts: list[Json] = []

    def begin(self, run: str) -> Iterator[Json]:
        """See `Form`. The id of the run in the journal is not the client's."""
        metadata: Json = {'habilis': {'run': run}}
        yield {'type': 'RUN_STARTED', **self._ids, 'protocolVersion': VERSION, 'metadata': metadata}

    def part(self, part: Part) -> Iterator[Json]:
        """See `Form`."""
        match part:
            case Block():
                yield from _block(part)
            case Step():
                yield {'type': 'STEP_FINISHED' if part.ends else 'STEP_STARTED', 'stepName': part.name}
            case Call():
                yield {'type': 'TOOL_CALL_START', 'toolCallId': part.id, 'toolCallName': part.name}
                yield {'type': 'TOOL_CALL_ARGS', 'toolCallId': part.id, 'delta': json.dumps(plain(part.input))}
                yield {'type': 'TOOL_CALL_END', 'toolCallId': part.id}
            case CallResult() if part.outcome != 'waits':
                ids: dict[str, Json] = {'toolCallId': part.id, 'messageId': f'{part.id}.result'}
                yield {'type': 'TOOL_CALL_RESULT', **ids, 'role': 'tool', 'content': _content(part)}
            case Told():
                yield {'type': 'CUSTOM', 'name': part.kind, 'value': part.text}
            case Question():
                self._interrupts.append(_interrupt(part))
            case _:
                pass

    def end(self, result: Result[Any]) -> Iterator[Json]:
        """See `Form`."""
        waits: Json = {'type': 'interrupt', 'interrupts': self._interrupts}
        yield {'type': 'RUN_FINISHED', **self._ids, 'outcome': waits if self._interrupts else {'type': 'success'}}

    def fail(self, error: BaseException) -> Iterator[Json]:
        """See `Form`."""
        if isinstance(error, RunStopped):
            yield {'type': 'RUN_FINISHED', **self._ids, 'outcome': {'type': 'cancelled'}}
        else:
            yield {'type': 'RUN_ERROR', 'message': str(error) or type(error).__name__, 'code': type(error).__name__}


def _block(part: Block) -> Iterator[Json]:
    is_answer = part.kind == 'answer'
    name, role = ('TEXT_MESSAGE', 'assistant') if is_answer else ('REASONING_MESSAGE', 'reasoning')
    id: dict[str, Json] = {'messageId': part.id}
    if part.text:
        yield {'type': f'{name}_CONTENT', **id, 'delta': part.text}
    elif part.text is None:
        yield from () if is_answer else ({'type': 'REASONING_START', **id},)
        yield {'type': f'{name}_START', **id, 'role': role}
    else:
        yield {'type': f'{name}_END', **id}
        yield from () if is_answer else ({'type': 'REASONING_END', **id},)


def _content(part: CallResult) -> Json:
    """Text, or parts where there are images."""
    if not part.images:
        return part.output
    images: list[Json] = [
        {'type': 'image', 'source': {'type': 'data', 'value': encode_image(one), 'mimeType': one.mime}}
        for one in part.images
    ]
    return [{'type': 'text', 'text': part.output}, *images]


def _interrupt(question: Question) -> Json:
    waiting = question.waiting
    known: dict[str, Json] = {'id': question.id, 'message': waiting.question}
    if question.call:
        known['toolCallId'] = question.call
    if not waiting.tool:
        return {**known, 'reason': 'habilis:uncertain', 'responseSchema': AGAIN}
    details: Json = {'tool': waiting.tool, 'arguments': plain(waiting.arguments), 'diff': waiting.diff}
    return {**known, 'reason': 'tool_call', 'responseSchema': APPROVAL, 'metadata': {'habilis': details}}
