"""The session of a chat in a terminal, with the model, the sandbox and the other options of its command."""

import os
from collections.abc import Sequence
from dataclasses import replace

from habilis._version import __version__
from habilis.agent.options import WorkOptions
from habilis.assistant import Mode, Session
from habilis.assistant.records import project_of
from habilis.cli.chat.front import FrontEnd
from habilis.cli.chat.sharing import shared_folder
from habilis.cli.chat.view import ChatView
from habilis.cli.model_choice import ModelRequest, Say, choose_model
from habilis.cli.program import AnyTool
from habilis.cli.run.agent_options import agent_options, choose_sandbox
from habilis.cli.run.request import CommandRequest
from habilis.core.settings import Settings
from habilis.journal import Store
from habilis.memory import Memory
from habilis.models.contract import Model


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
        mode: Mode | None = None,
    ) -> None:
        self.front = front
        self._mode: Mode | None = mode
        self.request = request
        self.settings = settings
        self._tools = tools
        self._memory = memory
        self._store = store
        self._model: Model | None = None
        self._session: Session | None = None
        self._view = ChatView(front, lambda: None if self.request.read_only else self.request.workspace)

    @property
    def session(self) -> Session:
        """The conversation, once it is open."""
        assert self._session is not None
        return self._session

    @property
    def place(self) -> str:
        """Model, sandbox and shared folder in one line."""
        folder = f' · {shared_folder(self.request)}' if self.request.workspace else ''
        return f'{self.session.model.name} · {self.settings.sandbox}{folder}'

    @property
    def title(self) -> str:
        """The first line of the chat."""
        return f'Habilis {__version__} · {shared_folder(self.request)} · {self.session.model.name} · /help'

    async def open(self, say: Say) -> None:
        """Load the model, and be ready for a turn."""
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
        self._view.show_instructions(self._session.instructions)
        self._note_options()

    async def switch(self, request: CommandRequest, settings: Settings, say: Say) -> None:
        """Go on with other options. Raises `HabilisError`, and goes on as before."""
        settings, model, options = await self._choose(request, settings, say)
        await self.session.switch(model, **options)
        before, self._model = self._model, model
        if before is not None and before is not model:
            await before.close()
        self.request, self.settings = request, settings
        self._view.show_instructions(self.session.instructions)
        self._note_options()

    async def _choose(
        self, request: CommandRequest, settings: Settings, say: Say
    ) -> tuple[Settings, Model, WorkOptions]:
        """The model that a request names, and the options of its agent."""
        option = None if request.model_is_recorded else '--model'
        wanted = ModelRequest(name=request.model, option=option, overrides=request.overrides, download=request.download)
        model = await choose_model(wanted, settings, self._view, say)
        try:
            settings = await choose_sandbox(request, settings, say)
            return settings, model, {**agent_options(request, settings), 'tools': self._tools}
        except BaseException:
            await model.close()
            raise

    def _note_options(self) -> None:
        """Record the options with each turn, to resume the chat without repeating them."""
        name = self.request.model or self.settings.model or self.session.model.name
        self.session.meta = self.request.to_meta(name)

    async def close(self) -> None:
        """Free the sandbox and the model."""
        if self._session is not None:
            await self._session.close()
        if self._model is not None:
            await self._model.close()


def with_model(request: CommandRequest, model: str) -> CommandRequest:
    """The request with another model."""
    return replace(request, model=model, model_is_recorded=False, overrides={})
