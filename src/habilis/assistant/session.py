"""`Session`: one conversation of a user with an agent that remembers."""

import asyncio
import functools
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Self

from typing_extensions import Unpack

from habilis.agent.chat import Chat
from habilis.agent.contract import Result
from habilis.agent.durable.runs import JournalChoice
from habilis.agent.durable.sessions import check_idle
from habilis.agent.durable.undo import TakenBack, take_back
from habilis.agent.events import AgentEvent, RunResumed, RunStarted
from habilis.agent.hooks.dispatch import Hook
from habilis.agent.options import ModelChoice, WorkOptions
from habilis.agent.shortening import Shortened
from habilis.assistant import records
from habilis.assistant.agents import SessionAgent, Surroundings
from habilis.assistant.contract import (
    FilesEdited,
    NoView,
    SessionEvent,
    TurnAbandoned,
    TurnEnded,
    TurnStarted,
    Unfinished,
    View,
)
from habilis.assistant.modes import Mode, check_mode, default_mode
from habilis.assistant.project_instructions import InstructionFile
from habilis.assistant.recall import Recall
from habilis.assistant.records import META_KEY, Recorded, TurnNote, find_recorded, new_session
from habilis.assistant.shell_commands import CommandRun, attached_text, run_command, unsent_commands
from habilis.assistant.turns import OneAtATime, Show, settle_doubts, stream_turn
from habilis.core.approval import Approval
from habilis.core.closing import Closing
from habilis.core.codec import Json
from habilis.core.errors import AgentError, JournalError, RunNotFound
from habilis.core.settings import load_settings
from habilis.journal.copies import new_run_id
from habilis.journal.runs import ListedRun, list_runs
from habilis.journal.stores.urls import open_store
from habilis.memory import Memory, MemoryContext, Turn
from habilis.models.contract import Model, Recollection, Usage
from habilis.models.files import File
from habilis.models.usage import Ledger

_Work = Callable[[Hook], Awaitable[Result[Any]]]


class Session(Closing):
    """A conversation: an agent, the memory of its user with their tasks, and the files of a workspace.

    Everything is saved as it happens: messages in the memory, turns as runs in the journal. After a crash the same `id`
    continues it.
    """

    def __init__(
        self,
        model: ModelChoice | None = None,
        *,
        memory: Memory,
        journal: JournalChoice = None,
        id: str = '',
        project: str = '',
        view: View | None = None,
        mode: Mode | None = None,
        meta: Mapping[str, object] | None = None,
        **options: Unpack[WorkOptions],
    ) -> None:
        """Nothing is loaded or read yet; the first turn, or `open`, does that.

        Args:
            model: as for `Agent`. A `Model` stays open when the session is closed.
            memory: of the user that the session belongs to. It stays open when the session is closed.
            journal: where turns are recorded; None: as the settings say.
            id: the conversation to continue; empty for a new one. An id without a turn begins a conversation.
            project: what the work is about, such as a folder. Memory and tasks of other projects stay out of it. A
                recorded conversation keeps its own. Empty: no project, and all of the memory.
            view: shows what happens, and asks the user; None if nobody is there.
            mode: see `mode`; by default that of the conversation, else `ask` where a folder is shared for writing.
            meta: plain data kept with the run of each turn.
            options: further options of `Agent`.
        """
        self.memory = memory.within(project)
        self.view: View = view or NoView()
        self.meta = meta or {}
        self.unfinished: Unfinished | None = None
        """The turn that was stopped or failed last. The next message continues it, `finish` too, `undo` drops it."""

        self.last_meta: Mapping[str, object] = {}
        """The `meta` of the last turn that was recorded when the conversation was entered."""

        self.is_recorded = False
        """Whether the conversation has a turn of its own, so that it can be resumed."""

        self.store = open_store(journal or (options.get('settings') or load_settings()).journal)
        self._is_own_store = self.store is not journal
        self._around = Surroundings(memory=self.memory, session=lambda: self.id, store=self.store, view=self.view)
        self._options = options
        self._choice = model
        self._given_mode = mode
        self._mode: Mode = mode or default_mode(options)
        self._mode_before: Mode | None = None
        self._wanted = id
        self._recall = Recall(self.memory, id or new_session())
        self._earlier: Sequence[str] = ()
        self._copy_of = ''
        """The conversation that this one is a copy of, until its first turn is recorded."""

        self._ledger = Ledger('chat')
        self._commands: list[str] = []
        """What commands of the user have printed since the last message."""

        self._shows: list[Show] = []
        self._one = OneAtATime()
        self._running = ''
        """Id of the run of the last turn, perhaps under way."""

        self._opened: SessionAgent | None = None
        self._chat: Chat[Any] | None = None
        self._is_closed = False

    def __repr__(self) -> str:
        return f'<Session {self.id} of {self.memory.user!r}>'

    @property
    def id(self) -> str:
        """Id of the conversation. `fork`, `enter` and `clear` change it."""
        return self._recall.session

    @property
    def model(self) -> Model:
        """The model. Raises `AgentError` before the session is open."""
        return self.opened.model

    @property
    def is_busy(self) -> bool:
        """Whether a turn is under way."""
        return self._one.is_busy

    @property
    def usage(self) -> Usage:
        """Of all turns of this process."""
        return self._ledger.total + (Usage() if self._opened is None else self._opened.agent.ledger.total)

    @property
    def recalled(self) -> MemoryContext | None:
        """What the last message got from the memory."""
        return self._recall.last

    # Opening ----------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        return await self.open()

    async def open(self) -> Self:
        """Load the model, and read where the conversation stands. Raises `HabilisError`."""
        if self._is_closed:
            msg = 'this session is closed; open another one with the same id'
            raise AgentError(msg)
        if self._opened is None:
            self._opened = await SessionAgent.open(self._choice, self._options, self._around, self._mode)
            self._chat = await self._converse(self._opened)
        if self._wanted:
            wanted, self._wanted = self._wanted, ''
            await self.enter(await find_recorded(self.store, self.memory.user, wanted) or wanted)
        return self

    async def switch(self, model: ModelChoice, **options: Unpack[WorkOptions]) -> None:
        """Go on with another model, and other options if given, in the same conversation, unless that fails."""
        self._one.check(self.id)
        options = options or self._options
        # A mode that nobody chose is the default of the new options: a folder that is shared now is asked about.
        mode = default_mode(options) if self._mode == default_mode(self._options) else self._mode
        opened = await SessionAgent.open(model, options, self._around, mode)
        self._choice, self._options, self._mode = model, options, mode
        await self._use(opened)

    @property
    def mode(self) -> Mode:
        """What may be changed without a question: `ask`, `edits`, `plan` or `all`; see `assistant/modes.py`."""
        return self._mode

    async def set_mode(self, mode: str) -> None:
        """Go on in another mode, in the same conversation. If that fails, nothing changes. Raises `AgentError`."""
        wanted = check_mode(mode)
        await self.open()
        self._one.check(self.id)
        if wanted == self._mode:
            return
        opened = await SessionAgent.open(self.opened.model, self._options, self._around, wanted)
        opened.take_model(self.opened)
        self._mode_before, self._mode = self._mode, wanted
        await self._use(opened)

    async def carry_out(self, plan: str) -> Result[Any]:
        """Leave the mode `plan`, and have a plan carried out: the last answer, perhaps changed by the user."""
        if self._mode == 'plan':
            await self.set_mode(self._mode_before or default_mode(self._options))
        return await self.send(f'Carry out this plan:\n\n{plan}')

    async def _converse(self, opened: SessionAgent) -> Chat[Any]:
        copy_of = '' if self.is_recorded else self._copy_of
        return await opened.conversation(self.id, user=self.memory.user, copy_of=copy_of)

    async def close(self) -> None:
        """Free the sandbox, and the model and the journal if the session has opened them."""
        self._is_closed = True
        await self._use(None)
        if self._is_own_store:
            await self.store.close()

    async def _use(self, agent: SessionAgent | None) -> None:
        """Close the agent of before. What looks at the session meanwhile, such as a status line, sees the new one."""
        chat, opened = self._chat, self._opened
        self._chat = None if agent is None else await self._converse(agent)
        self._opened = agent
        if chat is not None:
            await chat.close()
        if opened is not None:
            for entry in opened.agent.ledger.entries:
                self._ledger.record(entry.model, entry.usage, agent=entry.agent, at=entry.at)
            await opened.close()

    # Turns ------------------------------------------------------------------------------------------------------------

    async def send(
        self, message: str, *, files: Sequence[File] = (), attached: str = '', run_id: str = ''
    ) -> Result[Any]:
        """Take a turn with a message of the user, or continue the unfinished turn with it. Raises `HabilisError`.

        `files` and `attached`, a text such as the list of a folder, came with it. `run_id`: of a turn that begins.
        After an error the turn is unfinished: the same message again goes on where it stopped.
        """
        await self.open()
        with self._one.turn(self.id):
            return await self._send(message, files, attached, run_id or new_run_id())

    async def _send(self, message: str, files: Sequence[File], attached: str, run: str) -> Result[Any]:
        await check_idle(self.store, self.memory.user, self.id)
        turn = await self.memory.add_turn(self.id, 'user', message)
        attached = f'{attached_text(self._commands)}{attached}'
        text = f'{message}{attached}'
        is_again = self.unfinished is not None and message == self.unfinished.message and not self._commands
        if self.unfinished is not None and (is_again or not files):  # the record has the files of the same message
            self._commands = []
            try:
                return await self._finish(self.unfinished, None if is_again else text)
            except JournalError as error:
                self._show(TurnAbandoned(run=self.unfinished.run, session=self.id, error=error))
                self.unfinished = None
        messages = await self._conversation.current_messages()
        recalled = await self._recall.choose(text, messages, budget=self.opened.policy.memory_tokens())
        said = message if attached else ''
        why = [item.why for item in recalled.items]
        note = TurnNote(turn=turn.id, said=said, why=why, earlier=self._earlier, mode=self._mode)
        parts = [text, *files, *([Recollection(recalled.text)] if recalled.items else [])]
        chat, meta = self._conversation, {**self.meta, META_KEY: asdict(note)}
        return await self._watch(
            Unfinished(run=run, message=message),
            lambda hook: chat.run(parts, run_id=run, meta=meta, hooks=[hook]),
            memory=recalled,
            instructions=self.opened.instructions,
        )

    def stream(
        self, message: str, *, files: Sequence[File] = (), attached: str = ''
    ) -> AsyncGenerator[SessionEvent, None]:
        """Like `send`, and yields the events as they happen; the last is `TurnEnded`. Closing it stops the turn."""
        return stream_turn(self._shows, lambda: self.send(message, files=files, attached=attached))

    async def finish(self) -> Result[Any]:
        """Finish the unfinished turn from its record. Nothing that is in it is done again. Raises `HabilisError`."""
        await self.open()
        with self._one.turn(self.id):
            if self.unfinished is None:
                msg = 'there is no unfinished turn: send a message'
                raise AgentError(msg)
            return await self._finish(self.unfinished)

    async def answer(self, run: str, answer: Json | Approval, *, path: str | None = None) -> Result[Any]:
        """Decide what a turn waits for (`Result.waiting`), and finish it. Takes the arguments of `Agent.answer`."""
        await self.open()
        with self._one.turn(self.id):
            await self.opened.agent.answer(run, answer, path=path, user=self.memory.user)
            return await self._finish(Unfinished(run=run, message=''))

    async def run_command(self, command: str, show: Callable[[str], None]) -> CommandRun:
        """Run a shell command with the files of this session. `show` and the next message get what it prints."""
        await self.open()
        with self._one.turn(self.id):
            ran = await run_command(command, self._options, self._mode, show)
            self._commands.append(ran.text)
            await self.memory.add_turn(self.id, 'tool', ran.text)
        if ran.is_stopped:
            raise asyncio.CancelledError
        return ran

    def stop(self) -> bool:
        """Stop the turn under way, which raises `RunStopped` and is unfinished then. False if there is none."""
        try:
            self.opened.agent.stop(self._running)
        except (RunNotFound, AgentError):
            return False
        return True

    async def _finish(self, turn: Unfinished, answer: str | None = None) -> Result[Any]:
        agent, user = self.opened.agent, self.memory.user
        result = await self._watch(turn, lambda hook: agent.resume(turn.run, answer, user=user, hooks=[hook]))
        while self.view.is_present and (doubts := [one for one in result.waiting if not one.tool]):
            self.unfinished = turn
            if not await settle_doubts(doubts, self.view, functools.partial(agent.answer, turn.run, user=user)):
                return result
            result = await self._watch(turn, lambda hook: agent.resume(turn.run, user=user, hooks=[hook]))
        return result

    async def _watch(
        self,
        turn: Unfinished,
        work: _Work,
        memory: MemoryContext | None = None,
        instructions: Sequence[InstructionFile] | None = None,
    ) -> Result[Any]:
        """Do the work of a turn, show what happens, and keep the answer."""
        has_started, edits = False, self.opened.edits
        await edits.begin()

        def hook(event: AgentEvent) -> None:
            nonlocal has_started
            if isinstance(event, RunStarted | RunResumed):
                has_started = True
                self._commands = [] if isinstance(event, RunStarted) else self._commands
            self._show(event)
            if found := edits.after(event):
                self._show(FilesEdited(run=turn.run, session=self.id, edits=found))

        self._running, said = turn.run, turn.message
        self._show(TurnStarted(run=turn.run, session=self.id, message=said, memory=memory, instructions=instructions))
        try:
            result = await work(hook)
            if text := records.last_words(result):
                await self.memory.add_turn(self.id, 'assistant', text)
        except BaseException as error:
            self.unfinished = turn if has_started else self.unfinished
            self.is_recorded |= has_started
            self._show(TurnEnded(run=turn.run, session=self.id, error=error, edits=edits.end()))
            raise
        self.unfinished, self.is_recorded = None, True
        self._show(TurnEnded(run=turn.run, session=self.id, result=result, edits=edits.end()))
        return result

    def _show(self, event: SessionEvent) -> None:
        for show in (self.view.show, *self._shows):
            show(event)

    @property
    def opened(self) -> SessionAgent:
        """The agent that takes the turns, with its tools. Raises `AgentError` before the session is open."""
        if self._opened is None:
            msg = 'the session is not open: use `async with`, or await session.open()'
            raise AgentError(msg)
        return self._opened

    @property
    def _conversation(self) -> Chat[Any]:
        assert self._chat is not None
        return self._chat

    # Conversations ----------------------------------------------------------------------------------------------------

    async def enter(self, conversation: str | Recorded) -> None:
        """Go on in another conversation: a new one by its id, or a recorded one."""
        await self.open()
        self._one.check(self.id)
        recorded = conversation if isinstance(conversation, Recorded) else None
        session = conversation if isinstance(conversation, str) else conversation.session
        note = recorded.note if recorded is not None else TurnNote()
        for turn in await self.memory.turns(session, limit=1):
            self.memory.project = turn.project
        await self._move(self.opened.agent.conversation(session, user=self.memory.user), note)
        if note.mode and self._given_mode is None:
            await self.set_mode(note.mode)
        self._commands = await unsent_commands(self.memory, session)
        self.is_recorded = recorded is not None
        self.unfinished = recorded.unfinished if recorded is not None else None
        self.last_meta = recorded.meta if recorded is not None else {}

    async def clear(self) -> str:
        """Begin a new conversation. Returns the id of the one before, which stays as it is."""
        left = self.id
        await self.enter(new_session())
        return left

    async def fork(self) -> str:
        """Go on in a copy, which is recorded from its first turn on. Returns the id of the one that stays as it is."""
        await self.open()
        self._one.check(self.id)
        left = self.id
        last = [turn.id for turn in await self.memory.turns(left, limit=1)]
        note = TurnNote(earlier=[*self._earlier, *last])
        copy_of = left if self.is_recorded else self._copy_of or left
        await self._move(await self._conversation.fork(new_session()), note)
        self._copy_of = copy_of
        return left

    async def _move(self, chat: Chat[Any], note: TurnNote) -> None:
        await self._conversation.close()
        self._chat, self.unfinished, self.is_recorded = chat, None, False
        self._recall = Recall(self.memory, chat.session)
        self._earlier, self._copy_of = note.earlier, ''

    async def undo(self) -> TakenBack | None:
        """Take back the last turn, or the unfinished one: its messages, variables, what the memory has of it and, with
        checkpoints, its files. None if there is no turn. Raises `HabilisError`."""
        await self.open()
        self._one.check(self.id)
        if self.unfinished is not None:
            taken = await take_back(self.store, self.unfinished.run, user=self.memory.user)
            self.unfinished = None
        else:
            taken = await self._conversation.undo()
        if taken is not None:
            await records.forget_turns(self.memory, self.id, taken)
            self._commands = await unsent_commands(self.memory, self.id)
            self._recall.last = None
        return taken

    async def compact(self, keep: str = '') -> Shortened:
        """Shorten what the model gets of the conversation so far; see `Chat.compact`. Raises `HabilisError`."""
        await self.open()
        if self.unfinished is not None:
            msg = 'the last turn is not finished: send a message to finish it, or take it back'
            raise AgentError(msg)
        with self._one.turn(self.id):
            return await self._conversation.compact(keep)

    async def turns(self) -> list[Turn]:
        """All turns of the conversation; of a copy, also those from before it was made."""
        return await records.turns_of(self.memory, self.id, self._earlier)

    async def runs(self) -> list[ListedRun]:
        """The recorded turns of the conversation, newest first."""
        return await list_runs(self.store, user=self.memory.user, session=self.id)
