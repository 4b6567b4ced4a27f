"""How often the tools of a library were called, with which outcome, how long it took, and which worked together."""

import contextlib
import json
import logging
import sqlite3
import threading
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from habilis.core.errors import ForgeError

_SCHEMA = """
CREATE TABLE IF NOT EXISTS calls (name TEXT, version INTEGER, calls INTEGER, failed INTEGER, seconds REAL, last TEXT,
    PRIMARY KEY (name, version)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS requests (run TEXT UNIQUE, task TEXT, tools TEXT, ok INTEGER);
"""
_COUNT = """
INSERT INTO calls VALUES (?, ?, 1, ?, ?, datetime('now')) ON CONFLICT (name, version) DO UPDATE SET
    calls = calls + 1, failed = failed + excluded.failed, seconds = seconds + excluded.seconds, last = excluded.last
"""
MAX_REQUESTS = 10_000
"""The newest of these are kept."""

_MAX_TASK = 2000
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ToolUsage:
    """Calls of one version of a tool."""

    name: str
    version: int
    calls: int = 0
    failed: int = 0
    seconds: float = 0.0
    last: str = ''
    """Time of the last call, UTC."""


@dataclass(frozen=True, kw_only=True)
class Combination:
    """Tools that were used together, in this order, by runs that succeeded."""

    tools: tuple[str, ...]
    tasks: tuple[str, ...]
    """The tasks of these runs, oldest first."""


class UsageLog:
    """The counts of one library."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def record(self, name: str, version: int, *, ok: bool, seconds: float) -> None:
        """Count one call. A call is not lost because it cannot be counted, as in a read-only library."""
        try:
            with self._open() as db:
                db.execute(_COUNT, (name, version, int(not ok), seconds))
        except sqlite3.Error as error:
            _log.warning('cannot count the call of %s in %s: %s', name, self._path, error)

    def read(self) -> list[ToolUsage]:
        """The counts of all tools, the most used first. Raises `ForgeError` if the file is damaged."""
        rows = self._select('SELECT * FROM calls ORDER BY calls DESC, name')
        return [ToolUsage(name=n, version=v, calls=c, failed=f, seconds=s, last=last) for n, v, c, f, s, last in rows]

    def successes(self, names: Sequence[str]) -> dict[str, int]:
        """How many calls of these tools were successful, in all versions."""
        marks = ', '.join('?' * len(names))
        query = f'SELECT name, sum(calls - failed) FROM calls WHERE name IN ({marks}) GROUP BY name'
        try:
            return dict(self._select(query, names)) if names else {}
        except ForgeError:
            return {}

    def record_request(self, task: str, tools: Sequence[str], *, ok: bool, run: str | None = None) -> None:
        """Keep which tools of the library a run called, in the order of their first calls, and whether it succeeded.

        Call it once per run, at its end. With the id of the `run`, a resumed run replaces what it recorded before.
        Like a call, a request is not lost because it cannot be recorded.
        """
        order = json.dumps(list(dict.fromkeys(tools)))
        try:
            with self._open() as db:
                db.execute('INSERT OR REPLACE INTO requests VALUES (?, ?, ?, ?)', (run, task[:_MAX_TASK], order, ok))
                db.execute('DELETE FROM requests WHERE rowid <= (SELECT max(rowid) FROM requests) - ?', (MAX_REQUESTS,))
        except sqlite3.Error as error:
            _log.warning('cannot record a request in %s: %s', self._path, error)

    def combinations(self, *, times: int = 2) -> list[Combination]:
        """Two or more tools that worked together in so many runs, the most frequent first. Raises `ForgeError`."""
        rows = self._select('SELECT tools, task FROM requests WHERE ok ORDER BY rowid')
        tasks: dict[tuple[str, ...], list[str]] = {}
        for tools, task in rows:
            tasks.setdefault(tuple(json.loads(tools)), []).append(task)
        found = [
            Combination(tools=tools, tasks=tuple(worked))
            for tools, worked in tasks.items()
            if len(tools) > 1 and len(worked) >= times
        ]
        return sorted(found, key=lambda one: -len(one.tasks))

    def single_uses(self, *, limit: int = 200) -> list[tuple[str, str]]:
        """The newest tasks that one tool of the library was enough for, with that tool."""
        query = "SELECT task, json_extract(tools, '$[0]') FROM requests WHERE ok AND json_array_length(tools) = 1"
        try:
            return self._select(f'{query} ORDER BY rowid DESC LIMIT {limit:d}')
        except ForgeError:  # a search does not fail because of it
            return []

    def _select(self, query: str, values: Sequence[str] = ()) -> list[Any]:
        if not self._path.exists():
            return []
        address = f'{self._path.absolute().as_uri()}?mode=ro'
        try:
            with self._lock, contextlib.closing(sqlite3.connect(address, timeout=10, uri=True)) as db:
                return db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            if str(error).startswith('no such table'):  # written before there was one
                return []
            msg = f'{self._path} is damaged ({error}); delete it to count from zero'
            raise ForgeError(msg) from error

    @contextlib.contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        with self._lock, contextlib.closing(sqlite3.connect(self._path, timeout=10)) as db, db:
            db.execute('PRAGMA journal_mode = TRUNCATE')  # others change the time of the folder, and so age the index
            db.executescript(_SCHEMA)
            yield db
