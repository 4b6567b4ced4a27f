"""The subcommands of `habilis sessions`. They read the turns of the memory and the runs of the journal."""

import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from habilis.cli.interrupt import run_interruptible
from habilis.cli.memory.opening import entry_json
from habilis.cli.options import confirm_deletion
from habilis.cli.printing import Page, format_age, format_time, print_json, print_table
from habilis.cli.runs.journal import LAST, open_journal
from habilis.cli.settings import read_settings, settings_with_options
from habilis.cli.streams import say
from habilis.core.errors import RememberError
from habilis.journal import MemoryStore, RunInfo, Store
from habilis.journal.runs import delete_run
from habilis.journal.stores.urls import OFF
from habilis.memory import Memory, SessionInfo


@dataclass(frozen=True, kw_only=True)
class Places:
    """Options that locate the memory and the journal."""

    memory: str | None
    journal: str | None
    user: str | None


@dataclass(frozen=True, kw_only=True)
class _Opened:
    memory: Memory
    store: Store

    async def resolve(self, session: str) -> str:
        """The id of a session; `last` names the newest one."""
        if session == LAST and (rows := _merged(await self.memory.sessions(), await self.runs())):
            return rows[0]['session']
        return session

    async def runs(self, session: str | None = None) -> list[RunInfo]:
        found = await self.store.runs(user=self.memory.user, session=session)
        return [run for run in found if run.session]


def _with(places: Places, work: Callable[[_Opened], Coroutine[object, object, int]]) -> int:
    settings = read_settings(lambda: settings_with_options(asdict(places)))

    async def run() -> int:
        store = MemoryStore() if settings.journal == OFF else open_journal(settings, create=False)
        try:
            async with Memory(settings.memory, user=settings.user or '') as memory:
                return await work(_Opened(memory=memory, store=store))
        finally:
            await store.close()

    return run_interruptible(run)


def list_sessions(places: Places, *, limit: int, as_json: bool) -> int:
    """Print the sessions, newest first."""

    async def work(opened: _Opened) -> int:
        rows = _merged(await opened.memory.sessions(), await opened.runs())
        if as_json:
            print_json(rows[:limit])
        elif rows:
            now = time.time()
            cells = [(row['session'], str(row['turns']), str(row['runs']), format_age(now - row['last']), row['title'])
                     for row in rows[:limit]]  # fmt: skip
            print_table(('SESSION', 'MESSAGES', 'RUNS', 'LAST', 'TITLE'), cells)
        else:
            say('no conversations yet')
        return 0

    return _with(places, work)


def _merged(sessions: Sequence[SessionInfo], runs: Sequence[RunInfo]) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {one.session: {**asdict(one), 'runs': 0} for one in sessions}
    for run in runs:  # newest first
        empty = {'session': run.session, 'turns': 0, 'first': run.created, 'last': run.updated, 'runs': 0}
        row = found.setdefault(run.session, {**empty, 'title': run.title})
        row['runs'] += 1
        row['first'], row['last'] = min(row['first'], run.created), max(row['last'], run.updated)
        row['title'] = row['title'] if row['turns'] else run.title
    return sorted(found.values(), key=lambda row: -row['last'])


def show_session(name: str, places: Places, *, limit: int, as_json: bool) -> int:
    """Print the last turns of a session, and its runs."""

    async def work(opened: _Opened) -> int:
        session = await opened.resolve(name)
        turns, runs = await opened.memory.turns(session, limit=limit), await opened.runs(session)
        if not turns and not runs:
            raise _not_found(session)
        if as_json:
            print_json({'session': session, 'turns': [entry_json(turn) for turn in turns], 'runs': runs})
            return 0
        page = Page()
        for turn in turns:
            page.line(f'{turn.role}  {format_time(turn.time)}  {turn.id}', 'bold')
            page.text(turn.text, indent=2)
        for run in reversed(runs):
            page.line(f'run {run.run}  {run.status}  {format_time(run.created)}', 'bold')
            page.text(run.title, indent=2)
        return 0

    return _with(places, work)


def remove_session(name: str, places: Places, *, yes: bool, as_json: bool) -> int:
    """Delete the turns and runs of a session after confirmation."""

    async def work(opened: _Opened) -> int:
        session = await opened.resolve(name)
        entries = await opened.memory.find_to_forget(session=session)
        runs = await opened.runs(session)
        if not entries and not runs:
            raise _not_found(session)
        what = f'{len(entries)} entries of the memory and {len(runs)} runs of {session}'
        if not confirm_deletion(f'Delete {what} for good?', yes=yes):
            return 1
        for run in runs:
            await delete_run(opened.store, run.run, user=opened.memory.user)
        forgotten = await opened.memory.forget(session=session) if entries else []
        if as_json:
            print_json({'entries': [entry_json(entry) for entry in forgotten], 'runs': [run.run for run in runs]})
        else:
            say(f'deleted {what}')
        return 0

    return _with(places, work)


def _not_found(session: str) -> RememberError:
    return RememberError(f'no such session: {session[:100]!r}; `habilis sessions list` lists all')
