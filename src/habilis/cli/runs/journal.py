"""The journal a subcommand works with."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from habilis.cli.interrupt import run_interruptible
from habilis.cli.run.report import runs_command
from habilis.cli.run.request import journal_options
from habilis.cli.settings import read_settings, settings_with_options
from habilis.cli.streams import say
from habilis.core.errors import SettingsError
from habilis.core.settings import Settings
from habilis.journal import MemoryStore, Store
from habilis.journal.files import FileStore
from habilis.journal.runs import RunView, read_run
from habilis.journal.sqlite import SqliteStore
from habilis.journal.stores import OFF, open_store


@dataclass(frozen=True, kw_only=True)
class JournalAccess:
    """An open journal and the user whose runs are visible in it."""

    store: Store
    user: str
    settings: Settings
    options: str
    """Options that locate the journal, for command lines shown to the user."""

    async def read(self, run: str) -> RunView:
        """Read a run of the user. Raises `RunNotFound`."""
        return await read_run(self.store, run, user=self.user)

    def command(self, name: str, run: str, more: str = '', *, value: str = '') -> str:
        """A `habilis runs` command line to show, with more options or with a value after the run."""
        return runs_command(name, run, f'{self.options}{more}', value)


def with_journal(
    journal: str | None,
    user: str | None,
    work: Callable[[JournalAccess], Awaitable[int]],
    *,
    create: bool = False,
) -> int:
    """Run `work` with the journal open, and return its exit code. A missing journal is created only with `create`."""
    settings = read_settings(lambda: settings_with_options({'journal': journal, 'user': user}))

    async def run() -> int:
        store = open_journal(settings, create=create)
        options = journal_options(journal, user)
        try:
            return await work(JournalAccess(store=store, user=settings.user or '', settings=settings, options=options))
        finally:
            await store.close()

    return run_interruptible(run)


def open_journal(settings: Settings, *, create: bool) -> Store:
    """Open the journal of the settings. A missing one is empty unless `create` is set."""
    if settings.journal == OFF:
        msg = 'no runs are recorded because the journal is set to off; name another one with --journal WHERE'
        raise SettingsError(msg)
    store = open_store(settings.journal)
    path = path_of(store)
    return MemoryStore() if path is not None and not create and not path.exists() else store


def path_of(store: Store) -> Path | None:
    """The file or folder of a store; None for a server."""
    if isinstance(store, (SqliteStore, FileStore)):
        return store.path if isinstance(store, SqliteStore) else store.folder
    return None


def report_damage(reading: RunView) -> int:
    """Print the damage of a run; 1 if there is any, else 0."""
    for error in reading.damage:
        say(str(error))
    return 1 if reading.damage else 0
