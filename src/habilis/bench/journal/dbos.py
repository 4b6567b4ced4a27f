"""DBOS beside ours: a process of another Python, which has it, and does what it is told."""

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

from habilis.bench.sandbox.peers import WrongAnswer

NAME = 'DBOS'
GET_IT = 'not installed: pip install dbos, or --peer-python with a Python that has it (and psycopg for PostgreSQL)'
PATIENCE = 600.0
_PROGRAM = Path(__file__).with_name('dbos_program.py')


@dataclass(frozen=True, kw_only=True)
class Database:
    """Where DBOS keeps its workflows."""

    url: str
    schema: str = 'dbos'
    alike: bool = False
    """SQLite as our store sets it. A PostgreSQL says this in its URL."""


def python_with_dbos(given: str) -> str:
    """Which Python to run; empty if none is known to have DBOS."""
    if given:
        return given
    return sys.executable if importlib.util.find_spec('dbos') is not None else ''


class Dbos:
    """DBOS on one database."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.version = ''

    async def start(self, database: Database) -> None:
        """Have its tables, and its threads run."""
        order = {'url': database.url, 'schema': database.schema, 'alike': database.alike}
        self.version = str(await self._ask(order, 'version'))

    async def steps(self, count: int) -> list[float]:
        """Seconds of each of so many steps."""
        return await self._seconds('steps', count)

    async def record(self, count: int) -> None:
        """Have a workflow with so many steps, for `replay`."""
        await self._seconds('record', count)

    async def replay(self, count: int) -> float:
        """Seconds until they are answered from the record."""
        (taken,) = await self._seconds('replay', count)
        return taken

    async def _seconds(self, what: str, count: int) -> list[float]:
        return cast('list[float]', await self._ask({'do': what, 'count': count}, 'seconds'))

    async def _ask(self, order: Mapping[str, object], wanted: str) -> object:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(ConnectionError):  # it has ended, and perhaps said why
            self._process.stdin.write(f'{json.dumps(order)}\n'.encode())
            await self._process.stdin.drain()
        try:
            async with asyncio.timeout(PATIENCE):
                line = await self._process.stdout.readline()
        except TimeoutError:
            msg = f'no answer in {PATIENCE:.0f} seconds'
            raise WrongAnswer(msg) from None
        try:
            answer = cast('dict[str, object]', json.loads(line))
            if 'error' in answer:
                raise WrongAnswer(str(answer['error']))
            return answer[wanted]
        except (ValueError, TypeError, KeyError):
            msg = f'its Python gave {line[:100].decode(errors="replace")!r} instead of an answer'
            raise WrongAnswer(msg) from None


@contextlib.asynccontextmanager
async def running(python: str, database: Database) -> AsyncGenerator[Dbos]:
    """DBOS, until the end of the block. Raises `WrongAnswer` if it does not work, and `OSError` if there is none."""
    process = await asyncio.create_subprocess_exec(
        python, str(_PROGRAM), stdin=PIPE, stdout=PIPE, stderr=DEVNULL, limit=1 << 24
    )
    try:
        dbos = Dbos(process)
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
