"""`SqliteFile`: a SQLite file that is shared with other threads and processes: of a `SqliteStore`, or of the memory."""

import asyncio
import contextlib
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import TypeVar

from habilis.core.closing import close_with
from habilis.core.errors import StoreUnavailable
from habilis.core.folders import own_data_folder
from habilis.core.narrowing import expect
from habilis.journal.errors import store_unavailable

LOCK_SECONDS = 10.0
"""How long an operation waits for other processes that write to the file."""


@dataclass(frozen=True, kw_only=True)
class Schema:
    """What a file is, and its tables."""

    name: str
    """For messages."""

    application: int
    """Marks the file as one of this schema."""

    version: int
    """Of the tables. Files with another version are refused."""

    tables: tuple[str, ...]
    """Statements that create them."""

    on_connect: tuple[str, ...] = ()
    """Statements for every new connection."""


VERSION = 1
JOURNAL = Schema(
    name='journal',
    application=0x48414249,  # `HABI`
    version=VERSION,
    tables=(
        """CREATE TABLE runs (
            run TEXT PRIMARY KEY, user TEXT, session TEXT, status TEXT, created REAL, info TEXT,
            epoch INTEGER, owner TEXT, claimed REAL, until REAL
        ) WITHOUT ROWID""",
        'CREATE INDEX runs_of_users ON runs (user, created)',
        'CREATE INDEX runs_of_status ON runs (status)',  # workers look for queued and running ones all the time
        'CREATE TABLE records (run TEXT, seq INTEGER, line TEXT, PRIMARY KEY (run, seq)) WITHOUT ROWID',
        'CREATE TABLE blobs (run TEXT, digest TEXT, data BLOB, PRIMARY KEY (run, digest))',
    ),
)
_decoded = methodcaller('decode', 'utf-8', 'replace')  # damaged bytes are found by the checksum of the line

T = TypeVar('T')


class SqliteFile:
    """A connection that is opened on first use, and used by one thread at a time."""

    def __init__(self, path: Path, *, full: bool, schema: Schema = JOURNAL) -> None:
        self.path = path
        self._schema = schema
        self._full = full
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._syncs: bool | None = None
        """Whether the connection waits for the disk; None if it is new."""

        self._is_read_only = False
        _files.add(self)

    async def do(self, work: Callable[[sqlite3.Connection], T], *, sync: bool = False) -> T:
        """Do short work with the connection. Wait, without blocking the event loop, while another process writes.

        `sync`: what it writes is on the disk when this returns, whatever the durability.
        """
        pause, deadline = 0.0005, 0.0
        while True:
            try:
                return self._try(work, sync=sync or self._full)
            except sqlite3.Error as error:
                if not _is_busy(error):
                    raise _unavailable(error, self.path, self._schema) from error
            deadline = deadline or time.monotonic() + LOCK_SECONDS
            if time.monotonic() > deadline:
                why = f'another process has been writing to it for {LOCK_SECONDS:.0f} seconds'
                raise store_unavailable(str(self.path), why, passing=True, what=self._schema.name)
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, 0.02)

    async def change(self, work: Callable[[sqlite3.Connection], T], *, sync: bool = False) -> T:
        """Do work in one transaction. For `sync` see `do`."""

        def transaction(connection: sqlite3.Connection) -> T:
            connection.execute('BEGIN IMMEDIATE')
            result = work(connection)
            connection.execute('COMMIT')
            return result

        return await self.do(transaction, sync=sync)

    def close(self) -> None:
        """Close the connection. The next use opens it again."""
        with self._lock:
            self._drop()

    def _try(self, work: Callable[[sqlite3.Connection], T], *, sync: bool) -> T:
        with self._lock:
            connection = self._connection
            if connection is None:
                connection, self._is_read_only = _open(self.path, self._schema)
                self._connection, self._syncs = connection, None
                close_with(self, connection)
            try:
                if sync is not self._syncs:
                    connection.execute(f'PRAGMA synchronous = {"FULL" if sync else "NORMAL"}')
                    self._syncs = sync
                return work(connection)
            except BaseException as error:
                self._clean_up(connection, error)
                raise
            finally:
                if self._is_read_only:  # it may not see what another process writes
                    self._drop()

    def _clean_up(self, connection: sqlite3.Connection, error: BaseException) -> None:
        """Roll back an open transaction; close the connection after an error of the file."""
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
        """Wait until no thread uses the connection."""
        self._lock.acquire()

    def after_fork(self, *, child: bool) -> None:
        """Close the connection in a child process, which must not use one that its parent opened.

        Without closing it, SQLite would take the locks of the old connection, which the child does not hold, for those
        of a new one. This is safe, because the lock guarantees that no operation is running.
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

_creating = threading.Lock()


def _open(path: Path, schema: Schema) -> tuple[sqlite3.Connection, bool]:
    """Connect to the file, and create it if it is missing. Returns the connection, and whether it can only read.

    Raises `StoreUnavailable`, and errors of SQLite.
    """
    try:
        _create(path)
    except (OSError, ValueError) as error:
        raise store_unavailable(str(path), _reason(error), what=schema.name) from None
    try:
        return _connect(path, schema), False
    except sqlite3.Error as error:
        is_refused = _code(error) in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
        if not is_refused or not path.is_file() or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
            raise
    return _connect(path, schema, _read_only_option(path, schema)), True


def _read_only_option(path: Path, schema: Schema) -> str:
    """How to read a file in a folder where SQLite cannot create its `-shm` file, which it needs in WAL mode."""
    if os.path.exists(f'{path}-shm'):  # left by a process that died, or used by one that runs
        return 'mode=ro'
    try:
        unread = os.path.getsize(f'{path}-wal')
    except FileNotFoundError:
        unread = 0
    if unread:
        why = f'its folder is read-only, and {path.name}-wal has changes; copy both files to a writable folder'
        raise store_unavailable(str(path), why, what=schema.name)
    return 'immutable=1'  # no process uses it


def _connect(path: Path, schema: Schema, option: str = '') -> sqlite3.Connection:
    where = f'{path.as_uri()}?{option}' if option else path
    connection = sqlite3.connect(where, timeout=0, isolation_level=None, check_same_thread=False, uri=bool(option))
    try:
        connection.text_factory = _decoded
        for statement in schema.on_connect:
            connection.execute(statement)
        _prepare(connection, path, schema)
    except BaseException:
        connection.close()
        raise
    return connection


def _create(path: Path) -> None:
    """Create an empty file that only its owner can read."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.parent == own_data_folder() and path.parent.stat().st_mode & 0o077:
        with contextlib.suppress(OSError):  # it may belong to another user
            path.parent.chmod(0o700)
    with _creating:  # closing a file releases all locks of this process on it, so there must be none yet
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return


def _prepare(connection: sqlite3.Connection, path: Path, schema: Schema) -> None:
    """Create the tables in a new file. Raises `StoreUnavailable` if the file is of another program."""
    connection.execute('BEGIN')  # a consistent read: another process may be creating the tables
    new = _is_new(connection, path, schema)
    connection.execute('COMMIT')
    if new:
        connection.execute('PRAGMA journal_mode = WAL')
        connection.execute('BEGIN IMMEDIATE')
        if _is_new(connection, path, schema):  # another process may have created them meanwhile
            marks = (f'PRAGMA application_id = {schema.application}', f'PRAGMA user_version = {schema.version}')
            for sql in (*schema.tables, *marks):
                connection.execute(sql)
        connection.execute('COMMIT')


def _is_new(connection: sqlite3.Connection, path: Path, schema: Schema) -> bool:
    application, version, tables = (
        expect(connection.execute(sql).fetchone()[0], int)
        for sql in ('PRAGMA application_id', 'PRAGMA user_version', 'SELECT count(*) FROM sqlite_master')
    )
    if application == schema.application and version != schema.version:
        age, advice = (
            ('a newer', 'update Habilis') if version > schema.version else ('an earlier', 'export it with that one')
        )
        msg = (
            f'the {schema.name} at {path} was written by {age} Habilis (tables of version {version}, this one reads '
            f'{schema.version}); {advice}, or give another file'
        )
        raise StoreUnavailable(msg)
    if application != schema.application and (application or version or tables):
        msg = f'{path} is the database of another program, not a {schema.name}; give another file'
        raise StoreUnavailable(msg)
    return application != schema.application


# Errors ---------------------------------------------------------------------------------------------------------------


def _is_busy(error: sqlite3.Error) -> bool:
    return _code(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}


def _code(error: sqlite3.Error) -> int | None:
    """The primary result code; None for errors of the Python module itself."""
    code: int | None = getattr(error, 'sqlite_errorcode', None)
    return None if code is None else code & 0xFF


def _unavailable(error: sqlite3.Error, path: Path, schema: Schema) -> StoreUnavailable:
    code = _code(error)
    if code in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}:
        msg = (
            f'the {schema.name} at {path} is damaged, or not a {schema.name} ({error}). Move the file away, and '
            f'restore a backup; `sqlite3 {path} .recover` may recover a part of it'
        )
        return StoreUnavailable(msg)
    why = {
        sqlite3.SQLITE_FULL: 'the disk is full; free some space',
        sqlite3.SQLITE_READONLY: 'the file or its folder is read-only',
        sqlite3.SQLITE_CANTOPEN: 'it is a folder; give a file'
        if path.is_dir()
        else 'the file or its folder cannot be opened',
    }.get(code or 0, error)
    return store_unavailable(str(path), why, what=schema.name)


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
