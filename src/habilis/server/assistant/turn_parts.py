"""What a turn does, as parts for front-ends that show more than text: words, calls and their results, questions.

A protocol has a form: what it sends for each part. The rest is here.
"""

import base64
import json
import secrets
from collections.abc import AsyncGenerator, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from starlette.responses import Response, StreamingResponse

from habilis.agent import events
from habilis.agent.contract import Result, Waiting
from habilis.assistant import SessionEvent, TurnEnded
from habilis.core.approval import Approval
from habilis.core.codec import Json
from habilis.journal.copies import new_run_id
from habilis.models.files import File
from habilis.sandbox.contract import Display
from habilis.server.assistant.conversations import Conversations
from habilis.server.assistant.reply_text import ReplyText, Said, cell_text
from habilis.server.operations import EVENTS, BadRequest

CODE_TOOL = 'python'
"""Cells are shown as calls of this tool."""

MAX_OUTPUT = 20_000
"""Max characters of a result."""

TOLD = (
    events.OutputEvent,
    events.NoticeEvent,
    events.ToolLogged,
    events.ToolProgress,
    events.ModelProgress,
    events.RetryEvent,
    events.CompactedEvent,
)
"""What is shown by its text, if at all."""

# Parts ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """Words of one kind begin (`text` is None), go on, or end (`text` is empty)."""

    id: str
    kind: Literal['answer', 'thinking']
    text: str | None


@dataclass(frozen=True)
class Step:
    """A step begins or ends."""

    name: str
    ends: bool


@dataclass(frozen=True)
class Call:
    """A cell or a tool call begins."""

    id: str
    name: str
    input: Mapping[str, object]


@dataclass(frozen=True)
class CallResult:
    """A call has ended; or a cell waits for a person, and goes on under the same id."""

    id: str
    outcome: Literal['done', 'failed', 'denied', 'waits']
    output: str
    images: Sequence[Display] = ()


@dataclass(frozen=True)
class Told:
    """Something to show for a while, such as progress."""

    kind: str
    text: str


@dataclass(frozen=True)
class Question:
    """What the turn waits for."""

    id: str
    call: str
    """The call that waits; empty for one that was not shown, such as that of a subagent."""

    waiting: Waiting


Part = Block | Step | Call | CallResult | Told | Question


class TurnParts:
    """Takes the events of a turn, and returns its parts."""

    def __init__(self, run: str, begun: Container[str] = (), ended: Container[str] = ()) -> None:
        """`begun` and `ended`: the calls that the client has seen; a cell that has waited for a person runs anew."""
        self._run = run
        self._begun = begun
        self._ended = ended
        self._reply = ReplyText()
        self._block: Block | None = None
        self._step = 0
        self._is_in_step = False
        self._count = 0
        self._cell = ''
        self._calls: dict[int, str] = {}
        self._asked: dict[int, events.ApprovalAsked] = {}

    def feed(self, event: SessionEvent) -> Iterator[Part]:
        """The parts of an event. Those of subagents are not shown."""
        if event.parent:
            return
        for said in self._reply.feed(event):
            yield from self._speak(said)
        if isinstance(event, TOLD):
            yield Told(event.kind, event.text)
        for part in self._work(event):
            yield from self._close_block()
            is_seen = (isinstance(part, Call) and part.id in self._begun) or (
                isinstance(part, CallResult) and part.id in self._ended
            )
            if not is_seen:
                yield part

    def _work(self, event: SessionEvent) -> Iterator[Part]:
        if event.step != self._step and event.step:
            self._step, self._count = event.step, 0
        match event:
            case events.StepStarted():
                self._is_in_step = True
                yield Step(self._step_name, ends=False)
            case events.StepFinished():
                yield from self._close_step()
            case events.CodeEvent():
                self._cell = f'{self._run}.{self._step}'
                yield Call(self._cell, CODE_TOOL, {'code': event.code})
            case events.CellFinished(cell=cell):
                images = [one for one in cell.displays if one.mime.startswith('image/') and isinstance(one.data, bytes)]
                yield CallResult(self._cell, 'failed' if cell.error else 'done', cell_text(cell)[:MAX_OUTPUT], images)
                self._cell = ''
            case events.ToolCalled(call=call):
                self._count += 1
                self._calls[call.id] = id = f'{self._run}.{self._step}.{self._count}'
                yield Call(id, call.tool, call.arguments)
            case events.ApprovalAsked(request=request):
                self._asked[request.id] = event
            case events.ApprovalAnswered(request=request):
                self._asked.pop(request.id, None)
            case events.ToolReturned(call=call) if call.id in self._calls and call.id not in self._asked:
                outcome = 'done' if call.ok else 'denied' if call.decision == 'refused' else 'failed'
                yield CallResult(self._calls[call.id], outcome, call.result if call.ok else call.error or '')
            case _:
                pass

    def end(self, result: Result[Any]) -> Iterator[Part]:
        """What is left when the turn has a result."""
        for said in self._reply.end(result) if not result.waiting else ():
            yield from self._speak(said)
        yield from self._close_block()
        if self._cell:
            yield CallResult(self._cell, 'waits', 'waits for a person')
        for waiting in result.waiting:
            yield Question(f'{self._run}:{waiting.path}', self._call_of(waiting), waiting)
        yield from self.close()

    def close(self) -> Iterator[Part]:
        """Ends of what is open."""
        yield from self._close_block()
        yield from self._close_step()

    def _call_of(self, waiting: Waiting) -> str:
        for number, asked in self._asked.items():
            if asked.request.tool == waiting.tool and asked.request.arguments == waiting.arguments:
                del self._asked[number]
                return self._calls[number]
        return ''

    def _speak(self, said: Said) -> Iterator[Part]:
        if said.kind == 'cell':
            return
        if self._block is None or self._block.kind != said.kind:
            said = said._replace(text=said.text.lstrip('\n'))
            if not said.text:
                return
            yield from self._close_block()
            self._block = Block(f'msg-{secrets.token_hex(8)}', said.kind, None)
            yield self._block
        yield Block(self._block.id, said.kind, said.text)

    def _close_block(self) -> Iterator[Part]:
        if self._block is not None:
            yield Block(self._block.id, self._block.kind, '')
            self._block = None

    def _close_step(self) -> Iterator[Part]:
        if self._is_in_step:
            self._is_in_step = False
            yield Step(self._step_name, ends=True)

    @property
    def _step_name(self) -> str:
        return f'step {self._step}'


# Turns ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class SentTurn:
    """A message of a conversation, or the answers to what its last turn waits for."""

    session: str
    text: str = ''
    files: Sequence[File] = ()
    answers: Mapping[str, Json | Approval] = field(default_factory=dict[str, Json | Approval])
    """By the id of the question."""

    begun: Container[str] = ()
    ended: Container[str] = ()
    """The calls that the client has seen; see `TurnParts`."""


class Form(Protocol):
    """What a protocol sends."""

    def begin(self, run: str) -> Iterator[Json]:
        """First."""
        ...

    def part(self, part: Part) -> Iterator[Json]:
        """For a part."""
        ...

    def end(self, result: Result[Any]) -> Iterator[Json]:
        """Last, for a turn with a result."""
        ...

    def fail(self, error: BaseException) -> Iterator[Json]:
        """Last, for one without."""
        ...


async def answer_turn(
    conversations: Conversations, user: str, sent: SentTurn, form: Form, *, headers: Mapping[str, str], last: str = ''
) -> Response:
    """Take a turn, and stream it. The turn goes on if the client leaves. Raises `HabilisError` if it cannot begin."""
    turn = await _begin(conversations, user, sent)
    first = await anext(turn)
    parts = TurnParts(first.run, sent.begun, sent.ended)

    async def body() -> AsyncGenerator[str]:
        for message in form.begin(first.run):
            yield _data(message)
        async for event in turn:
            for message in _messages(parts, form, event):
                yield _data(message)
        yield last

    return StreamingResponse(body(), media_type=EVENTS, headers={'Cache-Control': 'no-store', **headers})


def _messages(parts: TurnParts, form: Form, event: SessionEvent) -> Iterator[Json]:
    for part in parts.feed(event):
        yield from form.part(part)
    if not isinstance(event, TurnEnded):
        return
    for part in parts.close() if event.result is None else parts.end(event.result):
        yield from form.part(part)
    yield from form.end(event.result) if event.result is not None else form.fail(event.error or RuntimeError())


async def _begin(conversations: Conversations, user: str, sent: SentTurn) -> AsyncGenerator[SessionEvent, None]:
    if not sent.answers:
        if not sent.text.strip():
            msg = 'messages: the last one must be of the user, and say something'
            raise BadRequest(msg)
        return (await conversations.get(user, sent.session)).stream(sent.text, sent.files, new_run_id())
    places = [id.partition(':') for id in sent.answers]
    runs = {run for run, _, _ in places}
    if len(runs) > 1:
        msg = 'answer the questions of one run at a time'
        raise BadRequest(msg)
    answers = dict(zip((path for _, _, path in places), sent.answers.values(), strict=True))
    return await conversations.stream_decisions(user, sent.session, runs.pop(), answers)


def plain(arguments: Mapping[str, object]) -> dict[str, Json]:
    """Arguments for a client; what JSON has no type for is shown by its `repr`."""
    try:
        return json.loads(json.dumps(dict(arguments), default=repr, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return {name: repr(value) for name, value in arguments.items()}


def encode_image(image: Display) -> str:
    """Base64 of an image."""
    return base64.b64encode(image.data if isinstance(image.data, bytes) else image.data.encode()).decode()


def _data(value: Json) -> str:
    return f'data: {json.dumps(value)}\n\n'
