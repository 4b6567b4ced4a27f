"""What an agent does besides steps: it saves the variables of its sandbox, and goes on with a run that was stopped."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from habilis.agent import Agent, RunLimits
from habilis.cli.bench.measure import Sample, sample
from habilis.cli.bench.ours import settle
from habilis.core.errors import AgentError, SandboxError
from habilis.core.settings import Settings
from habilis.journal import Journal, RunInfo, Scope
from habilis.journal.stores import open_store
from habilis.models import Message, ScriptedModel
from habilis.sandbox import Sandbox

MEGABYTE = 1_000_000
STEPS = 10
TASK = 'Count.'

TEXT = "table = '\\n'.join(f'{n},customer number {n},{n * 7 % 1000}' for n in range(36_000))"
"""As a file that was read: a megabyte in one piece."""

ROWS = """
rows = [{'id': n, 'name': f'customer number {n}', 'total': n * 7 % 1000} for n in range(14_000)]
numbers = list(range(1_000_000, 1_096_000))
"""
"""The same taken apart into 150,000 objects, each of which has to be saved."""


@dataclass(frozen=True, kw_only=True)
class Saved:
    """Seconds to save the variables."""

    all: Sample
    sandbox: Sample
    """Of it the sandbox alone."""

    size: int
    """Bytes of what was saved."""


async def save(where: str, repeats: int, data: str) -> Saved:
    """A step that has the snapshot of a sandbox attached, after a cell that made a megabyte of data."""
    whole: list[float] = []
    inside: list[float] = []
    store = open_store(where)
    journal = await Journal.create(store, RunInfo(run='bench-snapshots', name='bench'))
    scope = Scope(journal, '')
    size = 0
    async with await Sandbox.create() as sandbox:

        async def snapshot() -> dict[str, bytes]:
            nonlocal size
            started = time.perf_counter()
            data = await sandbox.snapshot()
            inside.append(time.perf_counter() - started)
            size = len(data)
            return {'main': data}

        async def work() -> None:
            """The cell has run."""

        for number in range(repeats + 1):
            cell = await sandbox.run(f'{data}\nround = {number}')  # another one: what is saved already is not again
            if cell.error is not None:
                raise SandboxError(str(cell.error))
            started = time.perf_counter()
            await scope.step('cell', work, attach=snapshot)
            whole.append(time.perf_counter() - started)
    await journal.close()
    await store.delete(journal.run)
    await store.close()
    if size < MEGABYTE:
        msg = f'the snapshot has only {size:,} bytes'
        raise SandboxError(msg)
    return Saved(all=sample(whole[1:]), sandbox=sample(inside[1:]), size=size)


async def resume(where: str, repeats: int) -> Sample:
    """Seconds from a new `Agent` to its first live step, in a run that has `STEPS` of them."""
    return sample([await _resume(where) for _ in range(repeats)])


async def _resume(where: str) -> float:
    reached: list[float] = []

    def reply(messages: Sequence[Message]) -> str:
        reached.append(time.perf_counter())
        return f'```python\nprint({len(messages)})\n```'

    settings = Settings()
    async with Agent(ScriptedModel(reply), journal=where, settings=settings, limits=RunLimits(steps=STEPS)) as agent:
        stopped = await agent.run(TASK)
    await settle()
    before = len(reached)
    started = time.perf_counter()
    async with Agent(ScriptedModel(reply), journal=where, settings=settings) as agent:
        await agent.resume(stopped.run_id, max_steps=1)
    await settle()
    if (before, len(reached)) != (STEPS, STEPS + 1):
        msg = f'the model was asked {before} and {len(reached) - before} times instead of {STEPS} and 1'
        raise AgentError(msg)
    return reached[-1] - started


def disk(folder: Path, repeats: int) -> Sample:
    """Seconds until this disk says that it has a page: what `durability=full` waits for at least once."""
    path = folder / 'disk'
    times: list[float] = []
    file = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        for _ in range(repeats):
            started = time.perf_counter()
            os.write(file, b'\0' * 4096)
            os.fsync(file)
            times.append(time.perf_counter() - started)
    finally:
        os.close(file)
        path.unlink()
    return sample(times)
