"""`PostgresStore`: runs in PostgreSQL, for many machines: `postgresql://user@host/database`. Needs `habilis[postgres]`.

An append is one round trip. Leases use the clock of the server. A connection pooler must be in session mode.
"""

import asyncio
import hashlib
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import copy
from typing import TYPE_CHECKING, Any

from habilis.core.codec import dump, parse
from habilis.core.errors import JournalError, SettingsError, StoreUnavailable
from habilis.core.narrowing import expect
from habilis.journal.contract import Durability, Lease, Record, RunFigures, RunInfo, Status
from habilis.journal.encoding import (
    check_blob,
    decode_info,
    decode_infos,
    decode_records,
    encode_info,
    encode_record,
    must_sync,
    run_figures,
    select_runs,
)
from habilis.journal.errors import check_new_run, lease_lost, run_busy, run_not_found, store_unavailable
from habilis.journal.stores import postgres_sql as sql
from habilis.journal.stores.server_address import StorePackageMissing, parse_address, parse_durability

if TYPE_CHECKING:
    from psycopg import AsyncConnection, Error

SCHEMES = ('postgresql', 'postgres')

_DEFAULTS = {
    'application_name': 'habilis',
    'connect_timeout': '10',
    'keepalives_idle': '30',
    'keepalives_interval': '10',
    'keepalives_count': '3',
    'tcp_user_timeout': '30000',
}
"""Default options of the connection; the URL may override them. Keepalives detect a server that has disappeared."""

_MAX_KEY_LENGTH = 500  # an index entry can have about 2,700 bytes
_PASSING = frozenset({'08', '40', '57'})
"""Classes of transient errors: connection, conflict, operator intervention."""
_ALSO_PASSING = frozenset({'53300', '55P03', '25006'})
"""More transient errors: too many connections, lock timeout, and a server that became a replica after a failover."""
_REFUSED = re.compile(
    r'authentication|password|no pg_hba|role "[^"]*" (does|is) not|database "[^"]*" does not', re.IGNORECASE
)


class PostgresStore:
    """A `Store` in a schema of a database. The schema is created on first use.

    Args:
        url: `postgresql://…`, with all options of libpq. The options below may be part of its query.
        schema: the name of the schema: letters, digits and `_`.
        durability: `full`: records survive a crash of the database server, which writes to its disk before it replies.
            `normal`: such a crash may lose the last records, about one second of them. In both cases records survive a
            crash of the client.
    """

    def __init__(self, url: str, *, schema: str = 'habilis', durability: Durability = 'full') -> None:
        self._address = parse_address(url, schemes=SCHEMES, options=('schema', 'durability'))
        self._schema = self._address.options.get('schema', schema)
        self._durability = parse_durability(self._address.options.get('durability', durability))
        if not re.fullmatch('[A-Za-z_][A-Za-z0-9_]{0,62}', self._schema):
            msg = f'{self._schema!r} is not a valid schema name: use letters, digits and _'
            raise SettingsError(msg)
        self._conninfo = connection_text(self._address.url)
        self._connection: AsyncConnection | None = None
        self._lock = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._texts: dict[str, bytes] = {}

    def __repr__(self) -> str:
        return f'<PostgresStore {self._address.shown} schema={self._schema}>'

    # The connection ---------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _connected(self) -> 'AsyncGenerator[AsyncConnection]':
        """The connection, for one task at a time. Its errors become `StoreUnavailable`."""
        from psycopg import Error

        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # a lock belongs to one event loop
            self._loop, self._lock = loop, asyncio.Lock()
        async with self._lock:
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = await self._connect()
                yield self._connection
            except (Error, OSError) as error:
                raise await self._failed(error) from None

    async def _connect(self) -> 'AsyncConnection':
        from psycopg import AsyncConnection

        connection = await AsyncConnection.connect(self._conninfo, autocommit=True)
        try:
            await connection.execute(sql.SESSION[self._durability].encode())
            await self._ensure_tables(connection)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _failed(self, error: 'Error | OSError') -> StoreUnavailable:
        """The error to raise. Drops the connection if it may be broken, so that the next call connects again."""
        state = getattr(error, 'sqlstate', None)
        why = self._address.describe_error(error)
        is_lost = self._connection is None or self._connection.closed or state == '25006'
        passing = is_passing(error, why, is_lost=is_lost)
        if is_lost:
            await self._drop()
        return store_unavailable(self._address.shown, why, passing=passing)

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _ensure_tables(self, connection: 'AsyncConnection') -> None:
        if await self._first(connection, sql.HAS_TABLES, [self._schema]) is None:
            async with connection.transaction():
                await self._first(connection, sql.LOCK, [self._schema])
                await self._create_tables(connection)
        (version,) = await self._first(connection, sql.READ_VERSION, []) or (None,)
        if not isinstance(version, int) or version > sql.VERSION:
            msg = (
                f'the journal at {self._address.shown} (schema {self._schema}) was written by a newer Habilis: its '
                f'tables have version {version}, this one reads {sql.VERSION}. Update Habilis'
            )
            raise JournalError(msg)

    async def _create_tables(self, connection: 'AsyncConnection') -> None:
        if await self._first(connection, sql.HAS_TABLES, [self._schema]) is not None:
            return
        if await self._first(connection, sql.HAS_SCHEMA, [self._schema]) is None:
            await connection.execute(self._text(sql.MAKE_SCHEMA))
        await connection.execute(self._text(sql.TABLES))

    def _text(self, statement: str) -> bytes:
        if statement not in self._texts:
            self._texts[statement] = statement.replace('{s}', f'"{self._schema}"').encode()
        return self._texts[statement]

    async def _first(
        self, connection: 'AsyncConnection', statement: str, values: Sequence[object] | Mapping[str, object]
    ) -> tuple[Any, ...] | None:
        cursor = await connection.execute(self._text(statement), values, prepare=True)
        return await cursor.fetchone()

    async def _row(self, statement: str, values: Sequence[object] | Mapping[str, object]) -> tuple[Any, ...] | None:
        async with self._connected() as connection:
            return await self._first(connection, statement, values)

    # Runs -------------------------------------------------------------------------------------------------------------

    async def create(
        self, info: RunInfo, records: Sequence[Record] = (), *, blobs: Mapping[str, bytes] | None = None
    ) -> bool:
        """See `Store`."""
        check_new_run(info.run, records)
        lines = [(record.seq, encode_record(record)) for record in records]
        values = {'run': _key(info.run), **_all_values(info, blobs), **_new(lines)}
        return await self._row(sql.CREATE, values) is not None

    async def info(self, run: str) -> RunInfo:
        """See `Store`."""
        row = await self._row(sql.INFO, [_key(run)])
        if row is None:
            raise run_not_found(run)
        return decode_info(row[0])

    async def runs(
        self, *, user: str | None = None, session: str | None = None, status: Status | None = None
    ) -> list[RunInfo]:
        """See `Store`."""
        filters = {
            'of_user': None if user is None else _key(user),
            'of_session': None if session is None else _key(session),
            'status': status,
        }
        given = {column: value for column, value in filters.items() if value is not None}
        statement = sql.RUNS + ' WHERE ' * bool(given) + ' AND '.join(f'{column} = %({column})s' for column in given)
        async with self._connected() as connection:
            cursor = await connection.execute(self._text(statement), given)
            rows = await cursor.fetchall()
        return select_runs(decode_infos((row[0], row[1]) for row in rows), user=user, session=session, status=status)

    async def figures(self, *, user: str | None = None, since: float, interval: float, slowest: int = 10) -> RunFigures:
        """See `Store`."""
        given = {'user': None if user is None else _key(user), 'since': since}
        async with self._connected() as connection:
            cursor = await connection.execute(self._text(sql.COUNTS), {**given, 'interval': interval})
            counts = await cursor.fetchall()
            cursor = await connection.execute(self._text(sql.SLOWEST), {**given, 'slowest': slowest})
            return run_figures(counts, [row[0] for row in await cursor.fetchall()])

    async def delete(self, run: str) -> None:
        """See `Store`."""
        key = [_key(run)]
        async with self._connected() as connection, connection.transaction():
            found = await self._first(connection, sql.DELETE, key)
            if found is not None:
                await connection.execute(self._text(sql.DELETE_LINES), key)
                await connection.execute(self._text(sql.DELETE_BLOBS), key)
        if found is None:
            raise run_not_found(run)

    # Leases -----------------------------------------------------------------------------------------------------------

    async def claim(self, run: str, *, owner: str, seconds: float, over: int | None = None) -> Lease:
        """See `Store`."""
        values = {'run': _key(run), 'owner': _escaped(owner), 'seconds': seconds, 'over': over}
        row = await self._row(sql.CLAIM, values)
        if row is None:
            raise run_busy(run, (await self.lease(run)).owner)
        return Lease(epoch=row[0], owner=owner, until=row[1])

    async def release(self, run: str, *, epoch: int) -> None:
        """See `Store`."""
        if await self._row(sql.RELEASE, {'run': _key(run), 'epoch': epoch}) is None:
            raise run_not_found(run)

    async def lease(self, run: str) -> Lease:
        """See `Store`."""
        row = await self._row(sql.LEASE, [_key(run)])
        if row is None:
            raise run_not_found(run)
        return Lease(epoch=row[0], owner=expect(parse(f'"{row[1]}"'), str), until=row[2])

    # Records ----------------------------------------------------------------------------------------------------------

    async def append(
        self,
        run: str,
        records: Sequence[Record],
        *,
        epoch: int,
        info: RunInfo | None = None,
        blobs: Mapping[str, bytes] | None = None,
    ) -> None:
        """See `Store`."""
        lines = [(record.seq, encode_record(record)) for record in records]
        sync = self._durability == 'normal' and must_sync(records)
        if sync:
            done = None
        elif len(lines) == 1 and info is None and not blobs:
            ((seq, line),) = lines
            values = {'run': _key(run), 'epoch': epoch, 'seq': seq, 'line': line}
            done = await self._row(sql.APPEND_LINE, values)
        else:
            values = {'run': _key(run), 'epoch': epoch, **_all_values(info, blobs), **_new(lines)}
            done = await self._row(sql.APPEND, values) if _follow(lines) else None
        if done is None:
            await self._append_missing(run, lines, {'epoch': epoch, **_all_values(info, blobs)}, sync=sync)

    async def _append_missing(
        self, run: str, lines: Sequence[tuple[int, str]], values: dict[str, object], *, sync: bool
    ) -> None:
        """Append those records that do not exist yet. `sync`: wait for the disk of the server."""
        async with self._connected() as connection, connection.transaction():
            if sync:
                await connection.execute(sql.SYNC.encode())
            row = await self._first(connection, sql.LOCK_RUN, [_key(run)])
            if row is not None and row[0] == values['epoch']:
                missing = await self._missing(connection, run, lines, last=row[1])
                if missing is not None:
                    await self._first(connection, sql.APPEND, {**values, 'run': _key(run), **_new(missing)})
                    return
        raise run_not_found(run) if row is None else lease_lost(run)

    async def _missing(
        self, connection: 'AsyncConnection', run: str, lines: Sequence[tuple[int, str]], *, last: int
    ) -> list[tuple[int, str]] | None:
        """The lines after number `last`; None if there is a gap, or different lines exist."""
        known: dict[int, str] = {}
        if lines and 0 < lines[0][0] <= last:
            after = lines[0][0] - 1
            cursor = await connection.execute(self._text(sql.LINES), [_key(run), after])
            known = dict(enumerate((row[0] for row in await cursor.fetchall()), after + 1))
        missing: list[tuple[int, str]] = []
        for seq, line in lines:
            if seq == last + len(missing) + 1:
                missing.append((seq, line))
                known[seq] = line
            elif known.get(seq) != line:
                return None
        return missing

    async def load(self, run: str, *, after: int = 0) -> list[Record]:
        """See `Store`."""
        after = max(after, 0)
        async with self._connected() as connection:
            cursor = await connection.execute(self._text(sql.LINES), [_key(run), after], prepare=True)
            lines: list[str] = [row[0] for row in await cursor.fetchall()]
        if not lines:
            await self.info(run)
        return decode_records(lines, run=run, after=after)

    async def blob(self, run: str, digest: str) -> bytes:
        """See `Store`."""
        async with self._connected() as connection:
            cursor = await connection.execute(self._text(sql.BLOB), [_key(run), _key(digest)], binary=True)
            row = await cursor.fetchone()
        if row is None:
            await self.info(run)
        return check_blob(None if row is None else row[0], digest, run=run)

    def for_another_loop(self) -> 'PostgresStore':
        """See `Store`."""
        other = copy(self)
        other._connection, other._loop = None, None
        return other

    async def close(self) -> None:
        """See `Store`. The next call connects again."""
        await self._drop()


def _follow(lines: Sequence[tuple[int, str]]) -> bool:
    return all(seq == lines[0][0] + number for number, (seq, _) in enumerate(lines))


def _new(lines: Sequence[tuple[int, str]]) -> dict[str, object]:
    after = lines[0][0] - 1 if lines else None
    return {'after': after, 'count': len(lines), 'lines': [line for _, line in lines]}


def _all_values(info: RunInfo | None, blobs: Mapping[str, bytes] | None) -> dict[str, object]:
    blobs = blobs or {}
    return {
        'info': None if info is None else encode_info(info),
        'user': None if info is None else _key(info.user),
        'session': None if info is None else _key(info.session),
        'status': None if info is None else info.status,
        'digests': [_key(digest) for digest in blobs],
        'blobs': list(blobs.values()),
    }


def _key(name: str) -> str:
    """A name as an index key: unchanged if it is short and printable ASCII, otherwise escaped and perhaps hashed."""
    text = name if name.isascii() and name.isprintable() and '"' not in name and '\\' not in name else _escaped(name)
    if len(text) <= _MAX_KEY_LENGTH:
        return text
    return f'{text[:100]}"{hashlib.sha256(text.encode()).hexdigest()}'  # unique: no other key has an unescaped quote


def _escaped(text: str) -> str:
    return dump(text)[1:-1]


def is_passing(error: 'Error | OSError', why: str, *, is_lost: bool) -> bool:
    """Whether an error may pass by itself. `is_lost`: there is no connection."""
    state = getattr(error, 'sqlstate', None)
    passing = isinstance(error, OSError) or state in _ALSO_PASSING or (state or '')[:2] in _PASSING
    return passing or (is_lost and state is None and not _REFUSED.search(why))


def connection_text(url: str) -> str:
    """The connection string of a URL, with default options. Raises `StorePackageMissing` and `SettingsError`."""
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict, make_conninfo
    except ImportError as error:
        raise StorePackageMissing.of('PostgresStore', extra='postgres', error=error) from error
    try:
        given = conninfo_to_dict(url)
    except ProgrammingError:  # its message may contain a part of the password
        msg = (
            'the postgresql:// URL of the journal is not valid; write postgresql://user:password@host:5432/database, '
            'with options of libpq, schema and durability in its query'
        )
        raise SettingsError(msg) from None
    return make_conninfo('', **{**_DEFAULTS, **given})
