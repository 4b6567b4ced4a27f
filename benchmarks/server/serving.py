"""The assistant in this process, with a journal of its own and no model."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path

from habilis.assistant import Session
from habilis.core.errors import AgentError
from habilis.journal.stores.sqlite import SqliteStore
from habilis.memory import Memory
from habilis.models.scripted import ScriptedModel
from habilis.server.assistant.api import make_app
from habilis.server.assistant.conversations import Conversations, OpenConversation
from habilis.server.assistant.watching import WatchedStore, Watchers
from habilis.server.serve import listen, make_server
from habilis.server.settings import HttpSettings

MANY = 2_000


@contextlib.asynccontextmanager
async def served(folder: Path) -> AsyncGenerator[tuple[WatchedStore, int]]:
    """The store of a server, and its port."""
    watchers = Watchers()
    store = WatchedStore(SqliteStore(folder / 'journal.db'), watchers)

    @contextlib.asynccontextmanager
    async def open_session(user: str, session: str, view: OpenConversation) -> AsyncGenerator[Session]:
        async with (
            Memory(folder / 'memory.db', user=user) as memory,
            Session(ScriptedModel([]), memory=memory, journal=store, id=session, view=view) as opened,
        ):
            yield opened

    @contextlib.asynccontextmanager
    async def open_conversations() -> AsyncGenerator[Conversations]:
        yield Conversations(store, watchers, open_session)

    settings = HttpSettings(port=0, connections=MANY, per_caller=MANY, requests_per_second=MANY)
    server = make_server(make_app(settings, open_conversations), settings, watchers.close)
    listening = listen(settings)
    serving = asyncio.create_task(server.serve([listening]))
    while not server.started:
        if serving.done():
            msg = 'the server did not start'
            raise AgentError(msg)
        await asyncio.sleep(0.01)
    try:
        yield store, listening.getsockname()[1]
    finally:
        server.should_exit = True
        await serving
        listening.close()
        await store.close()
