"""What the slash commands do."""

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path

from habilis.agent.agent_tools import each_tool
from habilis.agent.hooks.sanitize import one_line
from habilis.agent.hooks.terminal import TerminalView
from habilis.agent.hooks.tokens import format_cost
from habilis.assistant import Mode
from habilis.assistant.records import TurnNote
from habilis.assistant.shared_folders import is_share, remember_share
from habilis.cli.chat.command_names import COMMANDS, KEYS, suggestion
from habilis.cli.chat.export import export_chat
from habilis.cli.chat.file_changes import named, show_all
from habilis.cli.chat.own_commands import message_of, own_commands, summary_of
from habilis.cli.chat.plans import Plans
from habilis.cli.chat.session import ChatSession, with_model
from habilis.cli.chat.sharing import shared_folder, with_share
from habilis.cli.memory.entries import print_context, print_hits
from habilis.cli.memory.opening import print_entries
from habilis.cli.model_choice import usable_models
from habilis.cli.printing import Page, print_table
from habilis.cli.run.request import CommandRequest
from habilis.cli.runs.list import list_row
from habilis.cli.tasks.tasks import print_tasks
from habilis.cli.terminal_user import YES
from habilis.core.errors import HabilisError
from habilis.sandbox.backends import names as sandbox_names
from habilis.tools.toolsets.todo import todo_text

MAX_HITS = 5
MODE_WORDS: Mapping[Mode, str] = {
    'ask': 'each change of files and each command is asked about',
    'edits': 'files may be changed, each command is asked about',
    'plan': 'nothing can be changed; say what to plan',
    'all': 'files may be changed and commands run without a question',
}
_RUNS = 20


class CommandError(HabilisError):
    """A slash command was given something that it cannot use."""


class Commands:
    """Runs slash commands on a chat."""

    def __init__(self, chat: ChatSession, answer: Callable[[str], Awaitable[None]], plans: Plans) -> None:
        """`answer` takes a turn with a message."""
        self._chat = chat
        self._plans = plans
        self._answer = answer
        self._session = chat.session
        self._next: CommandRequest | None = None
        """With the model that takes over after the turn under way."""

        self._handlers: Mapping[str, Callable[[str], Awaitable[None]]] = {
            '/help': self._help,
            '/model': self._model,
            '/sandbox': self._sandbox,
            '/mode': self._mode,
            '/plan': self._plan,
            '/share': self._share,
            '/packages': self._packages,
            '/tools': self._tools,
            '/memory': self._memory,
            '/tasks': self._tasks,
            '/runs': self._runs,
            '/keep': self._keep,
            '/undo': self._undo,
            '/diff': self._diff,
            '/todo': self._todo,
            '/show': self._show,
            '/fork': self._fork,
            '/clear': self._clear,
            '/compact': self._compact,
            '/export': self._export,
            '/keys': self._keys,
            '/cost': self._cost,
            '/context': self._context,
        }

    async def run(self, line: str) -> None:
        """Do what a line says. Raises `HabilisError`."""
        name, _, rest = line.strip().partition(' ')
        handler = self._handlers.get(name)
        if handler is None:
            meant = suggestion(name)
            hint = f'did you mean {meant}?' if meant else '/help lists all commands'
            msg = f'no such command: {one_line(name, 40)}; {hint}'
            raise CommandError(msg)
        await handler(rest.strip())

    def message_of(self, line: str) -> str | None:
        """The message of a command of the user; None if a line is none. Raises `HabilisError`."""
        name, _, rest = line.strip().partition(' ')
        file = None if name in COMMANDS else self.own.get(name)
        return None if file is None else message_of(file, rest.strip())

    @property
    def own(self) -> Mapping[str, Path]:
        """Commands of the user, in the shared folder."""
        return own_commands(self._chat.request.workspace)

    async def _help(self, _: str) -> None:
        page = Page()
        for command in COMMANDS.values():
            page.text(command.usage, 'bold')
            page.text(command.summary, indent=4)
        for name, file in self.own.items():
            page.line(name, 'bold')
            page.text(summary_of(file), indent=4)
        page.text(KEYS)

    # Agent ------------------------------------------------------------------------------------------------------------

    async def _model(self, name: str) -> None:
        chat = self._chat
        if not name:
            found = await usable_models(chat.settings)
            _say(f'{self._session.model.name}; /model NAME takes another{":" if found else ""}')
            for each, why in found:
                Page().text(f'{each} ({why})', indent=2)
            return
        wanted = with_model(chat.request, name)
        await chat.check(wanted)
        if self._session.is_busy:
            self._next = wanted
            _say(f'{name} takes over after this turn (Esc stops it)')
        else:
            await self._take(wanted)

    async def _take(self, wanted: CommandRequest) -> None:
        self._next = None
        await self._chat.switch(wanted, self._chat.settings, _say)
        _say(f'now {self._session.model.name}')

    async def settle(self) -> None:
        """Do what was asked for during the turn that has ended. Raises `HabilisError`."""
        if self._next is not None:
            await self._take(self._next)

    async def _sandbox(self, name: str) -> None:
        chat = self._chat
        if not name:
            _say(f'{chat.settings.sandbox}; known: {", ".join(sandbox_names())}')
            return
        if name not in sandbox_names():
            msg = f'no such sandbox: {one_line(name, 40)}; known: {", ".join(sandbox_names())}'
            raise CommandError(msg)
        await self._change(replace(chat.request, settings={**chat.request.settings, 'sandbox': name}))

    async def _change(self, request: CommandRequest) -> None:
        """Go on with other options, in the sandbox that they need."""
        await self._chat.switch(request, request.load_settings(), _say)

    async def _share(self, how: str) -> None:
        folder = os.getcwd()
        if how == 'forget':
            remember_share(folder, None)
            _say('the next chat in this folder asks again')
        elif is_share(how):
            await self._change(with_share(self._chat.request, how))
            remember_share(folder, how)
        elif how:
            msg = f'write {COMMANDS["/share"].usage}'
            raise CommandError(msg)
        _say(shared_folder(self._chat.request))

    async def _packages(self, names: str) -> None:
        chat = self._chat
        given = [*chat.request.packages, *names.replace(',', ' ').split()]
        if not names:
            _say(f'{", ".join(given) or "only the standard library"}; /packages NAME adds one')
            return
        await self._change(replace(chat.request, packages=list(dict.fromkeys(given))))
        _say(f'code can import {", ".join(chat.request.packages)} from the next message on')

    async def _mode(self, name: str) -> None:
        if name:
            await self._session.set_mode(name)
        _say(f'{self._session.mode}: {MODE_WORDS[self._session.mode]}')

    async def _plan(self, task: str) -> None:
        if task == 'edit':
            await self._plans.edit()
            return
        await self._mode('plan')
        if task:
            await self._answer(task)

    async def _tools(self, _: str) -> None:
        rows = [(tool.name, tool.description.partition('\n')[0]) for tool in each_tool(self._session.opened.tools)]
        print_table(('TOOL', 'WHAT IT DOES'), rows, flexible=('WHAT IT DOES',))
        if self._chat.request.library:
            _say('and those of the library: habilis tools list')

    async def _cost(self, _: str) -> None:
        usage = self._session.usage
        cost = '' if usage.cost is None else f', {format_cost(usage.cost)}'
        tokens = f'{usage.tokens:,} tokens ({usage.input_tokens:,} in, {usage.output_tokens:,} out)'
        _say(f'{usage.requests} request{"" if usage.requests == 1 else "s"}, {tokens}{cost}')

    async def _context(self, _: str) -> None:
        size, used = self._session.model.traits.context_tokens, self._chat.context_tokens
        _say(f'{used:,} of {size:,} tokens ({used / size:.0%}); earlier turns are shortened where it gets full')

    async def _keys(self, name: str) -> None:
        if name not in ('emacs', 'vim'):
            msg = f'write {COMMANDS["/keys"].usage}'
            raise CommandError(msg)
        self._chat.front.use_keys(name)
        _say(f'keys of {name}; for all chats: HABILIS_KEYS={name}, or keys = "{name}" in habilis.toml')

    # Memory -----------------------------------------------------------------------------------------------------------

    async def _memory(self, rest: str) -> None:
        word, _, more = rest.partition(' ')
        memory, more = self._session.memory, more.strip()
        match word:
            case '' | 'list':
                facts = await memory.facts()
                print_entries(facts) if facts else _say('no facts yet')
            case 'search' if more:
                hits = await memory.search(more, limit=MAX_HITS, neighbours=True)
                print_hits(hits) if hits else _say('nothing found')
            case 'why':
                self._why()
            case 'scope' if more in ('', 'folder', 'all'):
                memory.sees_all = more == 'all' or (memory.sees_all and not more)
                _say('memory and tasks: of all folders' if memory.sees_all else f'memory and tasks: {memory.project}')
            case 'forget' if more:
                await self._forget(more)
            case _:
                msg = f'write {COMMANDS["/memory"].usage}'
                raise CommandError(msg)

    def _why(self) -> None:
        context = self._session.recalled
        if context is None or not context.items:
            _say('the last message got nothing from the memory')
        else:
            print_context(context)

    async def _forget(self, more: str) -> None:
        """Forget an entry by its id, or those that have all the words."""
        memory = self._session.memory
        try:
            found = await memory.find_to_forget(more)
        except HabilisError:
            found = await memory.find_to_forget(query=more)
        if not found:
            _say('nothing to forget')
            return
        print_entries(found)
        what = 'this entry' if len(found) == 1 else f'these {len(found)} entries'
        answer = await self._chat.front.ask(f'Forget {what} for good? [y/N] ')
        if (answer or '').strip().lower() not in YES:
            _say('nothing forgotten')
            return
        _say(f'forgot {len(await memory.forget(*(entry.id for entry in found)))}')

    async def _tasks(self, rest: str) -> None:
        if rest not in ('', 'all'):
            msg = f'write {COMMANDS["/tasks"].usage}'
            raise CommandError(msg)
        tasks = await self._session.memory.tasks(all=rest == 'all')
        print_tasks(tasks) if tasks else _say('no open tasks')

    # Conversation -----------------------------------------------------------------------------------------------------

    async def _runs(self, _: str) -> None:
        found = await self._session.runs()
        if not found:
            _say('no turns yet')
            return
        rows = [list_row(each, each.info.created) for each in found[:_RUNS]]
        print_table(('RUN', 'STATUS', 'AGE', 'TITLE'), rows)

    async def _keep(self, name: str) -> None:
        from habilis.cli.chat.keeping import keep_turns  # not above: it loads the forge

        with self._chat.front.working('testing'):
            made = await keep_turns(self._chat, name)
        _say(f'{made.signature}: a tool of the library now, which passes {made.tests} tests')

    async def _undo(self, _: str) -> None:
        taken = await self._session.undo()
        if taken is None:
            _say('there is no turn to take back')
            return
        files = f'; files as before: {", ".join(taken.files)}' if taken.files else ''
        said = TurnNote.from_meta(taken.meta).said or taken.task
        _say(f'taken back: {one_line(said, 60)}{files}')
        if taken.files:
            _say(f'the files until now: habilis runs restore {taken.run} --at {taken.checkpoint[:10]}')
        if taken.left:
            why = '' if self._chat.request.checkpoints else '; --checkpoints can take files back, too'
            _say(f'these files stay changed: {named(taken.left)}{why}')

    async def _diff(self, _: str) -> None:
        if self._chat.edits:
            show_all(TerminalView(), self._chat.edits)
        else:
            _say('the last turn has changed no files')

    async def _todo(self, _: str) -> None:
        for item in self._chat.progress.todo:
            _say(todo_text(item))
        if not self._chat.progress.todo:
            _say('there is no todo list')

    async def _show(self, number: str) -> None:
        agents = self._chat.progress.agents
        if not number:
            for agent in agents:
                _say(f'{agent.number}  {agent.text}')
            if not agents:
                _say('there was no subagent yet')
        elif number in {str(agent.number) for agent in agents}:
            for line in agents[int(number) - 1].lines:
                _say(line)
        else:
            msg = f'no such subagent: {one_line(number, 40)}; /show lists them'
            raise CommandError(msg)

    async def _fork(self, _: str) -> None:
        left = await self._session.fork()
        _say(f'this is a copy; the other one: habilis chat --resume {left}')

    async def _clear(self, _: str) -> None:
        left = await self._session.clear()
        _say(f'a new chat; the one before: habilis chat --resume {left}')

    async def _compact(self, keep: str) -> None:
        with self._chat.front.working('shortening'):
            done = await self._chat.compact(keep)
        if done.after >= done.before:
            _say(f'nothing to shorten: {done.before:,} tokens')
            return
        how = 'a summary of the model' if done.is_summary else 'a digest'
        _say(f'{done.before:,} tokens are {done.after:,} now, as {how}; /undo brings them back with the last turn')

    async def _export(self, name: str) -> None:
        session = self._session
        name = name.strip('"\'') or f'{session.id}.md'
        turns = await session.turns()
        if not turns:
            _say('there is nothing to export yet')
            return
        export_chat(name, turns)
        _say(f'{len(turns)} messages in {name}')


def _say(text: str) -> None:
    Page().text(text)
