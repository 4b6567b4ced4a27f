"""The journal that a command works with: whose runs, and where they are."""

import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from habilis.cli.task.interrupt import run_interruptible
from habilis.cli.task.order import wrong_option
from habilis.cli.task.report import command_line
from habilis.cli.task.showing import read_settings
from habilis.core.errors import SettingsError
from habilis.core.logs import redact
from habilis.core.settings import Settings, load_settings
from habilis.journal import MemoryStore, Store
from habilis.journal.files import FileStore
from habilis.journal.runs import RunView, read_run
from habilis.journal.sqlite import SqliteStore
from habilis.journal.stores import OFF, open_store


@dataclass(frozen=True, kw_only=True)
class Desk:
    """A journal, open for one command."""

    store: Store
    user: str
    settings: Settings
    options: str
    """Those that were given to find it, for commands that are shown."""

    async def read(self, run: str) -> RunView:
        """A run of the user. Raises `RunNotFound`."""
        return await read_run(self.store, run, user=self.user)

    def command(self, name: str, run: str, more: str = '', *, value: str = '') -> str:
        """A command to show to people, with more options, or with a value after the run."""
        return command_line(name, run, f'{self.options}{more}', value)


def at_desk(where: str | None, user: str | None, work: Callable[[Desk], Awaitable[int]], *, makes: bool = False) -> int:
    """Do something with the journal, and return the exit code. Only what `makes` something makes a journal."""
    settings = read_settings(lambda: _settings(where, user))

    async def do() -> int:
        store = opened(settings, makes=makes)
        given = {'--journal': where, '--user': user}
        options = ''.join(f' {name} {shlex.quote(redact(value))}' for name, value in given.items() if value)
        try:
            return await work(Desk(store=store, user=settings.user or '', settings=settings, options=options))
        finally:
            await store.close()

    return run_interruptible(do)


def _settings(where: str | None, user: str | None) -> Settings:
    """Those that hold here. Options that are wrong are wrong usage."""
    load_settings()
    try:
        settings = load_settings(None, journal=where, user=user)
        if where is not None:
            open_store(settings.journal)  # which neither connects nor makes anything
    except SettingsError as error:  # without the options all is right
        raise wrong_option(error) from None
    return settings


def opened(settings: Settings, *, makes: bool) -> Store:
    """The journal of the settings; one that does not exist is empty."""
    if settings.journal == OFF:
        msg = 'no runs are kept: the journal is set to off; --journal WHERE names another'
        raise SettingsError(msg)
    store = open_store(settings.journal)
    place = place_of(store)
    return MemoryStore() if place is not None and not makes and not place.exists() else store


def place_of(store: Store) -> Path | None:
    """The file or folder of a store; None if it is a server."""
    if isinstance(store, (SqliteStore, FileStore)):
        return store.path if isinstance(store, SqliteStore) else store.folder
    return None
