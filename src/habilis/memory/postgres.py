"""`PostgresDatabase`: the memory in PostgreSQL: `postgresql://user@host/database`. Needs `habilis[postgres]`."""

import asyncio
import re
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from habilis.core.errors import SettingsError, StoreUnavailable
from habilis.journal.errors import store_unavailable
from habilis.journal.stores.postgres import SCHEMES, connection_text, is_passing
from habilis.journal.stores.server_address import parse_address
from habilis.memory.database import TABLES, VERSION, Cursor, Row

if TYPE_CHECKING:
    from psycopg import Connection, Error

T = TypeVar('T')

_TYPES = {'s': '{s}.', 'i': '', 'serial': 'BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY', 'bytes': 'BYTEA'}
_WORDS = "string_to_array(owner || ' ' || terms, ' ')"
_MORE_TABLES = f"""
CREATE INDEX words ON {{s}}.entries USING gin ({_WORDS}) WITH (fastupdate = off);
CREATE TABLE {{s}}.about (version BIGINT NOT NULL);
INSERT INTO {{s}}.about VALUES ({VERSION});
"""
_FORGOTTEN = ('entries', 'counts', 'vectors', 'tasks')
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('habilis memory ' || %s, 0))"
_HAS_TABLES = "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = %s AND tablename = 'about'"


class PostgresDatabase:
    """A `Database` in a schema, created on first use: `habilis_memory`, or the option `schema` of the URL."""

    def __init__(self, url: str) -> None:
        self._address = parse_address(url, schemes=SCHEMES, options=('schema',))
        self._schema = self._address.options.get('schema', 'habilis_memory')
        if not re.fullmatch('[A-Za-z_][A-Za-z0-9_]{0,62}', self._schema):
            msg = f'{self._schema!r} is not a valid schema name: use letters, digits and _'
            raise SettingsError(msg)
        self._conninfo = connection_text(self._address.url)
        self._connection: Connection | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f'<PostgresDatabase {self._address.shown} schema={self._schema}>'

    async def run(self, work: Callable[[Cursor], T]) -> T:
        """See `Database`."""
        return await asyncio.to_thread(self._run, work)

    async def read(self, work: Callable[[Cursor], T]) -> T:
        """See `Database`."""
        return await self.run(work)

    def _run(self, work: Callable[[Cursor], T]) -> T:
        from psycopg import Error

        with self._lock:
            try:
                connection = self._connected()
                with connection.transaction():
                    return work(_PostgresCursor(connection, self._schema))
            except (Error, OSError) as error:
                raise self._failed(error) from None

    def _connected(self) -> 'Connection':
        from psycopg import Connection

        if self._connection is None or self._connection.closed:
            self._connection = Connection.connect(self._conninfo, autocommit=True)
            self._ensure_tables(self._connection)
        return self._connection

    def _ensure_tables(self, connection: 'Connection') -> None:
        values = [self._schema]
        if connection.execute(_HAS_TABLES, values).fetchone() is None:
            with connection.transaction():
                connection.execute(_LOCK, values)
                if connection.execute(_HAS_TABLES, values).fetchone() is None:
                    statements = f'CREATE SCHEMA IF NOT EXISTS {{s}};{TABLES.format_map(_TYPES)}{_MORE_TABLES}'
                    connection.execute(statements.replace('{s}', f'"{self._schema}"').encode())
        row = connection.execute(f'SELECT max(version) FROM "{self._schema}".about'.encode()).fetchone()
        if row is None or row[0] != VERSION:
            connection.close()
            why = f'its tables have version {row and row[0]}, and this Habilis reads {VERSION}: use another schema'
            raise store_unavailable(self._address.shown, why, what='memory')

    def _failed(self, error: 'Error | OSError') -> StoreUnavailable:
        is_lost = self._connection is None or bool(self._connection.closed)
        why = self._address.describe_error(error)
        return store_unavailable(
            self._address.shown, why, passing=is_passing(error, why, is_lost=is_lost), what='memory'
        )

    async def purge(self) -> None:
        """See `Database`. The log of the server, and its backups, keep what was deleted for as long as it is set up."""
        await asyncio.to_thread(self._purge)

    def _purge(self) -> None:
        from psycopg import Error

        with self._lock:
            try:
                for table in _FORGOTTEN:
                    self._connected().execute(f'VACUUM FULL "{self._schema}".{table}'.encode())
            except (Error, OSError) as error:
                raise self._failed(error) from None

    async def close(self) -> None:
        """See `Database`."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()


class _PostgresCursor:
    """See `Cursor`."""

    def __init__(self, connection: 'Connection', schema: str) -> None:
        self._connection = connection
        self._schema = schema

    def _text(self, sql: str) -> bytes:
        return sql.replace('{s}', f'"{self._schema}".').replace('?', '%s').encode()

    def all(self, sql: str, *values: object) -> list[Row]:
        return self._connection.execute(self._text(sql), values).fetchall()

    def one(self, sql: str, *values: object) -> Row | None:
        return self._connection.execute(self._text(sql), values).fetchone()

    def run(self, sql: str, *values: object) -> int:
        return self._connection.execute(self._text(sql), values).rowcount

    def many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(self._text(sql), rows)

    def index(self, number: int, owner: str, terms: str) -> None:
        """The index of words is one of the table."""

    def unindex(self, number: int, owner: str, terms: str) -> None:
        """See `index`."""

    def matching(self, owner: str, terms: Sequence[str], limit: int) -> list[int]:
        sql = f'SELECT number FROM {{s}}entries WHERE owner = ? AND {_WORDS} @> ? ORDER BY number DESC LIMIT ?'
        return [number for (number,) in self.all(sql, owner, [owner, *terms], limit)]
