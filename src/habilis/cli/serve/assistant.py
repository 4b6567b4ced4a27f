"""Runs the assistant as a service, with the model, the sandbox and the other options of the command."""

import contextlib
import os
from collections.abc import AsyncGenerator
from dataclasses import replace

from habilis.agent.library import library_folder
from habilis.agent.options import WorkOptions
from habilis.assistant import Session
from habilis.assistant.records import project_of
from habilis.cli.memory.embedders import choose_embedder
from habilis.cli.model_choice import ModelRequest, choose_model
from habilis.cli.program import load_tools
from habilis.cli.run.agent_options import agent_options, choose_sandbox
from habilis.cli.run.request import CommandRequest
from habilis.cli.serve.listening import announced_address, listening_socket
from habilis.cli.settings import read_settings
from habilis.cli.streams import say
from habilis.cli.terminal_user import TerminalUser
from habilis.core.folders import data_folder
from habilis.forge.library.library import Library
from habilis.journal.stores.urls import open_store
from habilis.memory import Memory
from habilis.server.settings import AssistantSettings
from habilis.tools import people_toolset


async def serve_assistant(request: CommandRequest, settings: AssistantSettings) -> None:
    """Serve until stopped. Raises `HabilisError`, or `ImportError` if the server is not installed."""
    from habilis.server.assistant.api import make_app
    from habilis.server.assistant.conversations import SERVED, Conversations, OpenConversation
    from habilis.server.assistant.watching import WatchedStore, Watchers
    from habilis.server.serve import make_server

    chosen = read_settings(request.load_settings)
    settings = replace(settings, user=chosen.user or '')
    wanted = ModelRequest(name=request.model, overrides=request.overrides, download=request.download)
    listening = listening_socket(settings)
    model = await choose_model(wanted, chosen, TerminalUser(), say)
    embedder = choose_embedder(chosen)
    tools = load_tools(request.tools.names, folder=request.tools.folder) if request.tools else ()
    chosen = await choose_sandbox(request, chosen, say)
    options: WorkOptions = {
        **agent_options(request, chosen, tools, say),
        'tools': [*tools, people_toolset()],
    }

    choice = options.get('library')
    library = None if choice is None else Library(library_folder(choice, chosen.library) or data_folder() / 'library')
    watchers = Watchers()

    @contextlib.asynccontextmanager
    async def open_conversations() -> AsyncGenerator[Conversations]:
        store = WatchedStore(open_store(chosen.journal), watchers)
        meta = {**request.to_meta(model, chosen), SERVED: True}

        @contextlib.asynccontextmanager
        async def open_session(user: str, session: str, view: OpenConversation) -> AsyncGenerator[Session]:
            async with (
                Memory(chosen.memory, user=user, embedder=embedder) as memory,
                Session(
                    model,
                    memory=memory,
                    journal=store,
                    id=session,
                    project=project_of(os.getcwd()),
                    view=view,
                    meta=meta,
                    **options,
                ) as opened,
            ):
                yield opened

        try:
            yield Conversations(store, watchers, open_session, library)
        finally:
            await model.close()
            await store.close()

    server = make_server(make_app(settings, open_conversations), settings, watchers.close)
    scheme = 'https' if settings.certificate else 'http'
    address = announced_address(settings.host, listening.getsockname()[1])
    say(f'Serving on {scheme}://{address} (OpenAI: {scheme}://{address}/v1). Stop with Ctrl-C.')
    await server.serve([listening])
