"""The file behind `SqliteStore`: opening it, sharing it with other threads and processes, and what can be wrong."""

import asyncio
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import TypeVar, cast

from habilis.core.errors import StoreUnavailable
from habilis.journal.refusals import unavailable

PATIENCE = 10.0
"""Seconds that an operation waits for other processes which write to the same file."""

VERSION = 1
"""Of the tables. A file of an older version is brought up to it; one of a newer is refused."""

_APPLICATION = 0x48414249  # marks the file as ours: `HABI`
_TABLES = (
    """CREATE TABLE runs (
        run TEXT PRIMARY KEY, user TEXT, session TEXT, status TEXT, created REAL, info TEXT,
        epoch INTEGER, owner TEXT, claimed REAL, until REAL
    ) WITHOUT ROWID""",
    'CREATE INDEX runs_of_users ON runs (user, created)',
    'CREATE TABLE records (run TEXT, seq INTEGER, line TEXT, PRIMARY KEY (run, seq)) WITHOUT ROWID',
    'CREATE TABLE blobs (run TEXT, digest TEXT, data BLOB, PRIMARY KEY (run, digest))',
    f'PRAGMA application_id = {_APPLICATION}',
    f'PRAGMA user_version = {VERSION}',
)
_decoded = methodcaller('decode', 'utf-8', 'replace')  # a damaged byte is for the checksum of its line to find

T = TypeVar('T')


class SqliteFile:
    """A connection that is opened on first use. One at a time works with it, for a short time."""

    def __init__(self, path: Path, *, full: bool) -> None:
        self.path = path
        self._full = full
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        _files.add(self)

    async def do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do something short. While another process writes, wait, and let the others of this event loop go on."""
        pause, deadline = 0.0005, 0.0
        while True:
            try:
                return self._try(work)
            except sqlite3.Error as error:
                if not _is_busy(error):
                    raise _explained(error, self.path) from error
            deadline = deadline or time.monotonic() + PATIENCE
            if time.monotonic() > deadline:
                why = f'another process has been writing to it for {PATIENCE:.0f} seconds'
                raise unavailable(str(self.path), why, passing=True)
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, 0.02)

    async def change(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do something as one transaction."""

        def transaction(connection: sqlite3.Connection) -> T:
            connection.execute('BEGIN IMMEDIATE')
            result = work(connection)
            connection.execute('COMMIT')
            return result

        return await self.do(transaction)

    def close(self) -> None:
        """Used again, it is opened again."""
        with self._lock:
            self._drop()

    def _try(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._lock:
            connection = self._connection
            if connection is None:
                connection = self._connection = _open(self.path, full=self._full)
            try:
                return work(connection)
            except BaseException as error:
                self._tidy(connection, error)
                raise

    def _tidy(self, connection: sqlite3.Connection, error: BaseException) -> None:
        """No transaction stays open, and a file that made trouble is opened anew."""
        broken = isinstance(error, sqlite3.Error) and not _is_busy(error)
        try:
            if connection.in_transaction:
                connection.execute('ROLLBACK')
        except sqlite3.Error:
            broken = True
        if broken:
            self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    # Forks ------------------------------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Nobody is in the middle of something."""
        self._lock.acquire()

    def after_fork(self, *, child: bool) -> None:
        """A child must not use what its parent opened.

        It has to be closed all the same: SQLite would take the locks of the old connection, which the child does not
        have, for those of the new one. This does no harm, as the parent has its lock and nothing is under way.
        """
        if child:
            self._drop()
        self._lock.release()


_files: 'weakref.WeakSet[SqliteFile]' = weakref.WeakSet()
_forking: list[SqliteFile] = []


def _before_fork() -> None:
    _forking[:] = _files
    for file in _forking:
        file.before_fork()


def _after_fork(*, child: bool) -> None:
    for file in _forking:
        file.after_fork(child=child)
    _forking.clear()


if hasattr(os, 'register_at_fork'):  # not on Windows
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=partial(_after_fork, child=False),
        after_in_child=partial(_after_fork, child=True),
    )


# Opening --------------------------------------------------------------------------------------------------------------

_making = threading.Lock()


def _open(path: Path, *, full: bool) -> sqlite3.Connection:
    """A connection to our file, which is made if it is missing. Raises `StoreUnavailable`, and errors of SQLite."""
    try:
        _make(path)
    except (OSError, ValueError) as error:
        raise unavailable(str(path), _reason(error)) from None
    connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        connection.text_factory = _decoded
        _prepare(connection, path)
        connection.execute(f'PRAGMA synchronous = {"FULL" if full else "NORMAL"}')
    except BaseException:
        connection.close()
        raise
    return connection


def _make(path: Path) -> None:
    """An empty file that only its owner can read: it will hold what people have asked."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _making:  # to close a file gives up all locks that this process has on it, so nobody may have one yet
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """The tables, in a file that is new; a refusal for one that is not ours."""
    connection.execute('BEGIN')  # what is read must be of one moment: another process may be making the tables
    new = _is_new(connection, path)
    connection.execute('COMMIT')
    if new:
        connection.execute('PRAGMA journal_mode = WAL')
        connection.execute('BEGIN IMMEDIATE')
        if _is_new(connection, path):  # another process may have been here in the meantime
            for sql in _TABLES:
                connection.execute(sql)
        connection.execute('COMMIT')


def _is_new(connection: sqlite3.Connection, path: Path) -> bool:
    application, version, tables = (
        cast('int', connection.execute(sql).fetchone()[0])
        for sql in ('PRAGMA application_id', 'PRAGMA user_version', 'SELECT count(*) FROM sqlite_master')
    )
    if application == _APPLICATION and version > VERSION:
        msg = (
            f'the journal at {path} was written by a newer Habilis (tables of version {version}, this one knows '
            f'{VERSION}); update Habilis, or name another file'
        )
        raise StoreUnavailable(msg)
    if application != _APPLICATION and (application or version or tables):
        msg = f'{path} is the database of another program, not a journal; name another file'
        raise StoreUnavailable(msg)
    return application != _APPLICATION


# Errors ---------------------------------------------------------------------------------------------------------------


def _is_busy(error: sqlite3.Error) -> bool:
    return _code(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}


def _code(error: sqlite3.Error) -> int | None:
    """Without its finer part. Errors of the Python module itself have none."""
    code = cast('int | None', getattr(error, 'sqlite_errorcode', None))
    return None if code is None else code & 0xFF


def _explained(error: sqlite3.Error, path: Path) -> StoreUnavailable:
    code = _code(error)
    if code in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}:
        msg = (
            f'the journal at {path} is damaged, or no journal ({error}). Move the file away, and bring a copy back if '
            f'you have one; `sqlite3 {path} .recover` may save what is left'
        )
        return StoreUnavailable(msg)
    why = {
        sqlite3.SQLITE_FULL: 'the disk is full; make room',
        sqlite3.SQLITE_READONLY: 'the file, or its folder, may not be written',
        sqlite3.SQLITE_CANTOPEN: 'it is a folder; name a file'
        if path.is_dir()
        else 'the file, or its folder, may not be opened',
    }.get(code or 0, error)
    return unavailable(str(path), why)


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
