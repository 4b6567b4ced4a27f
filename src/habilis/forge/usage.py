"""How often the tools of a library were called, with which outcome, and how long it took."""

import contextlib
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
"""
_COUNT = """
INSERT INTO calls VALUES (?, ?, 1, ?, ?, datetime('now')) ON CONFLICT (name, version) DO UPDATE SET
    calls = calls + 1, failed = failed + excluded.failed, seconds = seconds + excluded.seconds, last = excluded.last
"""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Calls of one version of a tool."""

    name: str
    version: int
    calls: int = 0
    failed: int = 0
    seconds: float = 0.0
    last: str = ''
    """Time of the last call, UTC."""


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

    def read(self) -> list[Usage]:
        """The counts of all tools, the most used first. Raises `ForgeError` if the file is damaged."""
        rows = self._select('SELECT * FROM calls ORDER BY calls DESC, name')
        return [Usage(name=n, version=v, calls=c, failed=f, seconds=s, last=last) for n, v, c, f, s, last in rows]

    def successes(self, names: Sequence[str]) -> dict[str, int]:
        """How many calls of these tools were successful, in all versions."""
        marks = ', '.join('?' * len(names))
        query = f'SELECT name, sum(calls - failed) FROM calls WHERE name IN ({marks}) GROUP BY name'
        try:
            return dict(self._select(query, names)) if names else {}
        except ForgeError:
            return {}

    def _select(self, query: str, values: Sequence[str] = ()) -> list[Any]:
        if not self._path.exists():
            return []
        address = f'{self._path.absolute().as_uri()}?mode=ro'
        try:
            with self._lock, contextlib.closing(sqlite3.connect(address, timeout=10, uri=True)) as db:
                return db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            msg = f'{self._path} is damaged ({error}); delete it to count from zero'
            raise ForgeError(msg) from error

    @contextlib.contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        with self._lock, contextlib.closing(sqlite3.connect(self._path, timeout=10)) as db, db:
            db.execute('PRAGMA journal_mode = TRUNCATE')  # others change the time of the folder, and so age the index
            db.executescript(_SCHEMA)
            yield db
