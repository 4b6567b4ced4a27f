"""DBOS at work. Run by a Python that has it, which need not be ours: this file imports nothing of Habilis.

Takes orders on stdin and answers on stdout, a JSON object in a line each. The first order says which database.
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
    """One application of DBOS with one workflow."""

    def __init__(self, url: str, schema: str, alike: bool) -> None:
        self._dbos: Any = importlib.import_module('dbos')
        self._begun: list[float] = []
        """When the steps began that were done, and not answered from the record."""

        if alike:
            self._as_ours(url)
        self._dbos.DBOS(
            config={
                'name': 'habilis-bench',
                'system_database_url': url,
                'dbos_system_schema': schema,
                'application_version': '1',
                'log_level': 'CRITICAL',
            }
        )
        self._workflow: Any = self._registered()
        self._dbos.DBOS.launch()

    def _as_ours(self, url: str) -> None:
        """SQLite: what is written survives the death of the process, not that of the machine."""
        if not url.startswith('sqlite'):
            return
        alchemy: Any = importlib.import_module('sqlalchemy')

        def connected(connection: Any, _record: object) -> None:
            connection.execute('PRAGMA journal_mode = WAL')
            connection.execute('PRAGMA synchronous = NORMAL')

        alchemy.event.listen(alchemy.Engine, 'connect', connected)

    def _registered(self) -> Any:
        vendor: Any = self._dbos.DBOS

        @vendor.step()
        async def count_one(number: int, question: str) -> dict[str, object]:
            self._begun.append(time.perf_counter())
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
        """Seconds of each of so many steps."""
        times = await self._workflow(count)
        return [later - sooner for sooner, later in itertools.pairwise(times)]

    async def record(self, count: int) -> list[float]:
        """Have a workflow with one step more than those that are to be replayed."""
        with self._dbos.SetWorkflowID('recorded'):
            await self._workflow(count + 1)
        return []

    async def replay(self, count: int) -> list[float]:
        """Seconds from the beginning of the workflow to its first live step. The wait in the queue is not counted."""
        self._begun.clear()
        handle = await self._dbos.DBOS.fork_workflow_async('recorded', count + 1)
        times = await handle.get_result()
        if len(self._begun) != 1:
            msg = f'{len(self._begun)} steps were done again instead of 1'
            raise RuntimeError(msg)
        return [self._begun[0] - times[0]]

    def close(self) -> None:
        """Ends its threads."""
        self._dbos.DBOS.destroy()


def main() -> None:
    """Until stdin ends."""
    answers = os.fdopen(os.dup(1), 'w', encoding='utf-8')
    os.dup2(2, 1)  # whatever prints must not come between the answers

    def answer(**fields: object) -> None:
        print(json.dumps(fields), file=answers, flush=True)

    try:
        order = json.loads(sys.stdin.readline())
        program = Program(order['url'], order['schema'], order['alike'])
        answer(version=importlib.metadata.version('dbos'))
        asyncio.run(_serve(program, answer))
        program.close()
    except Exception as error:  # the other side says it
        answer(error=f'{type(error).__name__}: {(str(error).splitlines() or [""])[0]}')


async def _serve(program: Program, answer: Any) -> None:
    for line in sys.stdin:
        order = json.loads(line)
        answer(seconds=await getattr(program, order['do'])(order['count']))


if __name__ == '__main__':
    main()
