"""AG-UI 1.0: `POST /ag-ui`, which `HttpAgent` of `@ag-ui/client` talks to.

A thread is a conversation on this server, so of the messages the last one counts. What waits for a person ends the run
with an interrupt; the next run answers it with `resume`.
"""

import json
from collections.abc import Iterator
from functools import partial
from typing import Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from habilis.core.approval import Approval
from habilis.core.codec import Json
from habilis.core.errors import RunStopped
from habilis.server.assistant import turn_parts as turns
from habilis.server.assistant.conversations import Conversations
from habilis.server.assistant.models import CamelModel, decode_file, read_answer
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


class _Source(CamelModel):
    type: str
    value: str
    mime_type: str = ''


class _ThreadPart(CamelModel):
    text: str = ''
    source: _Source | None = None


class _ToolCall(CamelModel):
    id: str


class _ThreadMessage(CamelModel):
    role: str
    content: str | list[_ThreadPart] | dict[str, object] | None = None
    tool_calls: tuple[_ToolCall, ...] = ()
    tool_call_id: str = ''


class _Context(CamelModel):
    description: str
    value: str


class _Resume(CamelModel):
    interrupt_id: str
    status: Literal['resolved', 'cancelled']
    payload: object = None


class _RunInput(CamelModel):
    thread_id: str = Field(min_length=1, max_length=200)
    run_id: str = Field(min_length=1, max_length=200)
    messages: list[_ThreadMessage]
    tools: tuple[object, ...] = ()
    context: tuple[_Context, ...] = ()
    resume: tuple[_Resume, ...] = ()

    def turn(self) -> turns.SentTurn:
        """What is wanted. Raises `ValueError` or `BadRequest`."""
        content = self.messages[-1].content if self.messages and self.messages[-1].role == 'user' else ''
        parts = content if isinstance(content, list) else [_ThreadPart(text=str(content or ''))]
        sources = [part.source for part in parts if part.source is not None]
        if self.tools or any(source.type != 'data' for source in sources):
            msg = 'tools of a client cannot be called here, and files must come as data: nothing is fetched'
            raise BadRequest(msg)
        words = [part.text for part in parts if part.text]
        return turns.SentTurn(
            session=self.thread_id,
            text='\n\n'.join([*words, *(f'{one.description}: {one.value}' for one in self.context if words)]),
            files=[decode_file(source.value, media_type=source.mime_type) for source in sources],
            answers={
                one.interrupt_id: Approval(approved=False) if one.status == 'cancelled' else read_answer(one.payload)
                for one in self.resume
            },
            calls={call.id for message in self.messages for call in message.tool_calls},
            results={message.tool_call_id for message in self.messages},
        )


async def run_agent(conversations: Conversations, request: Request) -> Response:
    """A run: a turn of the thread."""
    wanted = parse_request(_RunInput, await request.body())
    form = partial(_events, {'threadId': wanted.thread_id, 'runId': wanted.run_id})
    return await turns.answer_turn(conversations, request.scope['owner'], wanted.turn(), form, headers={})


def _events(ids: dict[str, Json], part: turns.TurnPart) -> Iterator[Json]:
    match part:
        case turns.BegunPart(run):  # the id in the journal is not the client's
            yield {'type': 'RUN_STARTED', **ids, 'protocolVersion': VERSION, 'metadata': {'habilis': {'run': run}}}
        case turns.WordsPart():
            yield from _words(part)
        case turns.StepPart(name, ends):
            yield {'type': 'STEP_FINISHED' if ends else 'STEP_STARTED', 'stepName': name}
        case turns.CallPart(id, name, input):
            yield {'type': 'TOOL_CALL_START', 'toolCallId': id, 'toolCallName': name}
            yield {'type': 'TOOL_CALL_ARGS', 'toolCallId': id, 'delta': json.dumps(input)}
            yield {'type': 'TOOL_CALL_END', 'toolCallId': id}
        case turns.ResultPart(id, outcome, output):
            if outcome != 'waits':
                yield {'type': 'TOOL_CALL_RESULT', 'toolCallId': id, 'messageId': f'{id}.result', 'content': output}
        case turns.ToldPart(kind, text):
            yield {'type': 'CUSTOM', 'name': kind, 'value': text}
        case turns.EndedPart(_, questions):
            waits: Json = {'type': 'interrupt', 'interrupts': [_interrupt(one) for one in questions]}
            yield {'type': 'RUN_FINISHED', **ids, 'outcome': waits if questions else {'type': 'success'}}
        case turns.FailedPart(RunStopped()):
            yield {'type': 'RUN_FINISHED', **ids, 'outcome': {'type': 'cancelled'}}
        case turns.FailedPart(error):
            yield {'type': 'RUN_ERROR', 'message': str(error) or type(error).__name__, 'code': type(error).__name__}


def _words(part: turns.WordsPart) -> Iterator[Json]:
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


def _interrupt(question: turns.QuestionPart) -> Json:
    waiting = question.waiting
    known: dict[str, Json] = {'id': question.id, 'message': waiting.question}
    if question.call:
        known['toolCallId'] = question.call
    if not waiting.tool:
        return {**known, 'reason': 'habilis:uncertain', 'responseSchema': AGAIN}
    details: Json = {'tool': waiting.tool, 'arguments': turns.plain(waiting.arguments), 'diff': waiting.diff}
    return {**known, 'reason': 'tool_call', 'responseSchema': APPROVAL, 'metadata': {'habilis': details}}
