"""`SqliteDatabase`: the memory in one SQLite file, the default. Many processes of one machine can share it."""

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from habilis.core.errors import StoreUnavailable
from habilis.journal.errors import store_unavailable
from habilis.journal.stores.sqlite_file import LOCK_SECONDS, Schema, SqliteFile
from habilis.memory.database import TABLES, VERSION, Cursor, Row

T = TypeVar('T')

_TYPES = {'s': '', 'i': '', 'serial': 'INTEGER PRIMARY KEY AUTOINCREMENT', 'bytes': 'BLOB'}
_WORDS = """CREATE VIRTUAL TABLE words USING fts5(
    terms, content='', detail=none, columnsize=0, tokenize="unicode61 tokenchars '_'"
)"""
_SCHEMA = Schema(
    name='memory',
    application=0x4841424D,  # `HABM`
    version=VERSION,
    tables=(*TABLES.format_map(_TYPES).strip().rstrip(';').split(';\n'), _WORDS),
    on_connect=('PRAGMA secure_delete = ON', 'PRAGMA cache_size = -32000'),  # 32 MB, used as needed
)


class SqliteDatabase:
    """A `Database` in a file. The file and its folders are created on first use; only the owner can read the file."""

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.abspath(path))
        self._file = SqliteFile(self.path, full=False, schema=_SCHEMA)

    def __repr__(self) -> str:
        return f'SqliteDatabase({str(self.path)!r})'

    async def run(self, work: Callable[[Cursor], T]) -> T:
        """See `Database`."""
        return await self._file.change(lambda connection: work(_SqliteCursor(connection)))

    async def read(self, work: Callable[[Cursor], T]) -> T:
        """See `Database`."""

        def reading(connection: sqlite3.Connection) -> T:
            connection.execute('BEGIN')
            result = work(_SqliteCursor(connection))
            connection.execute('COMMIT')
            return result

        return await self._file.do(reading)

    async def purge(self) -> None:
        """See `Database`. The file is written anew, because SQLite leaves old bytes in the gaps of its pages."""
        await asyncio.to_thread(self._purge)

    def _purge(self) -> None:
        try:
            with contextlib.closing(
                sqlite3.connect(self.path, timeout=LOCK_SECONDS, isolation_level=None)
            ) as connection:
                connection.execute('PRAGMA secure_delete = ON')
                connection.execute("INSERT INTO words (words) VALUES ('optimize')")
                connection.execute('VACUUM')
                is_busy, *_ = connection.execute('PRAGMA wal_checkpoint(TRUNCATE)').fetchone()
        except sqlite3.Error as error:
            raise self._not_purged(error) from None
        if is_busy:
            raise self._not_purged('another process is using it')

    def _not_purged(self, why: object) -> StoreUnavailable:
        why = f'what was forgotten is no longer found, but the file may still have its bytes: {why}. Forget it again'
        return store_unavailable(str(self.path), why, what='memory', passing=True)

    async def close(self) -> None:
        """See `Database`."""
        self._file.close()


class _SqliteCursor:
    """See `Cursor`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def _execute(self, sql: str, values: Sequence[object]) -> sqlite3.Cursor:
        return self._connection.execute(sql.replace('{s}', ''), values)

    def all(self, sql: str, *values: object) -> list[Row]:
        return self._execute(sql, values).fetchall()

    def one(self, sql: str, *values: object) -> Row | None:
        return self._execute(sql, values).fetchone()

    def run(self, sql: str, *values: object) -> int:
        return self._execute(sql, values).rowcount

    def many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        self._connection.executemany(sql.replace('{s}', ''), rows)

    def index(self, number: int, owner: str, terms: str) -> None:
        self._connection.execute('INSERT INTO words (rowid, terms) VALUES (?, ?)', (number, _owned(owner, terms)))

    def unindex(self, number: int, owner: str, terms: str) -> None:
        sql = "INSERT INTO words (words, rowid, terms) VALUES ('delete', ?, ?)"
        self._connection.execute(sql, (number, _owned(owner, terms)))

    def matching(self, owner: str, terms: Sequence[str], limit: int) -> list[int]:
        match = ' AND '.join(f'"{owner}_{term}"' for term in terms)
        sql = 'SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?'
        return [number for (number,) in self._connection.execute(sql, (match, limit))]


def _owned(owner: str, terms: str) -> str:
    """The terms with their owner. So those of different users are different words, and each list is short."""
    return ' '.join(f'{owner}_{term}' for term in terms.split())
