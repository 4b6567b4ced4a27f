"""Many runs at once in one process, each with a sandbox of its own. All are alive together before any may end."""

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict, cast

from habilis.agent import Agent
from habilis.bench.measurement import Memory, memory
from habilis.core.errors import AgentError, HabilisError
from habilis.core.settings import Settings
from habilis.models import Message, ScriptedModel

_NUMBER = re.compile(r'number (\d+)')
STEPS = 3


class Numbers(TypedDict):
    """What the other process prints."""

    count: int
    right: int
    seconds: float
    pss: int | None


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """How it went."""

    count: int
    right: int
    """Runs that gave the right answer."""

    seconds: float
    pss: int | None
    """Growth of the process while all runs were alive, in bytes; None where Linux does not tell."""


def crowd(count: int) -> Crowd:
    """Measured in a process of its own, so that nothing from before is used again."""
    program = f'from habilis.bench.agent.concurrent_runs import print_crowd; print_crowd({count})'
    done = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        msg = f'{count:,} runs at once: {(done.stderr.strip().splitlines() or ["no reason given"])[-1]}'
        raise AgentError(msg)
    return Crowd(**cast('Numbers', json.loads(done.stdout)))


def print_crowd(count: int) -> None:
    """In the process of its own."""
    print(json.dumps(asyncio.run(_crowd(count))))


class Meeting:
    """Opens when everyone is there, or has given up; memory is looked at in between."""

    def __init__(self, count: int) -> None:
        self._missing = set(range(count))
        self._all = asyncio.Event()
        self.memory: Memory | None = None
        self.pause = 0.0
        """Seconds that looking took."""

    @property
    def begun(self) -> bool:
        """Whether everyone is there."""
        return self._all.is_set()

    def arrive(self, number: int) -> None:
        """This one is there. It may say so twice."""
        self._missing.discard(number)
        if not self._missing and not self.begun:
            started = time.perf_counter()
            self.memory = memory()
            self.pause = time.perf_counter() - started
            self._all.set()

    async def wait(self) -> None:
        """Until everyone is."""
        await self._all.wait()


async def _crowd(count: int) -> Numbers:
    await _run_all(1)  # loads the component, which all share
    before = memory()
    right, seconds, meeting = await _run_all(count)
    grown = meeting.memory.pss - before.pss if meeting.memory and before else None
    return Numbers(count=count, right=right, seconds=seconds, pss=grown)


async def _run_all(count: int) -> tuple[int, float, Meeting]:
    meeting = Meeting(count)

    async def reply(messages: Sequence[Message]) -> str:
        """Depends on the task and the step only, so that one model serves all runs."""
        number = _number(messages)
        step = sum(message.role == 'assistant' for message in messages)
        if step < STEPS - 1:
            return f'```python\nmine = {number if step == 0 else "mine * 2"}\nprint(mine)\n```'
        meeting.arrive(number)
        await meeting.wait()
        return '```python\nfinal_answer(mine + 1)\n```'

    async def run(agent: Agent[int], number: int) -> bool:
        try:
            result = await agent.run(f'You are number {number}.')
        except HabilisError as error:
            print(f'number {number}: {error}', file=sys.stderr)
            return False
        finally:
            meeting.arrive(number)  # nobody waits for one that failed
        return result.output == 2 * number + 1

    async with Agent(ScriptedModel(reply), output_type=int, settings=Settings()) as agent:
        started = time.perf_counter()
        right = await asyncio.gather(*(run(agent, number) for number in range(count)))
        taken = time.perf_counter() - started - meeting.pause
    return sum(right), taken, meeting


def _number(messages: Sequence[Message]) -> int:
    found = next(found for message in messages if (found := _NUMBER.search(message.text)))
    return int(found[1])
