"""One conversation of the chat: the agent, the memory, and its turns."""

import asyncio
import contextlib
import hashlib
import os
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from typing import Any, cast

from habilis.agent.agent import Agent
from habilis.agent.chat import Chat
from habilis.agent.contract import Result, Waiting
from habilis.agent.durable.sessions import check_idle
from habilis.agent.durable.undo import TakenBack, take_back
from habilis.agent.hooks.sanitize import escape_controls
from habilis.agent.memory_tools import memory_tools
from habilis.cli.chat.attachments import attach
from habilis.cli.chat.front import FrontEnd
from habilis.cli.chat.recollection import BUDGET, SMALL_BUDGET, Recollection
from habilis.cli.chat.terminal_user import ChatUser
from habilis.cli.chat.turn_view import TurnView
from habilis.cli.model_choice import ModelRequest, Say, choose_model
from habilis.cli.pictures import picture_folder
from habilis.cli.program import AnyTool
from habilis.cli.run.agent_options import choose_sandbox, make_agent
from habilis.cli.run.report import answer_text
from habilis.cli.run.request import CommandRequest
from habilis.cli.terminal_user import YES
from habilis.core.errors import HabilisError, JournalError, ModelError, RememberError
from habilis.core.settings import Settings
from habilis.journal import Store
from habilis.journal.copies import new_run_id
from habilis.journal.index import name_of
from habilis.memory import Memory, Turn
from habilis.models.contract import Model, Usage
from habilis.models.engine import EngineModel
from habilis.models.usage import Ledger
from habilis.models.wrapper import WrapperModel
from habilis.tools import people_toolset

ASK_USER = 'ask_user'
"""The tool of `people_toolset` that asks."""

META_KEY = 'habilis chat'
"""Key of the `TurnNote` in the metadata of a run."""


def sessions_of(folder: str) -> str:
    """How the ids of conversations start that were begun in a folder."""
    return f'chat-{hashlib.sha256(os.path.realpath(folder).encode()).hexdigest()[:6]}-'


def new_session() -> str:
    """Id for a conversation that begins in this folder."""
    return f'{sessions_of(os.getcwd())}{secrets.token_hex(3)}'


@dataclass(frozen=True, kw_only=True)
class TurnNote:
    """What is recorded with the run of a turn."""

    turn: str = ''
    """Id of the message in the memory."""

    given: Sequence[str] = ()
    """Ids of what the memory has given to the chat so far."""

    earlier: Sequence[str] = ()
    """Ids of the last turns of the chats that this one is a copy of, the oldest first."""

    @classmethod
    def from_meta(cls, meta: Mapping[str, object]) -> 'TurnNote':
        """The note of a run; an empty one if it has none."""
        found = meta.get(META_KEY)
        if not isinstance(found, dict):
            return cls()
        note = cast('dict[str, object]', found)
        return cls(turn=str(note.get('turn') or ''), given=_ids(note.get('given')), earlier=_ids(note.get('earlier')))


def _ids(found: object) -> list[str]:
    return [str(one) for one in cast('list[object]', found)] if isinstance(found, list) else []


@dataclass(frozen=True, kw_only=True)
class Unfinished:
    """A turn that was stopped or failed."""

    run: str
    message: str


class ChatSession:
    """Takes turns. Each is saved as it happens: the messages in the memory, the run in the journal."""

    def __init__(
        self,
        front: FrontEnd,
        request: CommandRequest,
        settings: Settings,
        *,
        memory: Memory,
        store: Store,
        tools: Sequence[AnyTool] = (),
    ) -> None:
        self.front = front
        self.request = request
        self.settings = settings
        self.memory = memory
        self.store = store
        self.ledger = Ledger('chat')
        self.unfinished: Unfinished | None = None
        """The next message continues it."""

        self.recollection = Recollection(memory, new_session())
        self.is_recorded = False
        """Whether the conversation has a turn of its own, so that it can be resumed."""

        self._earlier: Sequence[str] = ()
        self.own_tools = tools
        self._user = ChatUser(front)
        self._model: Model | None = None
        self._agent: Agent[Any] | None = None
        self._chat: Chat[Any] | None = None
        self._connecting: asyncio.Future[None] | None = None

    @property
    def session(self) -> str:
        """Id of the conversation."""
        return self.recollection.session

    @property
    def model(self) -> Model:
        """The model."""
        assert self._model is not None
        return self._model

    @property
    def place(self) -> str:
        """Model and sandbox in one line."""
        folder = f' · {os.path.relpath(self.request.workspace)}' if self.request.workspace else ''
        return f'{self.model.name} · {self.settings.sandbox}{folder}'

    @property
    def usage(self) -> Usage:
        """Of all turns of this process."""
        return self.ledger.total if self._agent is None else self.ledger.total + self._agent.ledger.total

    # Opening ----------------------------------------------------------------------------------------------------------

    async def open(self, say: Say) -> None:
        """Load the model, and be ready for a turn."""
        request = self.request
        option = None if request.model_is_recorded else '--model'
        wanted = ModelRequest(name=request.model, option=option, overrides=request.overrides, download=request.download)
        model = await choose_model(wanted, self.settings, self._user, say)
        try:
            settings = await choose_sandbox(request, self.settings, say)
        except BaseException:
            await model.close()
            raise
        await self.close()
        self._model, self.settings = model, settings
        self._connecting = asyncio.ensure_future(_connect(model))
        await self._open_agent()

    async def _open_agent(self) -> None:
        agent = make_agent(
            self.request,
            self.settings,
            self.model,
            tools=self.tools(),
            hooks=(),
            approve=self._user.approve if self.front.is_present else None,
            instructions=files('habilis.cli.chat').joinpath('instructions.md').read_text(encoding='utf-8').strip(),
            talk=True,
            journal=self.store,
            name='chat',
        )
        self._agent, self._chat = agent, agent.conversation(self.session, user=self.memory.user)

    def tools(self) -> list[AnyTool]:
        """What code can call, beside the tools of a library."""
        # A small model would ask instead of working.
        asks = self.front.is_present and not self.model.traits.small
        people = [people_toolset(self._user.answer)] if asks else []
        return [*self.own_tools, memory_tools(self.memory, lambda: self.session), *people]

    async def switch(self, request: CommandRequest, settings: Settings, say: Say) -> None:
        """Go on with other options. Raises `HabilisError`, and goes on as before."""
        before = self.request, self.settings
        self.request, self.settings = request, settings
        try:
            await self.open(say)
        except BaseException:
            self.request, self.settings = before
            raise

    async def enter(self, session: str, note: TurnNote | None = None) -> None:
        """Go on in another conversation: a new one, or a recorded one with the note of its last turn."""
        assert self._agent is not None
        await self._move(self._agent.conversation(session, user=self.memory.user), note or TurnNote())
        self.is_recorded = note is not None

    async def fork(self) -> str:
        """Go on in a copy. Returns the id of the conversation that stays as it is."""
        assert self._chat is not None
        left = self.session
        last = [turn.id for turn in await self.memory.turns(left, limit=1)]
        note = TurnNote(given=self.recollection.given, earlier=[*self._earlier, *last])
        await self._move(await self._chat.fork(new_session()), note)
        return left

    async def _move(self, chat: Chat[Any], note: TurnNote) -> None:
        assert self._chat is not None
        await self._chat.close()
        self._chat, self.unfinished, self.is_recorded = chat, None, False
        self.recollection = Recollection(self.memory, chat.session, given=note.given)
        self._earlier = note.earlier

    async def turns(self) -> list[Turn]:
        """All turns of the conversation; of a copy, also those from before it was made."""
        found: list[Turn] = []
        for id in self._earlier:
            with contextlib.suppress(RememberError):  # forgotten meanwhile
                last = await self.memory.get(id)
                assert isinstance(last, Turn)
                found += [turn for turn in await self.memory.turns(last.session) if turn.position <= last.position]
        return [*found, *await self.memory.turns(self.session)]

    async def close(self) -> None:
        """Free the sandbox and the model."""
        await self._close_agent()
        if self._connecting is not None:
            self._connecting.cancel()
        model, self._model = self._model, None
        if model is not None:
            await model.close()

    async def _close_agent(self) -> None:
        chat, self._chat = self._chat, None
        agent, self._agent = self._agent, None
        if chat is not None:
            await chat.close()
        if agent is not None:
            for entry in agent.ledger.entries:
                self.ledger.record(entry.model, entry.usage, agent=entry.agent, at=entry.at)
            await agent.close()

    # Turns ------------------------------------------------------------------------------------------------------------

    async def take_turn(self, message: str) -> Result[Any]:
        """Answer a message, or continue the unfinished turn with it. Raises `HabilisError`."""
        attached = attach(message, sees_images=self.model.traits.images)
        await check_idle(self.store, self.memory.user, self.session)
        turn = await self.memory.add_turn(self.session, 'user', message)
        unfinished = self.unfinished
        if unfinished is not None and not attached.files:
            answer = None if message == unfinished.message else attached.text
            try:
                return await self.finish(unfinished, answer)
            except JournalError as error:
                print(f'the turn before cannot be continued: {error}', flush=True)
                self.unfinished = None
        budget = SMALL_BUDGET if self.model.traits.small else BUDGET
        task = await self.recollection.add_to(attached.text, budget=budget)
        run = new_run_id()
        model = self.request.model or self.settings.model or self.model.name
        note = asdict(TurnNote(turn=turn.id, given=self.recollection.given, earlier=self._earlier))
        meta = {**self.request.to_meta(model), META_KEY: note}
        assert self._chat is not None
        work = self._chat.run
        return await self._watch(
            Unfinished(run=run, message=message),
            lambda view: work([task, *attached.files], run_id=run, meta=meta, hooks=[view]),
        )

    async def finish(self, turn: Unfinished, answer: str | None = None) -> Result[Any]:
        """Continue a turn from its record, with another message if there is one. Raises `HabilisError`."""
        assert self._agent is not None
        resume, user = self._agent.resume, self.memory.user
        result = await self._watch(turn, lambda view: resume(turn.run, answer, user=user, hooks=[view]))
        while self.front.is_present and (doubts := [one for one in result.waiting if not one.tool]):
            self.unfinished = turn
            for doubt in doubts:
                if not await self._may_repeat(doubt):
                    return result
                await self._agent.answer(turn.run, {'again': True}, path=doubt.path, user=user)
            result = await self._watch(turn, lambda view: resume(turn.run, user=user, hooks=[view]))
        return result

    async def _may_repeat(self, doubt: Waiting) -> bool:
        """Whether to repeat a call that was under way when the turn was cut short, and may have had its effect."""
        if name_of(doubt.path).partition('(')[0] == ASK_USER:  # nobody has answered it
            return True
        answer = await self.front.ask(f'\n{escape_controls(doubt.question)}\nRun it again? [y/N] ')
        return (answer or '').strip().lower() in YES

    async def _watch(self, turn: Unfinished, work: Callable[[TurnView], Awaitable[Result[Any]]]) -> Result[Any]:
        with self.front.working('starting'):
            view = TurnView(picture_folder(self.request.workspace, turn.run))
            try:
                result = await work(view)
            except (HabilisError, asyncio.CancelledError):
                self.unfinished = turn if view.has_started else self.unfinished
                self.is_recorded |= view.has_started
                self._user.drop_questions()
                raise
            finally:
                view.end()
                if view.has_compacted:  # what the model was given before may be among what was shortened
                    self.recollection.given.clear()
        self.unfinished, self.is_recorded = None, True
        if text := _said(result):
            await self.memory.add_turn(self.session, 'assistant', text)
        return result

    # Going back -------------------------------------------------------------------------------------------------------

    async def undo(self) -> TakenBack | None:
        """Take back the last turn, or the unfinished one, with what the memory has of it. Raises `HabilisError`."""
        assert self._chat is not None
        if self.unfinished is not None:
            taken = await take_back(self.store, self.unfinished.run, user=self.memory.user)
            self.unfinished = None
        else:
            taken = await self._chat.undo()
        if taken is not None:
            await self._forget_turns(taken)
        return taken

    async def _forget_turns(self, taken: TakenBack) -> None:
        first = TurnNote.from_meta(taken.meta).turn
        turns = await self.memory.turns(self.session)
        ids = [turn.id for turn in turns]
        if first in ids:
            await self.memory.forget(*ids[ids.index(first) :])
        self.recollection.last = None


async def _connect(model: Model) -> None:
    """Import and open what the first message needs, while the user types it. If that fails, the message says why."""
    while isinstance(model, WrapperModel):
        model = model.inner
    if isinstance(model, EngineModel):
        with contextlib.suppress(ModelError):
            await model.connect()


def _said(result: Result[Any]) -> str:
    if result.ended == 'answer':
        return answer_text(result.output)
    return result.question or ''


def with_model(request: CommandRequest, model: str) -> CommandRequest:
    """The request with another model."""
    return replace(request, model=model, model_is_recorded=False, overrides={})
