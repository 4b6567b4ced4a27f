"""The journal a subcommand works with."""

import contextlib
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Concatenate, ParamSpec

from habilis.agent.hooks.sanitize import one_line
from habilis.cli.interrupt import run_interruptible
from habilis.cli.run.report import runs_command
from habilis.cli.run.request import journal_options
from habilis.cli.settings import read_settings, settings_with_options
from habilis.cli.streams import say
from habilis.core.errors import JournalError, RunNotFound, SettingsError
from habilis.core.settings import Settings
from habilis.journal import MemoryStore, RunInfo, Store
from habilis.journal.copies import GENERATED
from habilis.journal.errors import run_not_found
from habilis.journal.lookup import info_of
from habilis.journal.runs import RunView, read_run
from habilis.journal.stores.files import FileStore
from habilis.journal.stores.sqlite import SqliteStore
from habilis.journal.stores.urls import OFF, open_store

P = ParamSpec('P')
LAST = 'last'
"""Names the newest run, unless a run has this id."""

MAX_CANDIDATES = 10
"""Max runs listed if the start of an id fits several."""


@dataclass(frozen=True, kw_only=True)
class JournalAccess:
    """An open journal and the user whose runs are visible in it."""

    store: Store
    user: str
    settings: Settings
    options: str
    """Options that locate the journal, for command lines shown to the user."""

    async def resolve(self, run: str) -> str:
        """The id of the run that the user names by its id, by the start of it, or by `last`. Raises `RunNotFound`."""
        with contextlib.suppress(RunNotFound):
            return (await info_of(self.store, run, self.user)).run
        known = await self.store.runs(user=self.user)
        if run == LAST and known:
            return known[0].run
        found = [info for info in known if run and info.run.startswith((run, f'{GENERATED}{run}'))]
        if not found:
            raise RunNotFound(self.with_options(str(run_not_found(run))))
        if len(found) > 1:
            raise JournalError(_ambiguous(run, found))
        return found[0].run

    async def read(self, run: str) -> RunView:
        """Read the run that the user names, see `resolve`. Raises `RunNotFound`."""
        return await read_run(self.store, await self.resolve(run), user=self.user)

    def with_options(self, text: str) -> str:
        """The message of a store, with the options that locate the journal in the commands that it shows."""
        return re.sub('habilis runs (list|fork)', lambda found: f'{found[0]}{self.options}', text)

    def command(self, name: str, run: str, more: str = '', *, value: str = '') -> str:
        """A `habilis runs` command line to show, with more options or with a value after the run."""
        return runs_command(name, run, f'{self.options}{more}', value)


def _ambiguous(run: str, found: Sequence[RunInfo]) -> str:
    """Error for the start of several ids."""
    shown = [f'\n  {one_line(info.run, 60)}  {one_line(info.title, 60)}'.rstrip() for info in found[:MAX_CANDIDATES]]
    more = f'\n  and {len(found) - MAX_CANDIDATES} more' if len(found) > MAX_CANDIDATES else ''
    return f'{run!r} is the start of {len(found)} run ids; give more of one:{"".join(shown)}{more}'


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


def in_journal(
    work: Callable[Concatenate[JournalAccess, P], Awaitable[int]],
) -> Callable[Concatenate[str | None, str | None, P], int]:
    """Makes a subcommand of a function: it is called with `--journal` and `--user`, and gets the open journal."""

    def run(journal: str | None, user: str | None, /, *args: P.args, **kwargs: P.kwargs) -> int:
        return with_journal(journal, user, lambda access: work(access, *args, **kwargs))

    return run


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


def report_damage(access: JournalAccess, reading: RunView) -> int:
    """Print the damage of a run; 1 if there is any, else 0."""
    for error in reading.damage:
        say(access.with_options(str(error)))
    return 1 if reading.damage else 0
