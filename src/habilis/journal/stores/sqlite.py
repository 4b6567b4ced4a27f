"""`SqliteStore`: runs in one SQLite file, the default. Many processes of one machine can share it.

The file is in WAL mode, which needs a local disk, not a network file system. An append is one statement that runs on
the event loop, because handing it to a thread would take longer.
"""

import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from habilis.core.narrowing import expect, number
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
from habilis.journal.errors import check_new_run, lease_lost, run_busy, run_not_found
from habilis.journal.leases.claims import next_lease
from habilis.journal.stores.sqlite_file import SqliteFile

_MAX_INTEGER = 2**63 - 1

_CREATE = """
INSERT OR IGNORE INTO runs (user, session, status, created, info, run, epoch, owner, claimed, until)
VALUES (?, ?, ?, ?, ?, ?, 0, '', 0, 0)
"""
_INSERT = 'INSERT INTO records (run, seq, line) VALUES (?, ?, ?)'
_ADD = """
INSERT OR IGNORE INTO records (run, seq, line)
SELECT run, ?, ? FROM runs
WHERE run = ? AND epoch = ? AND (? = 1 OR EXISTS (SELECT 1 FROM records WHERE run = ? AND seq = ? - 1))
"""

_TAKE = """
UPDATE runs SET epoch = epoch + 1, owner = ?, claimed = ?, until = ?
WHERE run = ? AND epoch = ? AND (owner <> ? OR until = 0)
"""
_RELEASE = 'UPDATE runs SET until = 0 WHERE run = ? AND epoch = ?'

_COUNTED = """
WITH counted AS (
    SELECT status, info, json_extract(info, '$.updated') AS updated FROM runs
    WHERE (:user IS NULL OR user = :user) AND CASE WHEN json_valid(info)
        THEN status IN ('queued', 'running', 'waiting') OR json_extract(info, '$.updated') >= :since END
)"""
_COUNTS = f"""{_COUNTED}
SELECT status, ifnull(json_extract(info, '$.ended'), ''), max(0, CAST((updated - :since) / :interval AS INTEGER)),
    count(*), total(json_extract(info, '$.cost')), total(json_extract(info, '$.seconds'))
FROM counted GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""
_SLOWEST = f"""{_COUNTED}
SELECT info FROM counted ORDER BY json_extract(info, '$.seconds') DESC LIMIT :slowest
"""


class SqliteStore:
    """A `Store` in a file, for many event loops, threads and processes; safe after a fork. Opened on first use."""

    def __init__(self, path: str | os.PathLike[str], *, durability: Durability = 'normal') -> None:
        """The file and its folders are created on first use; only the owner can read the file."""
        self.path = Path(os.path.abspath(path))
        self._file = SqliteFile(self.path, full=durability == 'full')

    def __repr__(self) -> str:
        return f'SqliteStore({str(self.path)!r})'

    async def _row(self, run: str, columns: str) -> tuple[object, ...]:
        """Columns of a run in the table of runs."""
        return await self._file.do(lambda connection: _row_of(connection, run, columns))

    # Runs -------------------------------------------------------------------------------------------------------------

    async def create(
        self, info: RunInfo, records: Sequence[Record] = (), *, blobs: Mapping[str, bytes] | None = None
    ) -> bool:
        """See `Store`."""
        check_new_run(info.run, records)
        rows = [(_key(info.run), record.seq, encode_record(record)) for record in records]

        def work(connection: sqlite3.Connection) -> bool:
            if not connection.execute(_CREATE, (*_columns(info), _key(info.run))).rowcount:
                return False
            connection.executemany(_INSERT, rows)
            _keep(connection, info.run, blobs)
            return True

        return await self._file.change(work)

    async def info(self, run: str) -> RunInfo:
        """See `Store`."""
        (text,) = await self._row(run, 'info')
        return decode_info(str(text))

    async def runs(
        self, *, user: str | None = None, session: str | None = None, status: Status | None = None
    ) -> list[RunInfo]:
        """See `Store`."""
        filters = {'user': user, 'session': session, 'status': status}
        given = {name: _key(value) for name, value in filters.items() if value is not None}
        where = f'WHERE {" AND ".join(f"{name} = :{name}" for name in given)}' if given else ''
        sql = f'SELECT run, info FROM runs {where}'

        def work(connection: sqlite3.Connection) -> list[tuple[object, object]]:
            return connection.execute(sql, given).fetchall()

        rows = await self._file.do(work)
        return select_runs(decode_infos((run, str(text)) for run, text in rows))

    async def figures(self, *, user: str | None = None, since: float, interval: float, slowest: int = 10) -> RunFigures:
        """See `Store`."""
        given = {'user': None if user is None else _key(user), 'since': since}

        def work(connection: sqlite3.Connection) -> tuple[list[tuple[Status, str, int, int, float, float]], list[str]]:
            counts = connection.execute(_COUNTS, {**given, 'interval': interval}).fetchall()
            longest = connection.execute(_SLOWEST, {**given, 'slowest': slowest}).fetchall()
            return counts, [text for (text,) in longest]

        return run_figures(*await self._file.do(work))

    async def delete(self, run: str) -> None:
        """See `Store`."""
        key = _key(run)

        def work(connection: sqlite3.Connection) -> None:
            if not connection.execute('DELETE FROM runs WHERE run = ?', (key,)).rowcount:
                raise run_not_found(run)
            connection.execute('DELETE FROM records WHERE run = ?', (key,))
            connection.execute('DELETE FROM blobs WHERE run = ?', (key,))

        await self._file.change(work)

    # Leases -----------------------------------------------------------------------------------------------------------

    async def claim(self, run: str, *, owner: str, seconds: float, over: int | None = None) -> Lease:
        """See `Store`."""
        key, given = _key(run), _key(owner)

        def take(connection: sqlite3.Connection) -> Lease | None:
            """Claim the run over that epoch, in one statement. None if that was not possible."""
            now = time.time()
            taken = connection.execute(_TAKE, (given, now, now + seconds, key, over, given)).rowcount
            return Lease(epoch=(over or 0) + 1, owner=owner, until=now + seconds) if taken else None

        if over is not None and _can_be_stored(over) and (lease := await self._file.do(take)) is not None:
            return lease

        def work(connection: sqlite3.Connection) -> Lease:
            row = _row_of(connection, run, 'epoch, owner, until, claimed')
            held, now = _lease(row), time.time()
            lease = next_lease(held, now=now, claimed=number(row[3]), owner=owner, seconds=seconds, over=over)
            if lease is None:
                raise run_busy(run, held.owner)
            connection.execute(
                'UPDATE runs SET epoch = ?, owner = ?, claimed = ?, until = ? WHERE run = ?',
                (lease.epoch, given, now, lease.until, key),
            )
            return lease

        return await self._file.change(work)

    async def release(self, run: str, *, epoch: int) -> None:
        """See `Store`."""
        key = (_key(run), epoch)
        if not (
            _can_be_stored(epoch) and await self._file.do(lambda connection: connection.execute(_RELEASE, key).rowcount)
        ):
            await self._row(run, 'epoch')  # raises if the run does not exist

    async def lease(self, run: str) -> Lease:
        """See `Store`."""
        return _lease(await self._row(run, 'epoch, owner, until'))

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
        rows = [(_key(run), record.seq, encode_record(record)) for record in records]
        sync = must_sync(records)
        is_usual = bool(rows) and _can_be_stored(epoch) and all(_can_be_stored(row[1]) for row in rows)

        def add_next(connection: sqlite3.Connection) -> bool:
            """Add the records, each in one statement. False if that was not possible."""
            return is_usual and all(
                connection.execute(_ADD, (seq, line, key, epoch, seq, key, seq)).rowcount == 1
                for key, seq, line in rows
            )

        if len(rows) == 1 and info is None and not blobs and await self._file.do(add_next, sync=sync):
            return

        def work(connection: sqlite3.Connection) -> None:
            if not add_next(connection):
                if _row_of(connection, run, 'epoch') != (epoch,):
                    raise lease_lost(run)
                _add(connection, run, rows)
            _keep(connection, run, blobs)
            if info is not None:
                sql = 'UPDATE runs SET user = ?, session = ?, status = ?, created = ?, info = ? WHERE run = ?'
                connection.execute(sql, (*_columns(info), _key(run)))

        await self._file.change(work, sync=sync)

    async def load(self, run: str, *, after: int = 0) -> list[Record]:
        """See `Store`."""
        after = min(max(after, 0), _MAX_INTEGER)
        sql = 'SELECT CAST(line AS BLOB) FROM records WHERE run = ? AND seq > ? ORDER BY seq'  # bytes are faster

        def work(connection: sqlite3.Connection) -> list[tuple[bytes | None]]:
            _row_of(connection, run, 'epoch')
            return connection.execute(sql, (_key(run), after)).fetchall()

        rows = await self._file.do(work)
        return decode_records([line or b'' for (line,) in rows], run=run, after=after)

    async def blob(self, run: str, digest: str) -> bytes:
        """See `Store`."""
        sql = 'SELECT data FROM blobs WHERE run = ? AND digest = ?'
        key = (_key(run), _key(digest))
        row = await self._file.do(lambda connection: connection.execute(sql, key).fetchone())
        if row is None:
            await self._row(run, 'epoch')  # raises if the run itself does not exist
        data: object = row[0] if row else None
        return check_blob(data if isinstance(data, bytes) else None, digest, run=run)

    def for_another_loop(self) -> 'SqliteStore':
        """See `Store`."""
        return self

    async def close(self) -> None:
        """See `Store`. The next use opens it again."""
        self._file.close()


def _row_of(connection: sqlite3.Connection, run: str, columns: str) -> tuple[object, ...]:
    row = connection.execute(f'SELECT {columns} FROM runs WHERE run = ?', (_key(run),)).fetchone()
    if row is None:
        raise run_not_found(run)
    return row


def _add(connection: sqlite3.Connection, run: str, rows: Sequence[tuple[str | bytes, int, str]]) -> None:
    """Insert the rows that do not exist yet. Raises `LeaseLost` if there is a gap, or different rows exist."""
    if not rows:
        return
    (last,) = connection.execute('SELECT ifnull(max(seq), 0) FROM records WHERE run = ?', rows[0][:1]).fetchone()
    first = rows[0][1]
    if not 1 <= first <= last + 1 or any(row[1] != seq for seq, row in enumerate(rows, first)):
        raise lease_lost(run)
    sql = 'SELECT run, seq, line FROM records WHERE run = ? AND seq BETWEEN ? AND ? ORDER BY seq'
    known = connection.execute(sql, (*rows[0][:2], rows[-1][1])).fetchall()
    if known != rows[: len(known)]:
        raise lease_lost(run)
    connection.executemany(_INSERT, rows[len(known) :])


def _keep(connection: sqlite3.Connection, run: str, blobs: Mapping[str, bytes] | None) -> None:
    if blobs:
        named = [(_key(run), _key(digest), data) for digest, data in blobs.items()]
        connection.executemany('INSERT OR IGNORE INTO blobs (run, digest, data) VALUES (?, ?, ?)', named)


def _can_be_stored(number: int) -> bool:
    """Whether it can be the number of a record, or an epoch. SQLite has no larger ones."""
    return 0 <= number < _MAX_INTEGER


def _key(text: str) -> str | bytes:
    """A text as a column value: as bytes if it has lone surrogates, which SQLite cannot store as text."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode('utf-8', 'surrogatepass')
    return text


def _unkey(value: object) -> str:
    return value.decode('utf-8', 'surrogatepass') if isinstance(value, bytes) else str(value)


def _columns(info: RunInfo) -> tuple[object, ...]:
    return _key(info.user), _key(info.session), info.status, info.created, encode_info(info)


def _lease(row: tuple[object, ...]) -> Lease:
    epoch, owner, until = row[:3]
    return Lease(epoch=expect(epoch, int), owner=_unkey(owner), until=number(until))
