"""What open streams cost running agents: processor time of this process per step, with and without them.

The clients are another process, whose time is not counted.
"""

import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from benchmarks.fresh_process import ROOT
from benchmarks.server.serving import served
from habilis.agent import Agent
from habilis.core.settings import Settings
from habilis.models import Message, ScriptedModel
from habilis.server.assistant.watching import WatchedStore

STEPS = 5


async def step_seconds(agents: int, streams: int) -> float:
    """Processor seconds of a step of so many agents at once, while so many streams are open."""
    with tempfile.TemporaryDirectory() as folder:
        async with served(Path(folder)) as (store, port):
            return await _run_all(store, port, agents, streams)


async def _run_all(store: WatchedStore, port: int, agents: int, streams: int) -> float:
    arrived, all_here, go = 0, asyncio.Event(), asyncio.Event()

    async def reply(messages: Sequence[Message]) -> str:
        nonlocal arrived
        step = sum(message.role == 'assistant' for message in messages)
        if step == 0:
            arrived += 1
            if arrived == agents:
                all_here.set()
            await go.wait()
        return f'```python\n{"final_answer(x)" if step == STEPS - 1 else f"x = {step}"}\n```'

    async with (
        Agent(ScriptedModel(reply), journal=store, settings=Settings()) as agent,
        asyncio.TaskGroup() as group,
    ):
        runs = [group.create_task(agent.run('Go', run_id=f'run-{number}', user='local')) for number in range(agents)]
        await all_here.wait()
        async with _clients(port, [f'/api/runs/run-{number % agents}/events' for number in range(streams)]):
            started = time.process_time()
            go.set()
            await asyncio.gather(*runs)
            taken = time.process_time() - started
    return taken / (agents * STEPS)


@contextlib.asynccontextmanager
async def _clients(port: int, paths: Sequence[str]) -> AsyncGenerator[None]:
    if not paths:
        yield
        return
    command = [sys.executable, '-m', 'benchmarks.server.clients', str(port), *paths]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        await process.stdout.readline()
        yield
    finally:
        process.kill()
        await process.wait()
