"""Servers for the stores that need one: those that were named, or private ones, each in a folder that is deleted."""

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import tempfile
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass
from pathlib import Path

from habilis.core.errors import HabilisError, StoreUnavailable
from habilis.journal import postgres, redis
from habilis.journal.server_address import parse_address
from habilis.journal.stores import open_store

SECONDS = 60.0
"""For a server to start."""


class NotThere(Exception):
    """A server that cannot be had. The message says why."""


@dataclass(frozen=True, kw_only=True)
class Server:
    """Where a server is, or why there is none."""

    url: str = ''
    absent: str = ''
    part: str = ''
    """Which schema, or which prefix of keys, is the bench's own."""

    @property
    def store(self) -> str:
        """For `open_store`."""
        name = 'schema' if self.url.startswith('postgres') else 'prefix'
        return self.adding(f'{name}={self.part}')

    def adding(self, option: str) -> str:
        """The address with one more option."""
        return f'{self.url}{"&" if "?" in self.url else "?"}{option}'


@contextlib.asynccontextmanager
async def postgres_server(given: str) -> AsyncGenerator[Server]:
    """The PostgreSQL at this address, or a private one."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            url = _checked(given, postgres.SCHEMES) or await stack.enter_async_context(_private_postgres())
            server = Server(url=url, part=f'habilis_bench_{secrets.token_hex(4)}')
            await _answers(server.store, None)
        except (NotThere, HabilisError, OSError) as error:
            yield Server(absent=str(error))
            return
        try:
            yield server
        finally:
            if given:
                await _drop_schemas(server)


@contextlib.asynccontextmanager
async def redis_server(given: str) -> AsyncGenerator[Server]:
    """The Redis at this address, or a private one."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            url = _checked(given, redis.SCHEMES) or await stack.enter_async_context(_private_redis())
            server = Server(url=url, part=f'habilis-bench-{secrets.token_hex(4)}:')
            await _answers(server.store, None)
        except (NotThere, HabilisError, OSError) as error:
            yield Server(absent=str(error))
            return
        yield server  # the runs of the bench are deleted one by one, and nothing else is there


def _checked(given: str, schemes: tuple[str, ...]) -> str:
    """The same. Raises `SettingsError` for an address of another kind."""
    if given:
        parse_address(given, schemes=schemes)
    return given


# Private ones ---------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def _private_postgres() -> AsyncGenerator[str]:
    initdb, postgres = _postgres_program('initdb'), _postgres_program('postgres')
    with _folder() as folder:
        user = _somebody()
        if user is not None:
            shutil.chown(folder, user)
        data = str(folder / 'data')
        options = ['-A', 'trust', '-U', 'habilis', '-E', 'UTF8', '--no-locale', '--no-sync']
        made = await _spawn([initdb, '-D', data, *options], folder, user)
        if await made.wait() != 0:
            msg = f'{initdb} failed; name a server with --postgres'
            raise NotThere(msg)
        url = f'postgresql://habilis@/postgres?host={folder}'
        command = [postgres, '-D', data, '-k', str(folder), '-c', 'listen_addresses=']
        async with _started(command, folder, url, user=user, sign=signal.SIGINT):  # it does not wait for clients then
            yield url


@contextlib.asynccontextmanager
async def _private_redis() -> AsyncGenerator[str]:
    found = shutil.which('redis-server') or shutil.which('valkey-server')
    if found is None:
        msg = 'there is no redis-server on this machine; install one, or name a server with --redis'
        raise NotThere(msg)
    with _folder() as folder:
        socket = folder / 'redis.sock'
        kept = ['--save', '', '--appendonly', 'yes', '--dir', str(folder)]
        command = [found, '--port', '0', '--unixsocket', str(socket), *kept]
        url = f'unix://{socket}'
        async with _started(command, folder, url, user=None, sign=signal.SIGKILL):
            yield url


@contextlib.contextmanager
def _folder() -> Generator[Path]:
    """With a short name: that of a socket in it may have about a hundred letters."""
    with tempfile.TemporaryDirectory(prefix='habilis-', ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextlib.asynccontextmanager
async def _started(
    command: list[str], folder: Path, url: str, *, user: str | None, sign: signal.Signals
) -> AsyncGenerator[None]:
    process = await _spawn(command, folder, user)
    try:
        await _answers(url, process)
        yield
    finally:
        if process.returncode is None:
            process.send_signal(sign)
        await process.wait()


async def _spawn(command: list[str], folder: Path, user: str | None) -> Process:
    """It goes when we go, also if we are killed, where the system can do that."""
    setpriv = shutil.which('setpriv')
    before = [setpriv, '--pdeathsig', 'KILL'] if setpriv else []
    return await asyncio.create_subprocess_exec(
        *before, *command, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, cwd=folder, user=user, start_new_session=True
    )


async def _answers(url: str, process: Process | None) -> None:
    """Wait for a server that we have started. Of another one, raise what is wrong."""
    deadline = time.monotonic() + SECONDS
    while True:
        store = open_store(url)
        try:
            await store.runs()
            return
        except StoreUnavailable:
            if process is None or process.returncode is not None or time.monotonic() > deadline:
                raise
        finally:
            await store.close()
        await asyncio.sleep(0.05)


def _postgres_program(name: str) -> str:
    """Debian does not put them on the PATH."""
    folders = sorted(Path('/usr/lib/postgresql').glob('*/bin'), reverse=True)
    for folder in (None, *map(str, folders)):
        if found := shutil.which(name, path=folder):
            return found
    msg = 'there is no PostgreSQL server on this machine; install one, or name a server with --postgres'
    raise NotThere(msg)


def _somebody() -> str | None:
    """Who runs PostgreSQL, which refuses to be run by root; None if we can."""
    if not hasattr(os, 'geteuid') or os.geteuid() != 0:
        return None
    import pwd

    names = {user.pw_name for user in pwd.getpwall()}
    for name in ('postgres', 'nobody'):
        if name in names:
            return name
    msg = 'PostgreSQL does not run as root, and there is no other user; name a server with --postgres'
    raise NotThere(msg)


async def _drop_schemas(server: Server) -> None:
    """What the bench has made in somebody's database, ours and the peer's."""
    from psycopg import AsyncConnection, sql

    async with await AsyncConnection.connect(server.url, autocommit=True) as connection:
        for schema in (server.part, peer_schema(server)):
            await connection.execute(sql.SQL('DROP SCHEMA IF EXISTS {} CASCADE').format(sql.Identifier(schema)))


def peer_schema(server: Server) -> str:
    """Where the peer has its tables in the same database."""
    return f'{server.part}_peer'
