"""DBOS in a process of its own, with a Python that has it installed."""

import asyncio
import contextlib
import importlib.util
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from benchmarks.installation import PeerError

NAME = 'DBOS'
INSTALL = 'not installed: pip install dbos, or use --peer-python with a Python that has it (and psycopg for PostgreSQL)'
TIMEOUT_SECONDS = 600.0
_PROGRAM = Path(__file__).with_name('dbos_program.py')


@dataclass(frozen=True, kw_only=True)
class Database:
    """Database of DBOS."""

    url: str
    schema: str = 'dbos'
    relaxed: bool = False
    """Configure SQLite like our store. For PostgreSQL, the URL does this."""


def python_with_dbos(given: str) -> str:
    """Path of a Python that has DBOS; empty if none is known."""
    if given:
        return given
    return sys.executable if importlib.util.find_spec('dbos') is not None else ''


class DbosProcess:
    """A process that runs DBOS on one database."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.version = ''

    async def start(self, database: Database) -> None:
        """Create its tables and start its threads."""
        request = {'url': database.url, 'schema': database.schema, 'relaxed': database.relaxed}
        self.version = str(await self._request(request, 'version'))

    async def steps(self, count: int) -> list[float]:
        """Seconds of each of `count` steps."""
        return await self._seconds('steps', count)

    async def record(self, count: int) -> None:
        """Record a workflow of `count` steps for `replay`."""
        await self._seconds('record', count)

    async def replay(self, count: int) -> float:
        """Seconds to replay the recorded workflow."""
        (taken,) = await self._seconds('replay', count)
        return taken

    async def _seconds(self, method: str, count: int) -> list[float]:
        return cast('list[float]', await self._request({'method': method, 'count': count}, 'seconds'))

    async def _request(self, request: Mapping[str, object], key: str) -> object:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(ConnectionError):  # the process has ended; its last response may say why
            self._process.stdin.write(f'{json.dumps(request)}\n'.encode())
            await self._process.stdin.drain()
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                line = await self._process.stdout.readline()
        except TimeoutError:
            msg = f'no response in {TIMEOUT_SECONDS:.0f} seconds'
            raise PeerError(msg) from None
        try:
            response = cast('dict[str, object]', json.loads(line))
            if 'error' in response:
                raise PeerError(str(response['error']))
            return response[key]
        except (ValueError, TypeError, KeyError):
            msg = f'its Python sent {line[:100].decode(errors="replace")!r} instead of a response'
            raise PeerError(msg) from None


@contextlib.asynccontextmanager
async def run_dbos(python: str, database: Database) -> AsyncGenerator[DbosProcess]:
    """Start DBOS and stop it at the end. Raises `PeerError` if it does not work and `OSError` if Python is missing."""
    process = await asyncio.create_subprocess_exec(
        python, str(_PROGRAM), stdin=PIPE, stdout=PIPE, stderr=DEVNULL, limit=1 << 24
    )
    try:
        dbos = DbosProcess(process)
        await dbos.start(database)
        yield dbos
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), 10)
        except TimeoutError:
            process.kill()
            await process.wait()
