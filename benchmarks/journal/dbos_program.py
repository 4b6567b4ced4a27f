"""Runs DBOS workflows. Executed by a Python that has DBOS, so it must not import Habilis.

Reads requests from stdin and writes responses to stdout, one JSON object per line. The first one names the database.
"""

import asyncio
import importlib
import importlib.metadata
import itertools
import json
import os
import sys
import time
from typing import Any

QUESTION = 'How many?'


class Program:
    """A DBOS application with one workflow."""

    def __init__(self, url: str, schema: str, relaxed: bool) -> None:
        self._dbos: Any = importlib.import_module('dbos')
        self._executed: list[float] = []
        """Start times of executed steps, without replayed ones."""

        if relaxed:
            self._relax_sqlite(url)
        self._dbos.DBOS(
            config={
                'name': 'habilis-bench',
                'system_database_url': url,
                'dbos_system_schema': schema,
                'application_version': '1',
                'log_level': 'CRITICAL',
            }
        )
        self._workflow: Any = self._register()
        self._dbos.DBOS.launch()

    def _relax_sqlite(self, url: str) -> None:
        """Configure SQLite like our store: commits survive a crash of the process, not of the machine."""
        if not url.startswith('sqlite'):
            return
        alchemy: Any = importlib.import_module('sqlalchemy')

        def connected(connection: Any, _record: object) -> None:
            connection.execute('PRAGMA journal_mode = WAL')
            connection.execute('PRAGMA synchronous = NORMAL')

        alchemy.event.listen(alchemy.Engine, 'connect', connected)

    def _register(self) -> Any:
        vendor: Any = self._dbos.DBOS

        @vendor.step()
        async def count_one(number: int, question: str) -> dict[str, object]:
            self._executed.append(time.perf_counter())
            return {'number': number, 'text': question}

        @vendor.workflow()
        async def counting(count: int) -> list[float]:
            times = [time.perf_counter()]
            for number in range(count):
                await count_one(number, QUESTION)
                times.append(time.perf_counter())
            return times

        return counting

    async def steps(self, count: int) -> list[float]:
        """Seconds of each of `count` steps."""
        times = await self._workflow(count)
        return [later - sooner for sooner, later in itertools.pairwise(times)]

    async def record(self, count: int) -> list[float]:
        """Run a workflow with `count` steps to replay and one more."""
        with self._dbos.SetWorkflowID('recorded'):
            await self._workflow(count + 1)
        return []

    async def replay(self, count: int) -> list[float]:
        """Seconds from the start of the workflow to its first executed step, without the time in the queue."""
        self._executed.clear()
        handle = await self._dbos.DBOS.fork_workflow_async('recorded', count + 1)
        times = await handle.get_result()
        if len(self._executed) != 1:
            msg = f'{len(self._executed)} steps were executed instead of 1'
            raise RuntimeError(msg)
        return [self._executed[0] - times[0]]

    def close(self) -> None:
        """Stop its threads."""
        self._dbos.DBOS.destroy()


def main() -> None:
    """Serve requests until stdin is closed."""
    responses = os.fdopen(os.dup(1), 'w', encoding='utf-8')
    os.dup2(2, 1)  # prints must not mix with the responses

    def respond(**fields: object) -> None:
        print(json.dumps(fields), file=responses, flush=True)

    try:
        request = json.loads(sys.stdin.readline())
        program = Program(request['url'], request['schema'], request['relaxed'])
        respond(version=importlib.metadata.version('dbos'))
        asyncio.run(_serve(program, respond))
        program.close()
    except Exception as error:  # reported by the parent process
        respond(error=f'{type(error).__name__}: {(str(error).splitlines() or [""])[0]}')


async def _serve(program: Program, respond: Any) -> None:
    for line in sys.stdin:
        request = json.loads(line)
        respond(seconds=await getattr(program, request['method'])(request['count']))


if __name__ == '__main__':
    main()
