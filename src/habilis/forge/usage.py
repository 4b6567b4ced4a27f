"""How often the tools of a library were called, with which outcome, and how long it took."""

import sqlite3
import threading
from dataclasses import dataclass
from pathlib import Path

_SCHEMA = """
CREATE TABLE IF NOT EXISTS calls (name TEXT, version INTEGER, calls INTEGER, failed INTEGER, seconds REAL, last TEXT,
    PRIMARY KEY (name, version)) WITHOUT ROWID;
"""
_COUNT = """
INSERT INTO calls VALUES (?, ?, 1, ?, ?, datetime('now')) ON CONFLICT (name, version) DO UPDATE SET
    calls = calls + 1, failed = failed + excluded.failed, seconds = seconds + excluded.seconds, last = excluded.last
"""


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
        """Count one call."""
        with self._lock, sqlite3.connect(self._path, timeout=10) as db:
            db.executescript(_SCHEMA)
            db.execute(_COUNT, (name, version, int(not ok), seconds))

    def read(self) -> list[Usage]:
        """The counts of all tools, the most used first."""
        if not self._path.exists():
            return []
        with self._lock, sqlite3.connect(self._path, timeout=10) as db:
            db.executescript(_SCHEMA)
            rows = db.execute('SELECT * FROM calls ORDER BY calls DESC, name').fetchall()
        return [Usage(name=n, version=v, calls=c, failed=f, seconds=s, last=last) for n, v, c, f, s, last in rows]
