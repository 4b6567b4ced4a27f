"""Many concurrent runs in one process, each with its own sandbox. All are alive before any of them ends."""

import asyncio
import json
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from benchmarks.fresh_process import run_python
from benchmarks.measurement import Memory, process_memory
from habilis.agent import Agent
from habilis.core.errors import AgentError, HabilisError
from habilis.core.settings import Settings
from habilis.models import Message, ScriptedModel

_NUMBER = re.compile(r'number (\d+)')
STEPS = 3


@dataclass(frozen=True, kw_only=True)
class ConcurrentRuns:
    """Result of concurrent runs."""

    count: int
    correct: int
    """Runs with the correct answer."""

    seconds: float
    pss: int | None
    """Memory growth while all runs were alive, in bytes; None if the system is not Linux."""


def concurrent_runs(count: int) -> ConcurrentRuns:
    """Start `count` runs at once, in a new process."""
    program = f'from benchmarks.agent.concurrent_runs import print_result; print_result({count})'
    output = run_python(program, what=f'{count:,} concurrent runs', error=AgentError)
    return ConcurrentRuns(**json.loads(output))


def print_result(count: int) -> None:
    """Entry point of the new process."""
    print(json.dumps(asdict(asyncio.run(_measure(count)))))


class Barrier:
    """Opens when every run has arrived or failed. Measures memory at that moment."""

    def __init__(self, count: int) -> None:
        self._missing = set(range(count))
        self._all = asyncio.Event()
        self.memory: Memory | None = None
        self.pause = 0.0
        """Seconds that measuring memory took."""

    @property
    def is_open(self) -> bool:
        """Whether every run has arrived."""
        return self._all.is_set()

    def arrive(self, number: int) -> None:
        """Mark a run as arrived. Can be called twice."""
        self._missing.discard(number)
        if not self._missing and not self.is_open:
            started = time.perf_counter()
            self.memory = process_memory()
            self.pause = time.perf_counter() - started
            self._all.set()

    async def wait(self) -> None:
        """Wait until every run has arrived."""
        await self._all.wait()


async def _measure(count: int) -> ConcurrentRuns:
    await _run_all(1)  # loads the component, which all sandboxes share
    before = process_memory()
    correct, seconds, barrier = await _run_all(count)
    growth = barrier.memory.pss - before.pss if barrier.memory and before else None
    return ConcurrentRuns(count=count, correct=correct, seconds=seconds, pss=growth)


async def _run_all(count: int) -> tuple[int, float, Barrier]:
    barrier = Barrier(count)

    async def reply(messages: Sequence[Message]) -> str:
        """Depends only on the task and the step, so that one model serves all runs."""
        number = _run_number(messages)
        step = sum(message.role == 'assistant' for message in messages)
        if step < STEPS - 1:
            return f'```python\nmine = {number if step == 0 else "mine * 2"}\nprint(mine)\n```'
        barrier.arrive(number)
        await barrier.wait()
        return '```python\nfinal_answer(mine + 1)\n```'

    async def run(agent: Agent[int], number: int) -> bool:
        try:
            result = await agent.run(f'You are number {number}.')
        except HabilisError as error:
            print(f'number {number}: {error}', file=sys.stderr)
            return False
        finally:
            barrier.arrive(number)  # the other runs must not wait for one that failed
        return result.output == 2 * number + 1

    async with Agent(ScriptedModel(reply), output_type=int, settings=Settings()) as agent:
        started = time.perf_counter()
        correct = await asyncio.gather(*(run(agent, number) for number in range(count)))
        taken = time.perf_counter() - started - barrier.pause
    return sum(correct), taken, barrier


def _run_number(messages: Sequence[Message]) -> int:
    found = next(found for message in messages if (found := _NUMBER.search(message.text)))
    return int(found[1])
