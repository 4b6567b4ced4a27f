"""OpenAI's protocol: `/v1/models`, `/v1/chat/completions` and `/v1/responses`, for front-ends that speak it.

A completion has the whole conversation in its request, and is a run of its own. A response is a turn of a conversation
on this server: the next one names it, and finds its variables.
"""

import itertools
import json
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from typing import Any, Literal, Protocol, cast

from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from habilis.agent.contract import Result
from habilis.agent.events import RunFinished
from habilis.assistant import TurnEnded, TurnStarted
from habilis.assistant.records import new_session
from habilis.core.codec import Json
from habilis.core.errors import HabilisError, RunNotFound
from habilis.journal.copies import new_run_id
from habilis.journal.lookup import info_of
from habilis.models.contract import Message, Usage
from habilis.models.files import File
from habilis.server.assistant.conversations import Conversations
from habilis.server.assistant.models import file_at
from habilis.server.assistant.reply_text import ReplyText, Said
from habilis.server.models import parse_request
from habilis.server.operations import EVENTS, BadRequest

MODEL = 'habilis'
"""The name of the agent in the list of models."""

# Requests -------------------------------------------------------------------------------------------------------------


class _SentPart(BaseModel):
    """A part of a message, of either protocol."""

    type: str
    text: str = ''
    image_url: str | dict[str, Any] = ''


class _SentMessage(BaseModel):
    role: Literal['system', 'developer', 'user', 'assistant', 'tool'] = 'user'
    content: str | list[_SentPart] | None = None

    def text(self) -> str:
        """Its words."""
        if self.content is None or isinstance(self.content, str):
            return self.content or ''
        return '\n'.join(part.text for part in self.content if part.text)

    def images(self) -> list[File]:
        """Its images. Raises `BadRequest`."""
        parts = self.content if isinstance(self.content, list) else []
        addresses = [part.image_url for part in parts if part.image_url]
        return [file_at(one if isinstance(one, str) else str(one.get('url', ''))) for one in addresses]


class _Options(BaseModel):
    """What is read of a request; sampling options and the like are the agent's own."""

    model: str = MODEL
    stream: bool = False
    tools: list[Any] = Field(default_factory=list)
    n: int | None = 1

    def check(self) -> None:
        """Raise `BadRequest` for what cannot be done."""
        if self.tools:
            msg = 'tools: the agent calls its own tools; those of a client cannot be called here'
            raise BadRequest(msg)
        if self.n not in (None, 1):
            msg = 'n: one answer at a time'
            raise BadRequest(msg)


class _StreamOptions(BaseModel):
    include_usage: bool = False


class _Completion(_Options):
    messages: list[_SentMessage] = Field(min_length=1)
    stream_options: _StreamOptions | None = None


class _Response(_Options):
    input: str | list[_SentMessage]
    previous_response_id: str | None = None
    instructions: str | None = None


# Operations -----------------------------------------------------------------------------------------------------------


async def list_models(conversations: Conversations, request: Request) -> Response:
    """The agent, as a model."""
    names = dict.fromkeys([MODEL, await conversations.model_name(request.scope['owner'])])
    models = [{'id': name, 'object': 'model', 'created': 0, 'owned_by': 'habilis'} for name in names]
    return JSONResponse({'object': 'list', 'data': models})


async def complete(conversations: Conversations, request: Request) -> Response:
    """A chat completion."""
    wanted = parse_request(_Completion, await request.body())
    wanted.check()
    *before, last = wanted.messages
    if last.role != 'user' or not last.text().strip():
        msg = 'messages: the last one must be of the user, and say something'
        raise BadRequest(msg)
    user = request.scope['owner']
    await _check_model(conversations, user, wanted.model)
    agent = await conversations.agent(user)
    events = agent.stream([last.text(), *last.images()], history=[_history(one) for one in before], user=user)
    counted = wanted.stream_options is not None and wanted.stream_options.include_usage
    return await _answer(events, _CompletionForm(wanted.model, counted), wanted.stream)


async def respond(conversations: Conversations, request: Request) -> Response:
    """A response: a turn of a conversation."""
    wanted = parse_request(_Response, await request.body())
    wanted.check()
    user = request.scope['owner']
    await _check_model(conversations, user, wanted.model)
    messages = [_SentMessage(content=wanted.input)] if isinstance(wanted.input, str) else wanted.input
    words = [one.text() for one in messages if one.role != 'assistant']
    text = '\n\n'.join(part for part in [wanted.instructions or '', *words] if part.strip())
    if not text:
        msg = 'input: it says nothing'
        raise BadRequest(msg)
    files = [image for one in messages for image in one.images()]
    session = await _session_of(conversations, user, wanted.previous_response_id)
    run = new_run_id()
    events = (await conversations.get(user, session)).stream(text, files, run)
    return await _answer(events, _ResponseForm(wanted.model, f'resp_{run}', wanted.previous_response_id), wanted.stream)


OPERATIONS: tuple[tuple[str, str, Callable[[Conversations, Request], Awaitable[Response]]], ...] = (
    ('GET', '/v1/models', list_models),
    ('POST', '/v1/chat/completions', complete),
    ('POST', '/v1/responses', respond),
)


def error(status: int, error: Exception) -> Response:
    """An error as this protocol has it."""
    kind = 'invalid_request_error' if status < 500 else 'server_error'
    return JSONResponse({'error': {'message': str(error), 'type': kind, 'param': None, 'code': None}}, status)


async def _check_model(conversations: Conversations, user: str, name: str) -> None:
    known = MODEL, await conversations.model_name(user)
    if name not in known:
        msg = f'model: there is no {name!r} here; ask for {" or ".join(dict.fromkeys(known))}'
        raise BadRequest(msg)


async def _session_of(conversations: Conversations, user: str, response: str | None) -> str:
    """The conversation that a response belongs to; a new one for none."""
    if response is None:
        return new_session()
    try:
        return (await info_of(conversations.store, response.removeprefix('resp_'), user)).session
    except RunNotFound:
        msg = f'previous_response_id: there is no response {response!r}'
        raise BadRequest(msg) from None


def _history(message: _SentMessage) -> Message:
    """A message of before. Nobody but the server may speak as the system: such words are the user's."""
    return Message(role='assistant' if message.role == 'assistant' else 'user', text=message.text())


# Answers --------------------------------------------------------------------------------------------------------------


async def _answer(events: AsyncGenerator[Any, None], form: '_Form', stream: bool) -> Response:
    """The answer of a turn at once, or piece by piece."""
    told = tell(events)
    first = await anext(told)  # what fails before anything is said has a status of its own
    if stream:
        return StreamingResponse(_chunks(first, told, form), media_type=EVENTS, headers={'Cache-Control': 'no-store'})
    pieces = [first, *[piece async for piece in told]]
    result = pieces[-1]
    assert isinstance(result, Result)
    said = [piece for piece in pieces if isinstance(piece, Said)]
    text = ''.join(piece.text for piece in said if piece.kind == 'answer')
    work = ''.join(piece.text for piece in said if piece.kind != 'answer')
    return JSONResponse(form.whole(text, work, result))


async def tell(events: AsyncGenerator[Any, None]) -> AsyncGenerator[Said | Result[Any], None]:
    """What the events of a run or a turn say, and its result in the end. Raises what it has raised."""
    said, last = ReplyText(), RunFinished
    async for event in events:
        for piece in said.feed(event):
            yield piece
        if isinstance(event, TurnStarted):
            last = TurnEnded
        elif isinstance(event, last) and not event.parent:
            if isinstance(event, TurnEnded) and event.error is not None:
                raise event.error
            result = cast('Result[Any]', event.result)
            for piece in said.end(result):
                yield piece
            yield result


async def _chunks(
    first: Said | Result[Any], told: AsyncGenerator[Said | Result[Any], None], form: '_Form'
) -> AsyncGenerator[str]:
    for begun in form.begin():
        yield begun
    try:
        for piece in form.piece(first):
            yield piece
        async for said in told:
            for piece in form.piece(said):
                yield piece
    except HabilisError as failed:
        yield _data({'error': {'message': str(failed), 'type': 'server_error', 'param': None, 'code': None}})
    for ended in form.end():
        yield ended


def _data(value: Json, kind: str = '') -> str:
    head = f'event: {kind}\n' if kind else ''
    return f'{head}data: {json.dumps(value, ensure_ascii=False)}\n\n'


class _Form(Protocol):
    """How an answer is sent."""

    def whole(self, text: str, work: str, result: Result[Any]) -> dict[str, Any]:
        """All of it."""
        ...

    def begin(self) -> Iterator[str]:
        """The first messages of a stream."""
        ...

    def piece(self, said: Said | Result[Any]) -> Iterator[str]:
        """The messages of a piece, or of the end."""
        ...

    def end(self) -> Iterator[str]:
        """The last messages, also after an error."""
        ...


class _CompletionForm:
    """Chat completions. Work is sent as `reasoning_content`, which many front-ends fold."""

    def __init__(self, model: str, counted: bool) -> None:
        self._counted = counted
        self._head = {'id': f'chatcmpl-{secrets.token_hex(12)}', 'created': int(time.time()), 'model': model}

    def whole(self, text: str, work: str, result: Result[Any]) -> dict[str, Any]:
        """See `_Form`."""
        message = {'role': 'assistant', 'content': text, 'refusal': None, 'reasoning_content': work}
        choice = {'index': 0, 'message': message, 'finish_reason': 'stop', 'logprobs': None}
        return {**self._head, 'object': 'chat.completion', 'choices': [choice], 'usage': _usage(result.usage)}

    def begin(self) -> Iterator[str]:
        """See `_Form`."""
        yield self._chunk({'role': 'assistant', 'content': ''})

    def piece(self, said: Said | Result[Any]) -> Iterator[str]:
        """See `_Form`."""
        if isinstance(said, Said):
            yield self._chunk({'content' if said.kind == 'answer' else 'reasoning_content': said.text})
            return
        yield self._chunk({}, 'stop')
        if self._counted:
            head = {**self._head, 'object': 'chat.completion.chunk'}
            yield _data({**head, 'choices': [], 'usage': _usage(said.usage)})

    def end(self) -> Iterator[str]:
        """See `_Form`."""
        yield 'data: [DONE]\n\n'

    def _chunk(self, delta: dict[str, Json], finish: str | None = None) -> str:
        choice: Json = {'index': 0, 'delta': delta, 'finish_reason': finish, 'logprobs': None}
        return _data({**self._head, 'object': 'chat.completion.chunk', 'choices': [choice]})


class _ResponseForm:
    """Responses: work is a reasoning item, the answer a message."""

    def __init__(self, model: str, id: str, previous: str | None) -> None:
        self._id = id
        self._head: dict[str, Any] = {
            'id': id,
            'object': 'response',
            'created_at': int(time.time()),
            'model': model,
            'previous_response_id': previous,
            'parallel_tool_calls': False,
            'tool_choice': 'auto',
            'tools': [],
        }
        self._count = itertools.count()
        self._text = ''

    def whole(self, text: str, work: str, result: Result[Any]) -> dict[str, Any]:
        """See `_Form`."""
        usage = result.usage
        counts = {
            'input_tokens': usage.input_tokens,
            'output_tokens': usage.output_tokens,
            'total_tokens': usage.input_tokens + usage.output_tokens,
            'input_tokens_details': {'cached_tokens': 0},
            'output_tokens_details': {'reasoning_tokens': 0},
        }
        return {**self._head, 'status': 'completed', 'output': [self._message(text)], 'usage': counts}

    def begin(self) -> Iterator[str]:
        """See `_Form`."""
        response: dict[str, Any] = {**self._head, 'status': 'in_progress', 'output': []}
        yield self._event('response.created', response=response)
        yield self._event('response.in_progress', response=response)
        item: dict[str, Any] = {**self._message(''), 'status': 'in_progress', 'content': []}
        yield self._event('response.output_item.added', output_index=0, item=item)
        yield self._event('response.content_part.added', **self._place, part=_text_part(''))

    def piece(self, said: Said | Result[Any]) -> Iterator[str]:
        """See `_Form`."""
        if isinstance(said, Said):
            if said.kind == 'answer':
                self._text += said.text
                yield self._event('response.output_text.delta', **self._place, delta=said.text, logprobs=[])
            return
        yield self._event('response.output_text.done', **self._place, text=self._text, logprobs=[])
        yield self._event('response.content_part.done', **self._place, part=_text_part(self._text))
        yield self._event('response.output_item.done', output_index=0, item=self._message(self._text))
        yield self._event('response.completed', response=self.whole(self._text, '', said))

    def end(self) -> Iterator[str]:
        """See `_Form`."""
        return iter(())

    @property
    def _place(self) -> dict[str, Json]:
        return {'item_id': f'msg_{self._id}', 'output_index': 0, 'content_index': 0}

    def _message(self, text: str) -> dict[str, Any]:
        return {
            'id': f'msg_{self._id}',
            'type': 'message',
            'role': 'assistant',
            'status': 'completed',
            'content': [_text_part(text)],
        }

    def _event(self, kind: str, **fields: Any) -> str:
        return _data({'type': kind, 'sequence_number': next(self._count), **fields}, kind)


def _text_part(text: str) -> dict[str, Json]:
    return {'type': 'output_text', 'text': text, 'annotations': [], 'logprobs': []}


def _usage(usage: Usage) -> dict[str, Json]:
    return {
        'prompt_tokens': usage.input_tokens,
        'completion_tokens': usage.output_tokens,
        'total_tokens': usage.input_tokens + usage.output_tokens,
    }
