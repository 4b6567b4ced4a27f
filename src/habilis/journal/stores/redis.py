"""`RedisStore`: runs in Redis or Valkey, for many machines: `redis://host:6379/0`. Needs `habilis[redis]`.

Redis keeps data in memory. Runs always survive a crash of the client. They survive a restart of the server only with
`appendonly yes`, and a crash of its machine only with `appendfsync always` too; that includes the marks of steps that
must not be repeated. The server must not evict keys (`maxmemory-policy noeviction`). `RedisStore.warnings` checks these
settings. A cluster is not supported.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import copy
from typing import TYPE_CHECKING, Protocol, cast

from habilis.core.errors import JournalError, SettingsError, StoreUnavailable
from habilis.core.narrowing import expect, expect_list, list_of, optional
from habilis.journal.contract import Lease, Record, RunFigures, RunInfo, Status
from habilis.journal.encoding import (
    check_blob,
    decode_info,
    decode_infos,
    decode_records,
    encode_info,
    encode_record,
    select_runs,
)
from habilis.journal.errors import check_new_run, lease_lost, run_busy, run_not_found, store_unavailable
from habilis.journal.figures import count_runs
from habilis.journal.stores import redis_scripts as scripts
from habilis.journal.stores.server_address import StorePackageMissing, parse_address

if TYPE_CHECKING:
    from redis.exceptions import RedisError

SCHEMES = ('redis', 'rediss', 'unix')

_PAGE_SIZE = 1000
"""Maximum number of runs or records per request, because Redis serves one request at a time."""

_REPLY_SECONDS = 60.0
"""Timeout for a reply of the server."""

_PASSING = ('READONLY', 'NOREPLICAS', 'TRYAGAIN', 'CLUSTERDOWN', 'MASTERDOWN', 'LOADING', 'BUSY')
"""Transient error replies: during a failover, a restart or a long script."""


class _RedisConnection(Protocol):
    """The part of a connection of `redis.asyncio` that is used. The client class would take twice as long."""

    async def send_command(self, *args: object) -> None: ...

    async def read_response(self) -> object: ...

    async def disconnect(self) -> None: ...


class RedisStore:
    """A `Store` in a Redis server.

    Args:
        url: `redis://…`, `rediss://…` with TLS, or `unix:///path/of/the.sock`, with all options of redis-py.
            `prefix` may be part of its query.
        prefix: the prefix of all keys.
    """

    def __init__(self, url: str, *, prefix: str = 'habilis:') -> None:
        self._address = parse_address(url, schemes=SCHEMES, options=('prefix',))
        self._prefix = _bytes(self._address.options.get('prefix', prefix))
        _new_connection(self._address.url)  # raises for an invalid URL now, not at the first append
        self._connection: _RedisConnection | None = None
        self._lock = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        return f'<RedisStore {self._address.shown} prefix={self._prefix.decode("utf-8", "replace")}>'

    # The connection ---------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[_RedisConnection]:
        """The connection, for one task at a time. Its errors become `StoreUnavailable`."""
        from redis.exceptions import RedisError

        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # streams belong to one event loop
            self._loop, self._lock, self._connection = loop, asyncio.Lock(), None
        async with self._lock:
            try:
                if self._connection is None:
                    self._connection = _new_connection(self._address.url)
                    await self._check_version(self._connection)
                yield self._connection
            except (RedisError, OSError) as error:
                raise await self._failed(error) from None

    async def _failed(self, error: 'RedisError | OSError') -> StoreUnavailable:
        """The error to raise. Drops the connection if it may be broken, so that the next call connects again."""
        from redis import exceptions

        if isinstance(error.__cause__, exceptions.RedisError):  # wrapped while connecting
            error = error.__cause__
        why = self._address.describe_error(error)
        code = str(getattr(error, 'status_code', None) or why).split(' ', maxsplit=1)[0]
        is_disconnected = isinstance(error, (exceptions.ConnectionError, exceptions.TimeoutError, OSError))
        is_refused = isinstance(error, (exceptions.AuthenticationError, exceptions.AuthorizationError))
        if is_disconnected or code == 'READONLY':
            await self._drop()
        if isinstance(error, exceptions.OutOfMemoryError):
            why = f'Redis is out of memory (maxmemory is reached): {why}'
        if isinstance(error, exceptions.ReadOnlyError):
            why = f'the server is a read-only replica; the journal needs the primary: {why}'
        return store_unavailable(
            self._address.shown, why, passing=(is_disconnected and not is_refused) or code in _PASSING
        )

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.disconnect()

    async def _check_version(self, connection: _RedisConnection) -> None:
        found = optional(await _ask(connection, 'GET', self._prefix + b'version'), bytes)
        if found is not None and not (found.isdigit() and int(found) <= scripts.VERSION):
            await self._drop()
            msg = (
                f'the journal at {self._address.shown} was written by a newer Habilis: its layout has version '
                f'{found.decode("utf-8", "replace")}, this one reads {scripts.VERSION}. Update Habilis'
            )
            raise JournalError(msg)

    async def _do(self, *command: object) -> object:
        async with self._connected() as connection:
            return await _ask(connection, *command)

    async def _run(self, script: str, run: str, *arguments: object) -> object:
        from redis.exceptions import NoScriptError

        keys = (self._key('run:', run), self._key('lines:', run), self._key('blobs:', run), self._prefix + b'runs')
        async with self._connected() as connection:
            try:
                return await _ask(connection, 'EVALSHA', _sha(script), len(keys), *keys, *arguments)
            except NoScriptError:  # the server does not have the script yet, or has restarted
                return await _ask(connection, 'EVAL', script, len(keys), *keys, *arguments)

    def _key(self, kind: str, name: str) -> bytes:
        return self._prefix + kind.encode() + _bytes(name)

    # Runs -------------------------------------------------------------------------------------------------------------

    async def create(
        self, info: RunInfo, records: Sequence[Record] = (), *, blobs: Mapping[str, bytes] | None = None
    ) -> bool:
        """See `Store`."""
        check_new_run(info.run, records)
        values: list[object] = [_bytes(info.run), encode_info(info), _bytes(info.user), info.created, len(records)]
        values += [encode_record(record) for record in records]
        for digest, data in (blobs or {}).items():
            values += (_bytes(digest), data)
        return await self._run(scripts.CREATE, info.run, self._prefix, scripts.VERSION, *values) == 1

    async def info(self, run: str) -> RunInfo:
        """See `Store`."""
        text = optional(await self._do('HGET', self._key('run:', run), 'info'), bytes)
        if text is None:
            raise run_not_found(run)
        return decode_info(text.decode())

    async def runs(
        self, *, user: str | None = None, session: str | None = None, status: Status | None = None
    ) -> list[RunInfo]:
        """See `Store`."""
        index = self._prefix + b'runs' if user is None else self._key('user:', user)
        names = list_of(bytes, await self._do('ZRANGE', index, 0, -1))
        infos: list[RunInfo] = []
        for start in range(0, len(names), _PAGE_SIZE):
            keys = [self._prefix + b'run:' + name for name in names[start : start + _PAGE_SIZE]]
            texts = _optional_bytes(await self._do('EVAL', scripts.INFOS, len(keys), *keys))
            found = zip(names[start:], texts, strict=False)  # without a text if it was deleted meanwhile
            infos += decode_infos((name.decode(errors='replace'), text.decode()) for name, text in found if text)
        return select_runs(infos, user=user, session=session, status=status)

    async def figures(self, *, user: str | None = None, since: float, interval: float, slowest: int = 10) -> RunFigures:
        """See `Store`."""
        return count_runs(await self.runs(user=user), since=since, interval=interval, slowest=slowest)

    async def delete(self, run: str) -> None:
        """See `Store`."""
        if await self._run(scripts.DELETE, run, self._prefix, _bytes(run)) == 0:
            raise run_not_found(run)

    # Leases -----------------------------------------------------------------------------------------------------------

    async def claim(self, run: str, *, owner: str, seconds: float, over: int | None = None) -> Lease:
        """See `Store`."""
        claimant = _bytes(owner)
        over_ = b'' if over is None else over
        _, *found = expect_list(await self._run(scripts.CLAIM, run, claimant, float(seconds), over_))
        if not found:
            raise run_not_found(run)
        epoch, holder, until = list_of(bytes, found)
        if holder != claimant:
            raise run_busy(run, _text(holder))
        return Lease(epoch=int(epoch), owner=owner, until=float(until))

    async def release(self, run: str, *, epoch: int) -> None:
        """See `Store`."""
        if await self._run(scripts.RELEASE, run, epoch) == 0:
            raise run_not_found(run)

    async def lease(self, run: str) -> Lease:
        """See `Store`."""
        found = await self._do('HMGET', self._key('run:', run), 'epoch', 'owner', 'until')
        epoch, owner, until = _optional_bytes(found)
        if epoch is None or owner is None or until is None:
            raise run_not_found(run)
        return Lease(epoch=int(epoch), owner=_text(owner), until=float(until))

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
        values: list[object] = [epoch, len(records), len(blobs or ())]
        for record in records:
            values += (record.seq, encode_record(record))
        for digest, data in (blobs or {}).items():
            values += (_bytes(digest), data)
        if info is not None:
            values += (self._prefix, _bytes(run), encode_info(info), _bytes(info.user), info.created)
        done = await self._run(scripts.APPEND, run, *values)
        if done != 0:
            raise run_not_found(run) if done == 1 else lease_lost(run)

    async def load(self, run: str, *, after: int = 0) -> list[Record]:
        """See `Store`."""
        after = max(after, 0)
        lines: list[bytes] = []
        count = _PAGE_SIZE
        while count == _PAGE_SIZE:
            exists, counted, text = expect_list(await self._run(scripts.LOAD, run, after + len(lines), _PAGE_SIZE))
            count = expect(counted, int)
            if not exists:
                raise run_not_found(run)
            lines += expect(text, bytes).split(b'\n') if count else []
        return decode_records(lines, run=run, after=after)

    async def blob(self, run: str, digest: str) -> bytes:
        """See `Store`."""
        data = optional(await self._do('HGET', self._key('blobs:', run), _bytes(digest)), bytes)
        if data is None:
            await self.info(run)
        return check_blob(data, digest, run=run)

    # Warnings ---------------------------------------------------------------------------------------------------------

    async def warnings(self) -> list[str]:
        """Settings of the server that put runs at risk."""
        text = expect(await self._do('INFO'), bytes).decode('utf-8', 'replace')
        found = {name: value for name, _, value in (line.partition(':') for line in text.splitlines())}
        problems: list[str] = []
        if found.get('aof_enabled', '0') == '0':
            problems.append('Redis does not write changes to its disk at once: set `appendonly yes`')
        if found.get('maxmemory', '0') != '0' and found.get('maxmemory_policy') != 'noeviction':
            problems.append('Redis evicts data when its memory is full: set `maxmemory-policy noeviction`')
        return problems

    def for_another_loop(self) -> 'RedisStore':
        """See `Store`."""
        other = copy(self)
        other._connection, other._loop = None, None
        return other

    async def close(self) -> None:
        """See `Store`. The next call connects again."""
        await self._drop()


async def _ask(connection: _RedisConnection, *command: object) -> object:
    """Send a command and return the reply. Connects if needed; disconnects if cancelled before the reply."""
    async with asyncio.timeout(_REPLY_SECONDS):
        await connection.send_command(*command)
        return await connection.read_response()


def _new_connection(url: str) -> _RedisConnection:
    """A connection that connects on first use. Raises `StorePackageMissing` and `SettingsError`."""
    try:
        from redis.asyncio import ConnectionPool
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff
    except ImportError as error:
        raise StorePackageMissing.of('RedisStore', extra='redis', error=error) from error
    try:
        # No automatic retries: a run that the first try created would seem to belong to another process.
        options = {'retry': Retry(NoBackoff(), 0), 'protocol': 2, 'socket_timeout': None}
        pool = ConnectionPool.from_url(url, **options)  # pyright: ignore[reportUnknownMemberType]
        return cast('_RedisConnection', pool.make_connection())
    except (ValueError, TypeError):  # its message may contain a part of the password
        msg = (
            'the URL of the journal is not valid; write redis://:password@host:6379/0, rediss://… with TLS, or '
            'unix:///path/of/the.sock, with options of redis-py and prefix in its query'
        )
        raise SettingsError(msg) from None


def _sha(script: str) -> str:
    found = _shas.get(script)
    if found is None:
        found = _shas[script] = hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()
    return found


_shas: dict[str, str] = {}


def _bytes(text: str) -> bytes:
    return text.encode('utf-8', 'surrogatepass')


def _optional_bytes(reply: object) -> list[bytes | None]:
    return [optional(item, bytes) for item in expect_list(reply)]


def _text(data: bytes) -> str:
    return data.decode('utf-8', 'surrogatepass')
