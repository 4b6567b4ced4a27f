"""The assistant on a port of its own, with a scripted model."""

import contextlib
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect, sync_playwright
from uvicorn import Server

from habilis.assistant import Session
from habilis.forge.library.library import Library
from habilis.journal.stores.urls import open_store
from habilis.memory import Memory
from habilis.models.scripted import Script, Scripted, ScriptedModel
from habilis.server.assistant.api import make_app
from habilis.server.assistant.conversations import Conversations, OpenConversation
from habilis.server.assistant.turn_choices import SERVED
from habilis.server.assistant.watching import WatchedStore, Watchers
from habilis.server.serve import listen, make_server
from habilis.server.settings import HttpSettings
from habilis.tools import people_toolset
from tests.requirements import require
from tests.server.running import serving

expect.set_options(timeout=60_000)

Serve = Callable[..., 'contextlib.AbstractContextManager[str]']


def service(folder: Path, script: 'Script | Sequence[Scripted]', http: HttpSettings, /, **options: Any) -> Server:
    """The assistant with the journal and the memory of a folder."""
    watchers, open_source = Watchers(), options.pop('open_source', None)

    @contextlib.asynccontextmanager
    async def open_conversations() -> AsyncGenerator[Conversations]:
        store = WatchedStore(open_store(str(folder / 'journal.db')), watchers)
        model = ScriptedModel(script)

        @contextlib.asynccontextmanager
        async def open_session(user: str, session: str, view: OpenConversation) -> AsyncGenerator[Session]:
            given: Any = {**options, 'tools': [*options.get('tools', ()), people_toolset()]}
            meta = {SERVED: True}
            async with (
                Memory(folder / 'memory.db', user=user) as memory,
                Session(model, memory=memory, journal=store, id=session, view=view, meta=meta, **given) as opened,
            ):
                yield opened

        library = Library(folder / 'library')
        yield Conversations(store, watchers, open_session, library, options.get('settings'), open_source)
        await store.close()

    return make_server(make_app(http, open_conversations), http, watchers.close)


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """Serves a script; the journal and the memory are those of the test, so that a second server goes on."""

    @contextlib.contextmanager
    def serve(
        script: 'Script | Sequence[Scripted]',
        *,
        http: HttpSettings | None = None,
        keys: tuple[str, ...] = (),
        **options: Any,
    ) -> Generator[str]:
        http = http or HttpSettings(port=0, keys=keys)
        server = service(tmp_path, script, http, **options)
        with serving(server, listen(http)) as address:
            yield address

    return serve


@pytest.fixture(scope='module')
def browser() -> Iterator[Browser]:
    program = require('chromium')
    options = ['--no-sandbox', '--disable-background-networking']
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=options)
        yield chromium
        chromium.close()
