"""The chat from its start to its end: read a message, do what it says, read the next one."""

import asyncio
import contextlib
import functools
import os
from collections.abc import AsyncGenerator, Coroutine
from dataclasses import replace
from typing import Any

import typer

from habilis.agent.contract import Result
from habilis.agent.hooks.sanitize import escape_controls
from habilis.assistant import Mode
from habilis.assistant.attachments import AttachmentError, attach
from habilis.assistant.records import Recorded, last_words
from habilis.cli.chat.command_names import SHELL, is_command, waits_for_turn
from habilis.cli.chat.commands import Commands
from habilis.cli.chat.front import FrontEnd
from habilis.cli.chat.hook_trust import load_hooks
from habilis.cli.chat.opening import recorded_chat, with_recorded_options
from habilis.cli.chat.own_commands import summary_of
from habilis.cli.chat.picker import pick_chat
from habilis.cli.chat.plans import Plans
from habilis.cli.chat.session import ChatSession
from habilis.cli.chat.sharing import choose_share, with_share
from habilis.cli.main import describe_error
from habilis.cli.memory.embedders import choose_embedder
from habilis.cli.printing import Page
from habilis.cli.program import load_tools
from habilis.cli.run.mcp_servers import agreement_question, is_agreed, project_file, remember_agreement, servers_of
from habilis.cli.run.report import limit_message, pending_lines, runs_command
from habilis.cli.run.request import CommandRequest
from habilis.cli.settings import read_settings
from habilis.cli.tasks.tasks import print_tasks
from habilis.core.errors import ModelError, SandboxError
from habilis.core.settings import Settings
from habilis.journal import Store
from habilis.journal.stores.urls import open_store
from habilis.memory import Memory
from habilis.memory.contract import Embedder
from habilis.sandbox import Sandbox

MAX_TASKS = 8
WASM = 'wasm'
_CUT_SHORT = {'interrupted': 'was interrupted; finishing it', 'approval': 'waits for an approval'}


class ChatApp:
    """The chat of one user, until they leave."""

    def __init__(
        self,
        front: FrontEnd,
        request: CommandRequest,
        *,
        resume: str | None = None,
        mode: Mode | None = None,
        may_share: bool = True,
    ) -> None:
        """`may_share`: whether to share this folder as the user says, if the request names no workspace."""
        self._front = front
        self._mode: Mode | None = mode
        self._request = request
        self._may_share = may_share
        self._resume = resume
        """The conversation to resume; empty for the newest one of this folder."""

        self._turn: asyncio.Task[Any] | None = None
        self._failed = False
        self._commands: Commands | None = None
        self._plans: Plans | None = None
        self._at_once: set[asyncio.Task[None]] = set()
        """Commands that do not wait for the turn under way."""

        front.on_stop = self._stop
        front.on_message = self._take_at_once

    async def run(self, message: str | None = '') -> int:
        """Chat until the user leaves, with this message first.

        Returns the exit code: 1 if a turn failed and nobody was there to see it.
        """
        async with self._opened() as (chat, recorded):
            answer = functools.partial(self._answer, chat)
            plans = self._plans = Plans(chat, answer, functools.partial(self._report, chat))
            commands = self._commands = Commands(chat, answer, plans)
            self._front.offer({name: summary_of(file) for name, file in commands.own.items()})
            if recorded is not None:
                await self._go_on(chat, recorded)
                self._front.describe(lambda: chat.place)
            while message is not None:
                if message.strip():
                    self._front.echo(message)
                    await self._do(chat, self._take(chat, commands, message))
                    await self._do(chat, commands.settle())
                    self._front.describe(lambda: chat.place)
                message = await self._front.read()
            self._say_goodbye(chat)
        return 1 if self._failed and not self._front.is_present else 0

    @contextlib.asynccontextmanager
    async def _opened(self) -> AsyncGenerator[tuple[ChatSession, Recorded | None]]:
        """The session, with its memory, journal and model open."""
        settings = read_settings(self._request.load_settings)
        self._front.use_keys(settings.keys)
        store = open_store(settings.journal)
        embedder = choose_embedder(settings)
        warming = [asyncio.ensure_future(_warm_up(embedder))]
        try:
            async with Memory(settings.memory, user=settings.user or '', embedder=embedder) as memory:
                request, recorded = await self._wanted(store, memory)
                if recorded is not None:
                    settings = request.load_settings()
                chat = await self._chat(request, settings, memory=memory, store=store)
                warming.append(asyncio.ensure_future(_start_sandbox(chat.settings.sandbox)))
                if tasks := await chat.session.memory.tasks():
                    self._say('open tasks:')
                    print_tasks(tasks[:MAX_TASKS])
                try:
                    yield chat, recorded
                finally:
                    for task in self._at_once:
                        task.cancel()
                    await chat.close()
        finally:
            for each in warming:
                each.cancel()
            await asyncio.gather(*warming, return_exceptions=True)
            await store.close()

    async def _wanted(self, store: Store, memory: Memory) -> tuple[CommandRequest, Recorded | None]:
        """The request with the options of the conversation to resume, or with the folder that the user shares."""
        request = self._request
        if self._resume is not None:
            wanted = self._resume
            if not wanted and self._front.is_present:
                wanted = await pick_chat(self._front, store, memory)
            recorded = await recorded_chat(store, memory.user, wanted)
            return with_recorded_options(request, recorded), recorded
        if self._may_share and request.workspace is None and self._front.is_present:
            request = with_share(request, await choose_share(self._front, os.getcwd()))
        return request, None

    async def _chat(self, request: CommandRequest, settings: Settings, *, memory: Memory, store: Store) -> ChatSession:
        """The session, open, with what the user agrees to take from a shared folder."""
        hooks = await load_hooks(self._front, request.workspace, self._say)
        request = await self._with_project_servers(request)
        tools = [
            *(load_tools(request.tools.names, folder=request.tools.folder) if request.tools else ()),
            *servers_of(request, self._front.ask if self._front.is_present else None),
        ]
        chat = ChatSession(
            self._front, request, settings, memory=memory, store=store, tools=tools, hooks=hooks, mode=self._mode
        )
        with self._front.working('starting'):
            await chat.open(self._say)
        self._front.describe(lambda: chat.place)
        return chat

    async def _with_project_servers(self, request: CommandRequest) -> CommandRequest:
        """The request with the MCP servers of the shared folder, if the user agrees or has agreed."""
        path = project_file(request)
        if path is None:
            return request
        if is_agreed(path) is None and self._front.is_present:
            answer = await self._front.ask(f'{agreement_question(path)} [y/N] ')
            remember_agreement(path, (answer or '').strip().lower() in {'y', 'yes'})
        return replace(request, mcp=(*request.mcp, str(path))) if is_agreed(path) else request

    # Turns ------------------------------------------------------------------------------------------------------------

    async def _take(self, chat: ChatSession, commands: Commands, message: str) -> None:
        if message.startswith(SHELL):
            await self._run_command(chat, message.removeprefix(SHELL).strip())
            return
        said = commands.message_of(message) if is_command(message) else message
        await (commands.run(message) if said is None else self._answer(chat, said))

    async def _run_command(self, chat: ChatSession, command: str) -> None:
        """Run a shell command. The next message tells the model about it."""
        if not command:
            self._say(f'{SHELL}COMMAND runs a shell command in the sandbox, such as {SHELL}ls')
            return
        last = '\n'

        def show(text: str) -> None:
            nonlocal last
            last = text or last
            print(escape_controls(text), end='', flush=True)

        with self._front.working('running'):
            ran = await chat.session.run_command(command, show)
        if not last.endswith('\n'):
            print(flush=True)
        if ran.problem:
            self._say(ran.problem)
        if chat.request.workspace is None:
            self._say('the command saw no files of yours: /share read shows it this folder')

    async def _answer(self, chat: ChatSession, message: str) -> None:
        session = chat.session
        with self._front.working('starting'):
            try:
                found = await asyncio.to_thread(attach, message, sees_images=session.model.traits.images)
            except AttachmentError:
                self._front.put_back(message)
                raise
            for name in found.unseen:
                self._say(f'{session.model.name} does not see images; its code can open {name}')
            added = await chat.hooks.before_turn(message)
            result = await session.send(message, files=found.files, attached=f'{found.text}{added}')
        await self._report(chat, result)
        from habilis.cli.chat.keeping import keep_offer  # not above: it loads the forge

        if offer := await keep_offer(chat, result):
            self._say(offer)
        if self._plans is not None:
            await self._plans.offer(result)

    async def _go_on(self, chat: ChatSession, recorded: Recorded) -> None:
        """Show where a recorded conversation is, and finish its last turn if it was cut short."""
        session = chat.session
        await session.enter(recorded)
        turns = await session.memory.turns(recorded.session, limit=2)
        self._say(f'resumed {recorded.session}')
        for turn in turns:
            Page().text(f'{turn.role}: {turn.text}')
        if recorded.unfinished is None:
            return
        if recorded.cut_short is not None:
            self._say(f'the last turn {_CUT_SHORT[recorded.cut_short]}')

            async def finish() -> None:
                await self._report(chat, await session.finish())

            await self._do(chat, finish())
        else:
            self._say('the last turn is not finished: a message continues it, /undo takes it back')

    async def _do(self, chat: ChatSession, work: Coroutine[Any, Any, None]) -> None:
        """Do something that can be stopped, and that does not end the chat if it fails."""
        self._turn = asyncio.ensure_future(work)
        try:
            await asyncio.wait([self._turn])
        except asyncio.CancelledError:
            self._turn.cancel()
            await asyncio.gather(self._turn, return_exceptions=True)
            raise
        finally:
            turn, self._turn = self._turn, None
        if turn.cancelled():
            is_left = chat.session.unfinished is not None
            self._say(f'stopped{"; your next message continues the turn, /undo takes it back" if is_left else ""}')
        elif (error := turn.exception()) is not None:
            self._failed = True
            self._say_error(error)
            if isinstance(error, ModelError) and self._front.is_present and chat.session.unfinished is not None:
                self._say('the chat goes on; send the message again (Up, Enter) to go on where it stopped')

    def _take_at_once(self, message: str) -> bool:
        """Do a command that need not wait for the turn under way."""
        if self._commands is None or self._turn is None or not is_command(message) or waits_for_turn(message):
            return False
        if message.split(maxsplit=1)[0] in self._commands.own:
            return False
        self._front.echo(message)
        task = asyncio.ensure_future(self._commands.run(message))
        self._at_once.add(task)
        task.add_done_callback(self._end_at_once)
        return True

    def _end_at_once(self, task: asyncio.Task[None]) -> None:
        self._at_once.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._say_error(error)

    def _stop(self) -> bool:
        return self._turn is not None and self._turn.cancel()

    async def _report(self, chat: ChatSession, result: Result[Any]) -> None:
        """What the view does not say about the end of a turn."""
        await chat.hooks.after_turn(last_words(result))
        if result.ended == 'approval':
            options = chat.request.journal_options
            lines = pending_lines(
                result, lambda name, more: runs_command(name, result.run_id, f'{options}{more}'), with_code=False
            )
            for line in lines:
                Page().text(line)
        elif result.ended not in ('answer', 'question'):
            self._say(limit_message(result, chat.settings, has_options=False))
            self._say('a message such as "go on" continues')

    # Words ------------------------------------------------------------------------------------------------------------

    def _say_goodbye(self, chat: ChatSession) -> None:
        if self._front.is_present and chat.session.is_recorded:
            self._say(f'to go on later: habilis chat --resume {chat.session.id}')

    def _say(self, text: str) -> None:
        Page().text(text, 'dim')

    def _say_error(self, error: BaseException) -> None:
        if not isinstance(error, Exception):
            raise error
        text = error.message if isinstance(error, typer.BadParameter) else describe_error(error)
        Page().text(f'error: {text}', 'red')


async def _warm_up(embedder: Embedder | None) -> None:
    """Load the embedder before the first message needs it. If that fails, a search says why."""
    if embedder is not None:
        with contextlib.suppress(Exception):
            await embedder.embed(['ready'])


async def _start_sandbox(backend: str) -> None:
    """Load the interpreter while the user types: the first sandbox takes a hundred times as long as the next one."""
    if backend == WASM:
        with contextlib.suppress(SandboxError):  # the first code says why
            async with await Sandbox.create(backend):
                pass
