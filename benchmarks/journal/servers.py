"""PostgreSQL and Redis servers: a given one, or a private one in a temporary folder."""

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import tempfile
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from habilis.core.errors import HabilisError, StoreUnavailable
from habilis.journal.stores import postgres, redis
from habilis.journal.stores.server_address import parse_address
from habilis.journal.stores.urls import open_store

START_TIMEOUT_SECONDS = 60.0


class ServerMissing(Exception):
    """A private server cannot be started."""


@dataclass(frozen=True, kw_only=True)
class Server:
    """URL of a server, or why there is none."""

    url: str = ''
    unavailable: str = ''
    namespace: str = ''
    """Schema or key prefix used by the benchmark."""

    @property
    def store_url(self) -> str:
        """Argument of `open_store`."""
        name = 'schema' if self.url.startswith('postgres') else 'prefix'
        return self.with_option(f'{name}={self.namespace}')

    def with_option(self, option: str) -> str:
        """The URL with one more option."""
        return f'{self.url}{"&" if "?" in self.url else "?"}{option}'


@contextlib.asynccontextmanager
async def postgres_server(given: str) -> AsyncGenerator[Server]:
    """The PostgreSQL server at a URL, or a private one if it is empty."""
    namespace = f'habilis_bench_{secrets.token_hex(4)}'
    async with _server(given, postgres.SCHEMES, _private_postgres, namespace) as server:
        try:
            yield server
        finally:
            if given and not server.unavailable:
                await _drop_schemas(server)


@contextlib.asynccontextmanager
async def redis_server(given: str) -> AsyncGenerator[Server]:
    """The Redis server at a URL, or a private one if it is empty. The benchmark deletes its runs one by one."""
    namespace = f'habilis-bench-{secrets.token_hex(4)}:'
    async with _server(given, redis.SCHEMES, _private_redis, namespace) as server:
        yield server


@contextlib.asynccontextmanager
async def _server(
    given: str,
    schemes: tuple[str, ...],
    private: Callable[[], AbstractAsyncContextManager[str]],
    namespace: str,
) -> AsyncGenerator[Server]:
    async with contextlib.AsyncExitStack() as stack:
        try:
            if given:
                parse_address(given, schemes=schemes)
            server = Server(url=given or await stack.enter_async_context(private()), namespace=namespace)
            await _wait_until_ready(server.store_url, None)
        except (ServerMissing, HabilisError, OSError) as error:
            server = Server(unavailable=str(error))
        yield server


# Private servers ------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def _private_postgres() -> AsyncGenerator[str]:
    initdb, postgres = _postgres_program('initdb'), _postgres_program('postgres')
    with _temporary_folder() as folder:
        user = _postgres_user()
        if user is not None:
            shutil.chown(folder, user)
        data = str(folder / 'data')
        options = ['-A', 'trust', '-U', 'habilis', '-E', 'UTF8', '--no-locale', '--no-sync']
        init = await _spawn([initdb, '-D', data, *options], folder, user)
        if await init.wait() != 0:
            msg = f'{initdb} failed; name a server with --postgres'
            raise ServerMissing(msg)
        url = f'postgresql://habilis@/postgres?host={folder}'
        command = [postgres, '-D', data, '-k', str(folder), '-c', 'listen_addresses=']
        async with _running(command, folder, url, user=user, stop=signal.SIGINT):  # SIGINT disconnects clients
            yield url


@contextlib.asynccontextmanager
async def _private_redis() -> AsyncGenerator[str]:
    program = shutil.which('redis-server') or shutil.which('valkey-server')
    if program is None:
        msg = 'redis-server is not installed; install it, or name a server with --redis'
        raise ServerMissing(msg)
    with _temporary_folder() as folder:
        socket = folder / 'redis.sock'
        persistence = ['--save', '', '--appendonly', 'yes', '--dir', str(folder)]
        command = [program, '--port', '0', '--unixsocket', str(socket), *persistence]
        url = f'unix://{socket}'
        async with _running(command, folder, url, user=None, stop=signal.SIGKILL):
            yield url


@contextlib.contextmanager
def _temporary_folder() -> Generator[Path]:
    """A folder with a short path: socket paths are limited to about 100 characters."""
    with tempfile.TemporaryDirectory(prefix='habilis-', ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextlib.asynccontextmanager
async def _running(
    command: list[str], folder: Path, url: str, *, user: str | None, stop: signal.Signals
) -> AsyncGenerator[None]:
    process = await _spawn(command, folder, user)
    try:
        await _wait_until_ready(url, process)
        yield
    finally:
        if process.returncode is None:
            process.send_signal(stop)
        await process.wait()


async def _spawn(command: list[str], folder: Path, user: str | None) -> Process:
    """Start a process that is killed with this one, where the system supports it."""
    setpriv = shutil.which('setpriv')
    prefix = [setpriv, '--pdeathsig', 'KILL'] if setpriv else []
    return await asyncio.create_subprocess_exec(
        *prefix, *command, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, cwd=folder, user=user, start_new_session=True
    )


async def _wait_until_ready(url: str, process: Process | None) -> None:
    """Wait for a server that was started here. Of a given server, errors are raised at once."""
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
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
    """Path of a PostgreSQL program. Debian does not put them on the PATH."""
    folders = sorted(Path('/usr/lib/postgresql').glob('*/bin'), reverse=True)
    for folder in (None, *map(str, folders)):
        if found := shutil.which(name, path=folder):
            return found
    msg = 'PostgreSQL is not installed; install it, or name a server with --postgres'
    raise ServerMissing(msg)


def _postgres_user() -> str | None:
    """User to run PostgreSQL as, because it refuses to run as root; None for the current user."""
    if not hasattr(os, 'geteuid') or os.geteuid() != 0:
        return None
    import pwd

    names = {user.pw_name for user in pwd.getpwall()}
    for name in ('postgres', 'nobody'):
        if name in names:
            return name
    msg = 'PostgreSQL cannot run as root and there is no other user; name a server with --postgres'
    raise ServerMissing(msg)


async def _drop_schemas(server: Server) -> None:
    """Delete the schemas of the benchmark and of the peer from a given database."""
    from psycopg import AsyncConnection, sql

    async with await AsyncConnection.connect(server.url, autocommit=True) as connection:
        for schema in (server.namespace, peer_schema(server)):
            await connection.execute(sql.SQL('DROP SCHEMA IF EXISTS {} CASCADE').format(sql.Identifier(schema)))


def peer_schema(server: Server) -> str:
    """Schema of the peer in the same database."""
    return f'{server.namespace}_peer'
