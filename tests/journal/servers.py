"""Real servers of PostgreSQL and Redis for tests, each in a folder of its own, reached by a socket in it.

The fixtures `postgres_url` and `redis_url` start one server for the session; a test takes a schema or a prefix of its
own. Tests that stop servers make their own with `PostgresServer` and `RedisServer`.
"""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from tests.requirements import missing

SECONDS = 60


class Server:
    """A process with a folder. `start` it, and `close` it in the end."""

    asked_to_stop: ClassVar[signal.Signals] = signal.SIGTERM

    user: ClassVar[str | None] = None
    """Who runs it, if not we."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix='habilis-'))  # a short name: that of a socket may have 107 bytes
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """For `open_store`."""
        raise NotImplementedError

    @property
    def command(self) -> list[str]:
        """What is run."""
        raise NotImplementedError

    @property
    def log(self) -> Path:
        return self.folder / 'log'

    def answers(self) -> bool:
        """Whether it is ready."""
        raise NotImplementedError

    def start(self) -> None:
        """Returns when it answers. Also after `kill`, on the same data."""
        deadline = time.monotonic() + SECONDS
        while True:
            if self._process is None or self._process.poll() is not None:  # a first try may meet what `kill` left
                self._process = self._spawn(self.command)
            if self.answers():
                return
            if time.monotonic() > deadline:
                self.kill()
                msg = f'{self.command[0]} did not start:\n{self.log.read_text()}'
                raise RuntimeError(msg)
            time.sleep(0.02)

    def _spawn(self, command: list[str]) -> subprocess.Popen[bytes]:
        with self.log.open('ab') as log:
            return subprocess.Popen(
                [*_to_die_with_us(self.asked_to_stop), *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                user=self.user,
                start_new_session=True,  # so that Ctrl-C is for the tests only, and `kill` reaches its children
            )

    def kill(self) -> None:
        """At once, without a chance to write anything."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """In order."""
        self._end(self.asked_to_stop)

    def _end(self, sign: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            if sign == signal.SIGKILL:
                os.killpg(process.pid, sign)
            else:
                process.send_signal(sign)
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(SECONDS)

    def close(self) -> None:
        """Leaves nothing behind."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class RedisServer(Server):
    """A Redis; `options` such as `('--appendonly', 'yes')`."""

    asked_to_stop = signal.SIGKILL  # it may refuse to stop in order while it writes its first file

    def __init__(self, *options: str) -> None:
        super().__init__()
        self.options = options

    @property
    def url(self) -> str:
        return f'unix://{self.folder}/redis.sock'

    @property
    def command(self) -> list[str]:
        socket = str(self.folder / 'redis.sock')
        return [_redis(), '--port', '0', '--unixsocket', socket, '--save', '', *self.options]

    def answers(self) -> bool:
        import redis

        with contextlib.closing(redis.Redis(unix_socket_path=f'{self.folder}/redis.sock')) as client:
            try:
                client.ping()  # pyright: ignore[reportUnknownMemberType]
            except redis.AuthenticationError:
                return True
            except redis.RedisError:
                return False
        return True


def _somebody() -> str | None:
    """PostgreSQL refuses to be run by root."""
    if os.geteuid() != 0:
        return None
    names = {user.pw_name for user in pwd.getpwall()}
    return next((name for name in ('postgres', 'nobody') if name in names), None)


class PostgresServer(Server):
    """A PostgreSQL with the superuser `habilis`, who needs no password, and `guarded`, whose password is asked for."""

    asked_to_stop = signal.SIGINT  # does not wait for clients
    user = _somebody()

    def __init__(self) -> None:
        super().__init__()
        self._made = False

    @property
    def url(self) -> str:
        return self.url_of('habilis')

    def url_of(self, user: str, password: str = '', database: str = 'postgres') -> str:
        """For another user."""
        return f'postgresql://{user}{":" * bool(password)}{password}@/{database}?host={self.folder}'

    @property
    def command(self) -> list[str]:
        settings = {'listen_addresses': '', 'shared_buffers': '16MB', 'max_connections': '50'}
        options = [part for name, value in settings.items() for part in ('-c', f'{name}={value}')]
        return [postgres_program('postgres'), '-D', str(self.folder / 'data'), '-k', str(self.folder), *options]

    def start(self) -> None:
        """See `Server`. The first time it makes the data, too."""
        if not self._made:
            if self.user:
                shutil.chown(self.folder, self.user)
            data = str(self.folder / 'data')
            options = ['-A', 'trust', '-U', 'habilis', '-E', 'UTF8', '--no-locale', '--no-sync']
            made = self._spawn([postgres_program('initdb'), '-D', data, *options])
            if made.wait(SECONDS) != 0:
                raise RuntimeError(self.log.read_text())
            users = self.folder / 'data' / 'pg_hba.conf'
            users.write_text(f'local all guarded scram-sha-256\n{users.read_text()}')
            self._made = True
        super().start()

    def answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url).close()
        except psycopg.OperationalError:
            return False
        return True


def _redis() -> str:
    for name in ('redis-server', 'valkey-server'):
        if found := shutil.which(name):
            return found
    return missing('redis-server')


def postgres_program(program: str) -> str:
    """Debian does not put them on the PATH."""
    folders = [str(found) for found in sorted(Path('/usr/lib/postgresql').glob('*/bin'), reverse=True)]
    if config := shutil.which('pg_config'):
        folders.append(subprocess.check_output([config, '--bindir'], text=True).strip())
    for folder in (*folders, None):
        if found := shutil.which(program, path=folder):
            return found
    return missing('postgres')


def _to_die_with_us(sign: signal.Signals) -> list[str]:
    """Should the tests be killed, the server goes too. It goes with the thread that started it: take the first one."""
    setpriv = shutil.which('setpriv')
    return [setpriv, '--pdeathsig', sign.name.removeprefix('SIG')] if setpriv else []


@pytest.fixture(scope='session')
def postgres_url() -> Iterator[str]:
    """Of a server for all tests of the session."""
    server = PostgresServer()
    try:
        server.start()
        yield server.url
    finally:
        server.close()


@pytest.fixture(scope='session')
def redis_url() -> Iterator[str]:
    """Of a server for all tests of the session."""
    server = RedisServer()
    try:
        server.start()
        yield server.url
    finally:
        server.close()
