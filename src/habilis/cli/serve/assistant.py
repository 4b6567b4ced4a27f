"""Runs the assistant as a service, with the model, the sandbox and the other options of the command."""

import contextlib
import os
import threading
import webbrowser
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from habilis.agent.library import library_folder
from habilis.assistant import Session
from habilis.assistant.records import project_of
from habilis.cli.memory.embedders import choose_embedder
from habilis.cli.model_choice import ModelRequest, choose_model
from habilis.cli.program import AnyTool, load_tools
from habilis.cli.run.agent_options import agent_options, choose_sandbox
from habilis.cli.run.mcp_servers import servers_of
from habilis.cli.run.request import CommandRequest
from habilis.cli.serve.listening import announced_address, listening_socket
from habilis.cli.settings import read_settings
from habilis.cli.streams import say
from habilis.cli.terminal_user import TerminalUser
from habilis.core.errors import NoModel
from habilis.core.settings import Settings
from habilis.forge.library.stored import stored_library
from habilis.journal.stores.urls import open_store
from habilis.memory import Memory
from habilis.models.contract import Model
from habilis.server.settings import AssistantSettings
from habilis.tools import people_toolset

if TYPE_CHECKING:
    from habilis.server.assistant.conversations import Conversations
    from habilis.server.assistant.watching import Watchers


async def serve_assistant(request: CommandRequest, settings: AssistantSettings, *, is_opened: bool) -> None:
    """Serve until stopped. Raises `HabilisError`, or `ImportError` if the server is not installed."""
    from habilis.server.serve import make_server  # first, as it says what is missing

    chosen = read_settings(request.load_settings)
    settings = replace(settings, user=chosen.user or '')
    listening = listening_socket(settings)
    wanted = ModelRequest(name=request.model, option='--model', overrides=request.overrides, download=request.download)
    model = await _choose_model(wanted, chosen)
    chosen = await choose_sandbox(request, chosen, say)
    from habilis.server.assistant.api import make_app
    from habilis.server.assistant.watching import Watchers

    watchers = Watchers()
    app = make_app(settings, lambda: _opened(request, chosen, model, watchers))
    server = make_server(app, settings, watchers.close)
    scheme = 'https' if settings.certificate else 'http'
    address = announced_address(settings.host, listening.getsockname()[1])
    say(f'Serving on {scheme}://{address} (OpenAI: {scheme}://{address}/v1). Stop with Ctrl-C.')
    if is_opened:  # the socket listens already, so that the page waits until the server answers
        threading.Thread(target=webbrowser.open, args=[f'{scheme}://{address}'], daemon=True).start()
    await server.serve([listening])


async def _choose_model(wanted: ModelRequest, settings: Settings) -> Model:
    """The model that is asked for or found; where there is none, a script that answers the examples of the page."""
    from habilis.server.assistant.examples import example_model

    try:
        return await choose_model(wanted, settings, TerminalUser(), say)
    except NoModel as error:
        if wanted.name is not None:
            raise
        say(f'{error}. SCRIPTED: until then the page answers its examples from a script')
        return example_model(str(error))


@contextlib.asynccontextmanager
async def _opened(
    request: CommandRequest, settings: Settings, model: Model, watchers: 'Watchers'
) -> 'AsyncGenerator[Conversations]':
    """The conversations of all users, with this model, until the server stops."""
    from habilis.server.assistant.conversations import Conversations, OpenConversation
    from habilis.server.assistant.turn_choices import SERVED
    from habilis.server.assistant.watching import WatchedStore

    store = WatchedStore(open_store(settings.journal), watchers)
    work = agent_options(request, settings, _tools(request), say)
    given = {
        'journal': store,
        'meta': {**request.to_meta(model, settings), SERVED: True},
        'project': project_of(os.getcwd()),
    }
    choice = work.get('library')
    library = None if choice is None else stored_library(settings, library_folder(choice))
    embedder = choose_embedder(settings)

    @contextlib.asynccontextmanager
    async def open_session(user: str, session: str, view: OpenConversation) -> AsyncGenerator[Session]:
        tools = [*_tools(request), people_toolset()]  # a server of MCP belongs to one session
        options: Any = {**work, **given, 'tools': tools}
        async with (
            Memory(settings.memory, user=user, embedder=embedder) as memory,
            Session(model, memory=memory, id=session, view=view, **options) as opened,
        ):
            yield opened

    try:
        yield Conversations(store, watchers, open_session, library, settings)
    finally:
        await model.close()
        await store.close()


def _tools(request: CommandRequest) -> list[AnyTool]:
    own = load_tools(request.tools.names, folder=request.tools.folder) if request.tools else ()
    return [*own, *servers_of(request, None)]
