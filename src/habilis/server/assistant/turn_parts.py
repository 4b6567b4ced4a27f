"""What a turn does, as parts for front-ends that show more than text. A protocol says what it sends for each part."""

import json
import secrets
from collections.abc import AsyncGenerator, Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from starlette.responses import Response, StreamingResponse

from habilis.agent import events
from habilis.agent.contract import Result, Waiting
from habilis.assistant import SessionEvent, TurnEnded
from habilis.core.approval import Approval
from habilis.core.codec import Json
from habilis.journal.copies import new_run_id
from habilis.models.files import File
from habilis.server.assistant.conversations import Conversations
from habilis.server.assistant.reply_text import ReplyText, Said, cell_text
from habilis.server.operations import EVENTS, BadRequest

CODE_TOOL = 'python'
"""Cells are shown as calls of this tool."""

MAX_OUTPUT = 20_000
"""Max characters of a result."""

TOLD = (events.OutputEvent, events.NoticeEvent, events.ToolLogged, events.ToolProgress, events.RetryEvent)
"""What is shown by its text, while it happens."""


class BegunPart(NamedTuple):
    """The turn has begun, or goes on. `run` is its id in the journal."""

    run: str


class WordsPart(NamedTuple):
    """Words of one kind begin (`text` is None), go on, or end (`text` is empty)."""

    id: str
    kind: Literal['answer', 'thinking']
    text: str | None


class StepPart(NamedTuple):
    """A step begins or ends."""

    name: str
    ends: bool


class CallPart(NamedTuple):
    """A cell or a tool call begins."""

    id: str
    name: str
    input: dict[str, Json]


class ResultPart(NamedTuple):
    """A call has ended; or a cell waits for a person, and goes on under the same id."""

    id: str
    outcome: Literal['done', 'failed', 'denied', 'waits']
    output: str


class ToldPart(NamedTuple):
    """Something to show for a while, such as progress."""

    kind: str
    text: str


class QuestionPart(NamedTuple):
    """What a turn waits for."""

    id: str
    call: str
    """The call that waits; empty for one that was not shown, such as that of a subagent."""

    waiting: Waiting


class EndedPart(NamedTuple):
    """The turn has a result."""

    result: Result[Any]
    questions: Sequence[QuestionPart]


class FailedPart(NamedTuple):
    """The turn has none."""

    error: BaseException


TurnPart = BegunPart | WordsPart | StepPart | CallPart | ResultPart | ToldPart | EndedPart | FailedPart


class TurnParts:
    """Takes the events of a turn, and returns its parts."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._reply = ReplyText()
        self._block: WordsPart | None = None
        self._step = self._count = 0
        self._open_step = self._cell = ''
        self._calls: dict[int, str] = {}
        self._asked: dict[int, events.ApprovalAsked] = {}

    def feed(self, event: SessionEvent) -> Iterator[TurnPart]:
        """The parts of an event. Those of subagents are not shown."""
        if event.parent:
            return
        for said in self._reply.feed(event):
            yield from self._speak(said)
        if isinstance(event, TOLD):
            yield ToldPart(event.kind, event.text)
        for part in self._work(event):
            yield from self._close_block()
            yield part
        if isinstance(event, TurnEnded):
            yield from self._end(event)

    def _work(self, event: SessionEvent) -> Iterator[TurnPart]:
        if event.step not in (0, self._step):
            self._step, self._count = event.step, 0
        match event:
            case events.StepStarted():
                self._open_step = f'step {event.step}'
                yield StepPart(self._open_step, ends=False)
            case events.StepFinished():
                yield from self._close_step()
            case events.CodeEvent():
                self._cell = f'{self._run}.{event.step}'
                yield CallPart(self._cell, CODE_TOOL, {'code': event.code})
            case events.CellFinished(cell=cell):
                yield ResultPart(self._cell, 'failed' if cell.error else 'done', cell_text(cell)[:MAX_OUTPUT])
                self._cell = ''
            case events.ToolCalled(call=call):
                self._count += 1
                self._calls[call.id] = id = f'{self._run}.{self._step}.{self._count}'
                yield CallPart(id, call.tool, plain(call.arguments))
            case events.ApprovalAsked(request=request):
                self._asked[request.id] = event
            case events.ApprovalAnswered(request=request):
                self._asked.pop(request.id, None)
            case events.ToolReturned(call=call) if call.id in self._calls and call.id not in self._asked:
                outcome = 'done' if call.ok else 'denied' if call.decision == 'refused' else 'failed'
                yield ResultPart(self._calls[call.id], outcome, call.result if call.ok else call.error or '')
            case _:
                pass

    def _end(self, event: TurnEnded) -> Iterator[TurnPart]:
        result = event.result
        for said in self._reply.end(result) if result is not None and not result.waiting else ():
            yield from self._speak(said)
        yield from self._close_block()
        if result is not None and self._cell:
            yield ResultPart(self._cell, 'waits', 'waits for a person')
        yield from self._close_step()
        if result is None:
            yield FailedPart(event.error or RuntimeError('no result'))
        else:
            yield EndedPart(
                result, [QuestionPart(f'{self._run}:{one.path}', self._call_of(one), one) for one in result.waiting]
            )

    def _call_of(self, waiting: Waiting) -> str:
        for number, asked in self._asked.items():
            if asked.request.tool == waiting.tool and asked.request.arguments == waiting.arguments:
                del self._asked[number]
                return self._calls[number]
        return ''

    def _speak(self, said: Said) -> Iterator[TurnPart]:
        text = said.text
        if said.kind == 'cell':
            return
        if self._block is None or self._block.kind != said.kind:
            text = text.lstrip('\n')
            if not text:
                return
            yield from self._close_block()
            self._block = WordsPart(f'msg-{secrets.token_hex(8)}', said.kind, None)
            yield self._block
        yield self._block._replace(text=text)

    def _close_block(self) -> Iterator[TurnPart]:
        if self._block is not None:
            yield self._block._replace(text='')
            self._block = None

    def _close_step(self) -> Iterator[TurnPart]:
        if self._open_step:
            yield StepPart(self._open_step, ends=True)
            self._open_step = ''


@dataclass(frozen=True, kw_only=True)
class SentTurn:
    """A message of a conversation, or the answers to what its last turn waits for."""

    session: str
    text: str = ''
    files: Sequence[File] = ()
    answers: Mapping[str, Json | Approval] = field(default_factory=dict[str, Json | Approval])
    """By the id of the question."""

    calls: Container[str] = ()
    results: Container[str] = ()
    """What the client has seen, by id: a cell that has waited for a person runs anew."""

    def is_seen(self, part: TurnPart) -> bool:
        """Whether not to send a part again."""
        return (isinstance(part, CallPart) and part.id in self.calls) or (
            isinstance(part, ResultPart) and part.id in self.results
        )


async def answer_turn(
    conversations: Conversations,
    user: str,
    sent: SentTurn,
    form: Callable[[TurnPart], Iterator[Json]],
    headers: Mapping[str, str],
    last: str = '',
) -> Response:
    """Take a turn, and stream it. The turn goes on if the client leaves. Raises `HabilisError` if it cannot begin."""
    turn = await _begin(conversations, user, sent)
    run = (await anext(turn)).run

    async def body() -> AsyncGenerator[str]:
        for message in form(BegunPart(run)):
            yield _data(message)
        parts = TurnParts(run)
        async for event in turn:
            for part in parts.feed(event):
                for message in () if sent.is_seen(part) else form(part):
                    yield _data(message)
        yield last

    return StreamingResponse(body(), media_type=EVENTS, headers={'Cache-Control': 'no-store', **headers})


async def _begin(conversations: Conversations, user: str, sent: SentTurn) -> AsyncGenerator[SessionEvent, None]:
    if not sent.answers:
        if not sent.text.strip():
            msg = 'messages: the last one must be of the user, and say something'
            raise BadRequest(msg)
        return (await conversations.get(user, sent.session)).stream(sent.text, sent.files, new_run_id())
    answers = {tuple(id.split(':', 1)): answer for id, answer in sent.answers.items()}
    [*runs] = {place[0] for place in answers}
    if len(runs) > 1:
        msg = 'answer the questions of one run at a time'
        raise BadRequest(msg)
    by_path = {place[-1]: answer for place, answer in answers.items()}
    return await conversations.stream_decisions(user, sent.session, runs[0], by_path)


def plain(arguments: Mapping[str, object]) -> dict[str, Json]:
    """Arguments for a client; what JSON has no type for is shown by its `repr`."""
    try:
        return json.loads(json.dumps(dict(arguments), default=repr, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return {name: repr(value) for name, value in arguments.items()}


def _data(value: Json) -> str:
    return f'data: {json.dumps(value)}\n\n'
