"""The session of a chat in a terminal, with the model, the sandbox and the other options of its command."""

import os
from collections.abc import Sequence
from dataclasses import replace

from habilis._version import __version__
from habilis.agent.hooks.tokens import format_cost
from habilis.agent.options import WorkOptions
from habilis.agent.shortening import Shortened
from habilis.assistant import FileEdit, Mode, Session
from habilis.assistant.project_hooks import ProjectHooks
from habilis.assistant.records import project_of
from habilis.cli.chat.front import FrontEnd
from habilis.cli.chat.progress import TurnProgress
from habilis.cli.chat.sharing import shared_folder
from habilis.cli.chat.view import ChatView, WritableFolder
from habilis.cli.model_choice import ModelRequest, Say, choose_model, usable_models, why_unusable
from habilis.cli.printing import Page
from habilis.cli.program import AnyTool
from habilis.cli.run.agent_options import agent_options, choose_sandbox
from habilis.cli.run.request import CommandRequest
from habilis.core.errors import ModelError, ModelUnavailable
from habilis.core.settings import Settings
from habilis.journal import Store
from habilis.memory import Memory
from habilis.models.contract import Model
from habilis.models.registry import Registry


class ChatSession:
    """A `Session`, opened as the options of the command say."""

    def __init__(
        self,
        front: FrontEnd,
        request: CommandRequest,
        settings: Settings,
        *,
        memory: Memory,
        store: Store,
        tools: Sequence[AnyTool] = (),
        hooks: ProjectHooks,
        mode: Mode | None = None,
    ) -> None:
        self.front = front
        self._mode: Mode | None = mode
        self.request = request
        self.settings = settings
        self._tools = tools
        self.hooks = hooks
        self._memory = memory
        self._store = store
        self._model: Model | None = None
        self._session: Session | None = None
        self._view = ChatView(front, self._writable, bell=settings.bell)

    @property
    def session(self) -> Session:
        """The conversation, once it is open."""
        assert self._session is not None
        return self._session

    def _writable(self) -> WritableFolder:
        path = None if self.request.read_only else self.request.workspace
        return WritableFolder(path=path, takes_pictures=self.session.mode in ('edits', 'all'))

    @property
    def edits(self) -> Sequence[FileEdit]:
        """What the last turn has changed in the shared folder, or the one under way so far."""
        return self._view.edits

    @property
    def progress(self) -> TurnProgress:
        """The todo list and the subagents."""
        return self._view.progress

    @property
    def place(self) -> str:
        """One line: model, sandbox, folder; and after a turn, how full the context is, the cost, and the time."""
        session, view = self.session, self._view
        parts = [session.model.name, self.settings.sandbox]
        if self.request.workspace:
            how = 'read' if self.request.read_only else 'write'
            parts.append(f'{os.path.relpath(self.request.workspace)} ({how})')
            if session.mode != 'all' or not self.request.read_only:
                parts.append(session.mode)
        if self.context_tokens:
            parts.append(f'{self.context_tokens / session.model.traits.context_tokens:.0%} context')
        if session.usage.cost:
            parts.append(format_cost(session.usage.cost))
        if view.seconds:
            parts.append(f'{view.seconds:.0f} s')
        return ' · '.join(parts)

    @property
    def context_tokens(self) -> int:
        """Tokens of the last request of this conversation with its reply; 0 if there was none."""
        return self._view.context_tokens if self.session.is_recorded else 0

    async def compact(self, keep: str) -> Shortened:
        """Shorten what the model gets of the conversation so far."""
        done = await self.session.compact(keep)
        self._view.context_tokens = max(0, self._view.context_tokens - done.before + done.after)
        return done

    @property
    def title(self) -> str:
        """The first line of the chat."""
        return f'Habilis {__version__} · {shared_folder(self.request)} · {self.session.model.name} · /help'

    async def open(self, say: Say) -> None:
        """Load the model, and be ready for a turn."""
        if self.request.model_is_recorded and self.front.is_present:
            self.request = await self._with_present_model(say)
        self.settings, model, options = await self._choose(self.request, self.settings, say)
        self._model = model
        self._session = Session(
            model,
            memory=self._memory,
            journal=self._store,
            project=project_of(os.getcwd()),
            view=self._view,
            mode=self._mode,
            **options,
        )
        await self._session.open()
        if self.front.is_present:
            say(self.title)
        self._view.show_instructions(self._session.opened.instructions)
        self._note_options()

    async def _with_present_model(self, say: Say) -> CommandRequest:
        """The request of a recorded chat; if its model is gone, with another one that the user chooses."""
        try:
            await self.check(self.request)
        except ModelError as error:
            models = await usable_models(self.settings)
            if not models:
                raise
            say(str(error))
            for number, (name, why) in enumerate(models, 1):
                Page().text(f'{number}  {name} ({why})')
            answer = (await self.front.ask('Go on with which one? [1] ') or '1').strip()
            chosen = models[int(answer) - 1][0] if answer in map(str, range(1, len(models) + 1)) else answer
            return with_model(self.request, chosen)
        return self.request

    async def check(self, request: CommandRequest) -> None:
        """Raise `ModelError` if the model of a request is not known, or cannot answer now."""
        if request.model is not None:
            why = await why_unusable(Registry(self.settings).get(request.model, request.overrides))
            if why is not None:
                raise ModelUnavailable(why)

    async def switch(self, request: CommandRequest, settings: Settings, say: Say) -> None:
        """Go on with other options. Raises `HabilisError`, and goes on as before."""
        settings, model, options = await self._choose(request, settings, say)
        await self.session.switch(model, **options)
        before, self._model = self._model, model
        if before is not None and before is not model:
            await before.close()
        self.request, self.settings = request, settings
        self._view.show_instructions(self.session.opened.instructions)
        self._note_options()

    async def _choose(
        self, request: CommandRequest, settings: Settings, say: Say
    ) -> tuple[Settings, Model, WorkOptions]:
        """The model that a request names, or the one in use if it names no other; and the options of its agent."""
        model = self._model
        if model is None or (request.model, request.overrides) != (self.request.model, self.request.overrides):
            option = None if request.model_is_recorded else '--model'
            wanted = ModelRequest(
                name=request.model, option=option, overrides=request.overrides, download=request.download
            )
            model = await choose_model(wanted, settings, self._view, say)
        try:
            settings = await choose_sandbox(request, settings, say)
            given = agent_options(request, settings, self._tools, say)
            return settings, model, {**given, 'tools': self._tools, 'gates': self.hooks.gates}
        except BaseException:
            if model is not self._model:
                await model.close()
            raise

    def _note_options(self) -> None:
        """Record the options with each turn, to resume the chat without repeating them."""
        self.session.meta = self.request.to_meta(self.session.model, self.settings)

    async def close(self) -> None:
        """Free the sandbox and the model."""
        if self._session is not None:
            await self._session.close()
        if self._model is not None:
            await self._model.close()


def with_model(request: CommandRequest, model: str) -> CommandRequest:
    """The request with another model."""
    return replace(request, model=model, model_is_recorded=False, overrides={})
