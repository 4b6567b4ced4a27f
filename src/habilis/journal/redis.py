"""Runs in Redis, or Valkey, for many machines: `redis://host:6379/0`. Needs `habilis[redis]`.

Redis keeps what it has in memory. Runs survive its own restart only if it is persistent (`appendonly yes`), and a crash
of its machine only with `appendfsync always` too; the death of our process they survive in any case. It must not evict
keys (`maxmemory-policy noeviction`). `RedisStore.warnings` looks at these settings. A cluster is not supported.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol, cast

from habilis.core.errors import JournalError, SettingsError, StoreUnavailable
from habilis.journal import redis_scripts as scripts
from habilis.journal.contract import Lease, Record, RunInfo, Status
from habilis.journal.lines import (
    checked_blob,
    from_lines,
    info_from_text,
    info_to_text,
    infos_from,
    newest_first,
    to_line,
)
from habilis.journal.refusals import busy, lost, no_name, no_run, unavailable
from habilis.journal.servers import PackageMissing, read_address

if TYPE_CHECKING:
    from redis.exceptions import RedisError

SCHEMES = ('redis', 'rediss', 'unix')

_AT_ONCE = 1000
"""How many runs, or records, are read with one request: while Redis answers it, nobody else is served."""

_PATIENCE = 60.0
"""Seconds after which a server that does not answer counts as lost."""

_PASSING = ('READONLY', 'NOREPLICAS', 'TRYAGAIN', 'CLUSTERDOWN', 'MASTERDOWN', 'LOADING', 'BUSY')
"""Answers of a server that may be another one soon: after a failover, a restart, a long script."""


class _Connection(Protocol):
    """What is used of a connection of `redis.asyncio`: its client would take twice as long for the same."""

    async def send_command(self, *args: object) -> None: ...

    async def read_response(self) -> object: ...

    async def disconnect(self) -> None: ...


class RedisStore:
    """A `Store` in a Redis server.

    Args:
        url: `redis://…`, `rediss://…` with TLS, or `unix:///path/of/the.sock`, with everything that redis-py takes.
            `prefix` may be part of its query.
        prefix: of all keys; what belongs to other programs is left alone.
    """

    def __init__(self, url: str, *, prefix: str = 'habilis:') -> None:
        self._address = read_address(url, schemes=SCHEMES, options=('prefix',))
        self._prefix = _bytes(self._address.options.get('prefix', prefix))
        _new_connection(self._address.url)  # what is wrong with the address is said here, not at the first append
        self._connection: _Connection | None = None
        self._lock = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        return f'<RedisStore {self._address.shown} prefix={self._prefix.decode("utf-8", "replace")}>'

    # The connection ---------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[_Connection]:
        """The connection, for one task at a time. What goes wrong with it becomes `StoreUnavailable`."""
        from redis.exceptions import RedisError

        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # the streams of another loop are of no use in this one
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
        """What to say; the next call connects anew if this connection may be of no use any more."""
        from redis import exceptions

        if isinstance(error.__cause__, exceptions.RedisError):  # wrapped while connecting
            error = error.__cause__
        why = self._address.tell(error)
        code = str(getattr(error, 'status_code', None) or why).split(' ', maxsplit=1)[0]
        away = isinstance(error, (exceptions.ConnectionError, exceptions.TimeoutError, OSError))
        known = isinstance(error, (exceptions.AuthenticationError, exceptions.AuthorizationError))
        if away or code == 'READONLY':
            await self._drop()
        if isinstance(error, exceptions.OutOfMemoryError):
            why = f'Redis has no memory left (its maxmemory is reached): {why}'
        if isinstance(error, exceptions.ReadOnlyError):
            why = f'this is a read-only replica, and the journal needs the first server: {why}'
        return unavailable(self._address.shown, why, passing=(away and not known) or code in _PASSING)

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.disconnect()

    async def _check_version(self, connection: _Connection) -> None:
        found = cast('bytes | None', await _ask(connection, 'GET', self._prefix + b'version'))
        if found is not None and not (found.isdigit() and int(found) <= scripts.VERSION):
            await self._drop()
            msg = (
                f'the journal at {self._address.shown} was made by a newer Habilis: its layout is of version '
                f'{found.decode("utf-8", "replace")}, this one knows {scripts.VERSION}. Install a newer Habilis'
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
            except NoScriptError:  # a server that has not seen it yet, or was started again
                return await _ask(connection, 'EVAL', script, len(keys), *keys, *arguments)

    def _key(self, kind: str, name: str) -> bytes:
        return self._prefix + kind.encode() + _bytes(name)

    # Runs -------------------------------------------------------------------------------------------------------------

    async def create(self, info: RunInfo) -> bool:
        """See `Store`."""
        if not info.run:
            raise no_name()
        values = (_bytes(info.run), info_to_text(info), _bytes(info.user), info.created)
        return await self._run(scripts.CREATE, info.run, self._prefix, scripts.VERSION, *values) == 1

    async def info(self, run: str) -> RunInfo:
        """See `Store`."""
        text = cast('bytes | None', await self._do('HGET', self._key('run:', run), 'info'))
        if text is None:
            raise no_run(run)
        return info_from_text(text.decode())

    async def runs(
        self, *, user: str | None = None, session: str | None = None, status: Status | None = None
    ) -> list[RunInfo]:
        """See `Store`."""
        index = self._prefix + b'runs' if user is None else self._key('user:', user)
        names = cast('list[bytes]', await self._do('ZRANGE', index, 0, -1))
        infos: list[RunInfo] = []
        for start in range(0, len(names), _AT_ONCE):
            keys = [self._prefix + b'run:' + name for name in names[start : start + _AT_ONCE]]
            texts = cast('list[bytes | None]', await self._do('EVAL', scripts.INFOS, len(keys), *keys))
            there = [
                each for each in zip(names[start:], texts, strict=False) if each[1]
            ]  # else it was deleted meanwhile
            infos += infos_from((name.decode(errors='replace'), text.decode()) for name, text in there if text)
        return newest_first(infos, user=user, session=session, status=status)

    async def delete(self, run: str) -> None:
        """See `Store`."""
        if await self._run(scripts.DELETE, run, self._prefix, _bytes(run)) == 0:
            raise no_run(run)

    # Leases -----------------------------------------------------------------------------------------------------------

    async def claim(self, run: str, *, owner: str, seconds: float, over: int | None = None) -> Lease:
        """See `Store`."""
        wanted = _bytes(owner)
        over_ = b'' if over is None else over
        found = cast('list[bytes]', await self._run(scripts.CLAIM, run, wanted, float(seconds), over_))
        if len(found) == 1:
            raise no_run(run)
        _, epoch, holder, until = found
        if holder != wanted:
            raise busy(run, _text(holder))
        return Lease(epoch=int(epoch), owner=owner, until=float(until))

    async def release(self, run: str, *, epoch: int) -> None:
        """See `Store`."""
        if await self._run(scripts.RELEASE, run, epoch) == 0:
            raise no_run(run)

    async def lease(self, run: str) -> Lease:
        """See `Store`."""
        found = cast('list[bytes | None]', await self._do('HMGET', self._key('run:', run), 'epoch', 'owner', 'until'))
        epoch, owner, until = found
        if epoch is None or owner is None or until is None:
            raise no_run(run)
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
            values += (record.seq, to_line(record))
        for digest, data in (blobs or {}).items():
            values += (_bytes(digest), data)
        if info is not None:
            values += (self._prefix, _bytes(run), info_to_text(info), _bytes(info.user), info.created)
        done = await self._run(scripts.APPEND, run, *values)
        if done != 0:
            raise no_run(run) if done == 1 else lost(run)

    async def load(self, run: str, *, after: int = 0) -> list[Record]:
        """See `Store`."""
        after = max(after, 0)
        lines: list[str] = []
        count = _AT_ONCE
        while count == _AT_ONCE:
            reply = await self._run(scripts.LOAD, run, after + len(lines), _AT_ONCE)
            there, count, text = cast('tuple[int, int, bytes]', reply)
            if not there:
                raise no_run(run)
            lines += text.decode('utf-8', 'replace').split('\n') if count else []
        return from_lines(lines, run=run, after=after)

    async def blob(self, run: str, digest: str) -> bytes:
        """See `Store`."""
        data = cast('bytes | None', await self._do('HGET', self._key('blobs:', run), _bytes(digest)))
        if data is None:
            await self.info(run)
        return checked_blob(data, digest, run=run)

    # For people -------------------------------------------------------------------------------------------------------

    async def warnings(self) -> list[str]:
        """What of the settings of the server puts runs at risk."""
        text = cast('bytes', await self._do('INFO')).decode('utf-8', 'replace')
        found = {name: value for name, _, value in (line.partition(':') for line in text.splitlines())}
        told: list[str] = []
        if found.get('aof_enabled', '0') == '0':
            told.append('Redis does not write what it is given to its disk at once: set `appendonly yes`')
        if found.get('maxmemory', '0') != '0' and found.get('maxmemory_policy') != 'noeviction':
            told.append('Redis drops data when its memory is full: set `maxmemory-policy noeviction`')
        return told

    async def close(self) -> None:
        """See `Store`. A call after this one connects again."""
        await self._drop()


async def _ask(connection: _Connection, *command: object) -> object:
    """One command, one answer. It connects if it has to, and disconnects if it is cancelled between the two."""
    async with asyncio.timeout(_PATIENCE):
        await connection.send_command(*command)
        return await connection.read_response()


def _new_connection(url: str) -> _Connection:
    """Not connected yet. Raises `PackageMissing` and `SettingsError`."""
    try:
        from redis.asyncio import ConnectionPool
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff
    except ImportError as error:
        raise PackageMissing.of('RedisStore', extra='redis', error=error) from error
    try:
        # Nothing is sent twice behind our back: a run that was made by the first try would seem to be another's.
        options = {'retry': Retry(NoBackoff(), 0), 'protocol': 2, 'socket_timeout': None}
        pool = ConnectionPool.from_url(url, **options)  # pyright: ignore[reportUnknownMemberType]
        return cast('_Connection', pool.make_connection())
    except (ValueError, TypeError):  # its text may quote a part of the password
        msg = (
            'the address of the journal cannot be read; it is like redis://:password@host:6379/0, '
            'rediss://… with TLS, or unix:///path/of/the.sock, and its query may have options of redis-py, and prefix'
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


def _text(data: bytes) -> str:
    return data.decode('utf-8', 'surrogatepass')
