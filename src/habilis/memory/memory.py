"""`Memory`: conversations, facts and tasks of one user, in a file or a database."""

import asyncio
import contextlib
import copy
import math
import threading
import time as clock
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TypeVar, get_args

from habilis.core.closing import Closing
from habilis.core.errors import RememberError, StoreUnavailable
from habilis.memory import exchange, forgetting, tasks
from habilis.memory.context import STANDING, MemoryContext, choose
from habilis.memory.contract import (
    OPEN_STATES,
    Embedder,
    Entry,
    Fact,
    FactKind,
    Hit,
    SessionHit,
    SessionInfo,
    Task,
    TaskState,
    Turn,
)
from habilis.memory.database import Cursor, Database, Row
from habilis.memory.entries import (
    COLUMNS,
    digest_of,
    entry_terms,
    find_id,
    find_owner,
    insert,
    lock_owner,
    new_id,
    note_purged,
    read_entry,
    terms_of,
    unpurged,
)
from habilis.memory.facts import add_fact
from habilis.memory.forgetting import Selection
from habilis.memory.search import Filter, roll_up, search, with_neighbours
from habilis.memory.urls import open_database
from habilis.memory.vectors import Vectors

T = TypeVar('T')
MAX_FACT = 2000
_TITLE = 100
_FACT_KINDS = get_args(FactKind)


class Memory(Closing):
    """The memory of one user. Others in the same file or database are separate; every query names the user.

    Args:
        where: a file, or `postgresql://user@host/database`. Default: `memory.db` in the data folder.
        user: whose memory it is.
        embedder: adds search by meaning. Without one, search uses words.

    `within` is the same memory for the work on one project.
    """

    def __init__(self, where: str | Path | None = None, *, user: str = '', embedder: Embedder | None = None) -> None:
        if user:
            _check(exchange.check_name, user, 'user')
        self.user = user
        self.embedder = embedder
        self.project = ''
        """What the added entries and tasks belong to; empty: to all projects."""

        self.sees_all = True
        """Whether search, lists and contexts also have what belongs to other projects."""

        self._database: Database = open_database(where)
        self._written = threading.Event()
        """Whether it was written to, through this object or one of `within`."""

        self._vectors = None if embedder is None else Vectors(self._database, user, embedder)

    def __repr__(self) -> str:
        return f'<Memory of {self.user!r} in {self._database!r}>'

    def within(self, project: str) -> 'Memory':
        """This memory for the work on a project, such as a folder: it finds what belongs to it or to all projects, and
        what is added belongs to it. Close the memory that this was made of.
        """
        scoped = copy.copy(self)
        scoped.project, scoped.sees_all = project, not project
        return scoped

    @property
    def path(self) -> Path | None:
        """The file; None in a database server."""
        found = getattr(self._database, 'path', None)
        return found if isinstance(found, Path) else None

    @property
    def _scope(self) -> str | None:
        return None if self.sees_all else self.project

    async def _run(self, work: Callable[[Cursor], T]) -> T:
        self._written.set()
        return await self._database.run(work)

    async def _read(self, work: Callable[[Cursor], T]) -> T:
        return await self._database.read(work)

    async def close(self) -> None:
        """Free the connection."""
        if self._vectors is not None:
            await self._vectors.stop()
        if self._written.is_set():
            with contextlib.suppress(StoreUnavailable):
                await self._purge()
        await self._database.close()

    # Turns ------------------------------------------------------------------------------------------------------------

    async def add_turn(self, session: str, role: str, text: str, *, time: float | None = None) -> Turn:
        """Keep a turn. It is durable when this returns. Raises `RememberError`."""
        _check(exchange.check_name, session, 'session')
        _check(exchange.check_name, role, 'role')
        at = clock.time() if time is None else time
        if not math.isfinite(at):
            msg = f'{time} is not a time in seconds since 1970'
            raise RememberError(msg)
        turn = Turn(id=new_id(), session=session, role=role, text=text, time=at, position=0, project=self.project)
        terms = await asyncio.to_thread(entry_terms, turn)

        def work(cursor: Cursor) -> Turn:
            owner = lock_owner(cursor, self.user)
            sql = "SELECT max(place) FROM {s}entries WHERE owner = ? AND type = 'turn' AND session = ?"
            last = (cursor.one(sql, owner, session) or (None,))[0] or 0
            placed = replace(turn, position=last + 1)
            insert(cursor, owner, placed, terms)
            return placed

        added = await self._run(work)
        self._embed_later()
        return added

    async def turns(self, session: str | None = None, *, limit: int | None = None) -> list[Turn]:
        """The last turns of a session, or of all sessions, in the order in which they were added."""

        def work(cursor: Cursor) -> list[Turn]:
            where = Filter(session=session, project=self._scope if session is None else None, history=True)
            conditions, values = where.conditions()
            cut = '' if limit is None else f' LIMIT {int(limit)}'
            sql = f"""SELECT {COLUMNS} FROM {{s}}entries
                WHERE owner = ? AND type = 'turn'{conditions} ORDER BY number DESC{cut}"""
            owner = find_owner(cursor, self.user).key
            entries = map(read_entry, reversed(cursor.all(sql, owner, *values)))
            return [entry for entry in entries if isinstance(entry, Turn)]

        return await self._read(work)

    async def sessions(self, *, limit: int | None = None) -> list[SessionInfo]:
        """The conversations, the newest first."""

        def work(cursor: Cursor) -> list[SessionInfo]:
            owner = find_owner(cursor, self.user).key
            conditions, values = Filter(project=self._scope, history=True).conditions()
            sql = f"""SELECT session, count(*), min(at), max(at), min(number) FROM {{s}}entries
                WHERE owner = ? AND type = 'turn'{conditions} GROUP BY session ORDER BY max(number) DESC"""
            rows = cursor.all(sql, owner, *values)[:limit]
            return [_session(cursor, row) for row in rows]

        return await self._read(work)

    # Facts ------------------------------------------------------------------------------------------------------------

    async def add_fact(
        self,
        text: str,
        kind: FactKind = 'fact',
        *,
        source: str | None = None,
        replaces: str | None = None,
        everywhere: bool = False,
    ) -> Fact:
        """Keep a fact, or return the one that says the same already; if that was of a kind that matters less, it is
        of the new kind then.

        A fact that says the same with another number ("the code is 7731") is replaced. Others stay: only who says it
        knows whether both are true; see `similar_facts`.

        Args:
            text: a short statement.
            kind: what it is about.
            source: id of the turn that it was drawn from.
            replaces: id of an older fact that is no longer true; it stays in the history.
            everywhere: let it belong to all projects, as preferences do.
        """
        text = text.strip()
        if not text or len(text) > MAX_FACT:
            msg = f'a fact is a short statement of 1 to {MAX_FACT:,} characters; this one has {len(text):,}'
            raise RememberError(msg)
        if kind not in _FACT_KINDS:
            msg = f'{str(kind)[:40]!r} is not a kind of fact: use one of {", ".join(_FACT_KINDS)}'
            raise RememberError(msg)
        project = '' if everywhere or kind == 'preference' else self.project
        fact = Fact(id=new_id(), text=text, kind=kind, source=source, time=clock.time(), project=project)
        kept = await self._run(lambda cursor: add_fact(cursor, self.user, fact, replaces))
        self._embed_later()
        return kept

    async def similar_facts(self, text: str, *, limit: int = 3) -> list[Fact]:
        """Facts with most of the words of a text, which it may replace."""
        digest, most = digest_of(text), len(set(terms_of(text))) / 2
        hits = await self._search(text, limit + 1, Filter(type='fact'))
        found = [hit.entry for hit in hits if isinstance(hit.entry, Fact) and len(hit.matched) > most]
        return [fact for fact in found if digest_of(fact.text) != digest][:limit]

    async def facts(self, *, history: bool = False) -> list[Fact]:
        """The facts, oldest first. `history`: also those that were replaced."""

        def work(cursor: Cursor) -> list[Fact]:
            conditions, values = Filter(project=self._scope, history=history).conditions()
            sql = f"SELECT {COLUMNS} FROM {{s}}entries WHERE owner = ? AND type = 'fact'{conditions} ORDER BY number"
            entries = map(read_entry, cursor.all(sql, find_owner(cursor, self.user).key, *values))
            return [entry for entry in entries if isinstance(entry, Fact)]

        return await self._read(work)

    async def get(self, id: str) -> Entry:
        """The turn or fact of an id, or of the start of one. Raises `RememberError`."""
        return await self._read(lambda cursor: find_id(cursor, find_owner(cursor, self.user).key, id)[1])

    # Search -----------------------------------------------------------------------------------------------------------

    async def search(
        self,
        query: str,
        *,
        limit: int = 10,
        since: float | None = None,
        until: float | None = None,
        role: str | None = None,
        session: str | None = None,
        type: str | None = None,
        history: bool = False,
        neighbours: bool = False,
    ) -> list[Hit]:
        """Turns and facts that fit a query, best first.

        Args:
            query: words or a question.
            limit: maximum number of hits.
            since: only entries from this time on, in seconds since 1970.
            until: only entries before this time.
            role: only turns with this role.
            session: only turns of this session.
            type: only `turn` or `fact`.
            history: also facts that were replaced.
            neighbours: with the turns before and after each.
        """
        where = Filter(since=since, until=until, role=role, session=session, type=type, history=history)
        return await self._search(query, limit, where, neighbours=neighbours)

    async def _search(self, query: str, limit: int, where: Filter, *, neighbours: bool = False) -> list[Hit]:
        similar = await self._vectors.similar(query) if self._vectors is not None else None
        where = replace(where, project=self._scope)

        def work(cursor: Cursor) -> list[Hit]:
            hits = search(cursor, self.user, query, limit=limit, where=where, similar=similar)
            return with_neighbours(cursor, self.user, hits) if neighbours else hits

        return await self._read(work)

    async def search_sessions(self, query: str, *, limit: int = 5) -> list[SessionHit]:
        """Conversations that fit a query, best first, each with its best turns."""
        return roll_up(await self._search(query, 50, Filter(type='turn')), limit)

    async def context_for(
        self, task: str, budget: int = 800, *, session: str | None = None, seen_from: int = 1, visible: str = ''
    ) -> MemoryContext:
        """What the model should know for a task: preferences and instructions, then relevant facts and turns.

        Args:
            task: the task or message.
            budget: tokens, estimated.
            session: the conversation under way.
            seen_from: position of its first turn that the model sees anyway; earlier ones were shortened.
            visible: all text that the model sees. What is in it is not given again.
        """
        standing = [fact for fact in await self.facts() if fact.kind in STANDING]
        hits = await self._search(task, 30, Filter(not_session=session, before=seen_from))
        return choose(standing, hits, budget, f'{visible}\n{task}')

    # Embedding --------------------------------------------------------------------------------------------------------

    def _embed_later(self) -> None:
        if self._vectors is not None:
            self._vectors.start()

    async def embed_some(self, limit: int) -> None:
        """Embed the newest entries that have no vector yet, if that works. If not, they are found by their words."""
        if self._vectors is not None:
            await self._vectors.embed_some(limit)

    async def embed_missing(self, *, limit: int | None = None) -> int:
        """Embed the newest entries that have no vector of the embedder yet, and wait for it. Returns how many.

        Raises the error of the embedder.
        """
        return await self._vectors.embed_missing(limit) if self._vectors is not None else 0

    # Forget, export, import -------------------------------------------------------------------------------------------

    async def find_to_forget(
        self,
        *ids: str,
        session: str | None = None,
        before: float | None = None,
        query: str | None = None,
    ) -> list[Entry]:
        """What `forget` would delete."""
        chosen = Selection(ids=ids, session=session, before=before, query=query)
        return await self._read(lambda cursor: forgetting.find(cursor, self.user, chosen))

    async def forget(
        self,
        *ids: str,
        session: str | None = None,
        before: float | None = None,
        query: str | None = None,
    ) -> list[Entry]:
        """Delete turns and facts from all indexes and from the file, and return what was deleted.

        Takes ids, a session, a time before which everything is forgotten, or words that an entry must all have. Facts
        that were drawn from a turn go with it, and so do the older versions of a fact. Raises `RememberError`, and
        `StoreUnavailable` if the bytes cannot be removed from the file now; the next call does that, and `close` tries.

        What a journal has recorded of a conversation stays there: `habilis memory forget --runs` deletes that too.
        """
        chosen = Selection(ids=ids, session=session, before=before, query=query)
        forgotten = await self._run(lambda cursor: forgetting.forget(cursor, self.user, chosen))
        await self._purge()
        return forgotten

    async def _purge(self) -> None:
        """Remove what was deleted from the files, also what an earlier call could not."""
        if removals := await self._read(unpurged):
            await self._database.purge()
            await self._run(lambda cursor: note_purged(cursor, removals))

    async def export(self) -> list[str]:
        """Everything of the user, as lines of JSON."""
        return await self._read(lambda cursor: exchange.export_lines(cursor, self.user))

    async def import_lines(self, lines: Iterable[str]) -> int:
        """Add the lines of an export, all or none. Returns how many were new. Raises `DocumentError`."""
        added = await self._run(lambda cursor: exchange.import_lines(cursor, self.user, lines))
        self._embed_later()
        return added

    # Tasks ------------------------------------------------------------------------------------------------------------

    async def add_task(
        self, title: str, *, after: Sequence[int] = (), due: date | None = None, notes: str = ''
    ) -> Task:
        """Add a task. `after`: numbers of the tasks that must be completed before. Raises `RememberError`."""
        known = tuple(dict.fromkeys(after))
        task = Task(number=0, title=title.strip(), after=known, due=due, notes=notes, project=self.project)
        return await self._run(lambda cursor: tasks.add_task(cursor, self.user, task))

    async def update_task(
        self,
        number: int,
        *,
        state: TaskState | None = None,
        title: str | None = None,
        after: Sequence[int] | None = None,
        due: date | None = None,
        notes: str | None = None,
        clear_due: bool = False,
    ) -> Task:
        """Change a task; what is not given stays. Raises `RememberError`."""
        given: dict[str, object] = {
            'state': state,
            'title': None if title is None else title.strip(),
            'after': None if after is None else tuple(dict.fromkeys(after)),
            'due': due,
            'notes': notes,
        }
        changes = {name: value for name, value in given.items() if value is not None}
        changes |= {'due': None} if clear_due else {}
        return await self._run(lambda cursor: tasks.change_task(cursor, self.user, number, changes))

    async def remove_task(self, number: int) -> Task:
        """Delete a task. Raises `RememberError`."""
        removed = await self._run(lambda cursor: tasks.remove_task(cursor, self.user, number))
        await self._purge()
        return removed

    async def tasks(self, *, all: bool = False) -> list[Task]:
        """The open tasks by due date and number; with `all` also those that are completed or cancelled."""
        found = (await self._read(lambda cursor: tasks.read_tasks(cursor, self.user))).values()
        chosen = [task for task in found if all or task.state in OPEN_STATES]
        chosen = [task for task in chosen if self.sees_all or task.project in ('', self.project)]
        return sorted(chosen, key=lambda task: (task.due or date.max, task.number))


def _check(check: Callable[[str, str], None], name: str, what: str) -> None:
    try:
        check(name, what)
    except ValueError as error:
        raise RememberError(str(error)) from None


def _session(cursor: Cursor, row: Row) -> SessionInfo:
    session, turns, first, last, number = row
    found = cursor.one(f'SELECT {COLUMNS} FROM {{s}}entries WHERE number = ?', number)
    assert found is not None
    entry = read_entry(found)
    title = ' '.join(entry.text.split())[:_TITLE]
    return SessionInfo(session=session, turns=turns, first=first, last=last, title=title, project=entry.project)
