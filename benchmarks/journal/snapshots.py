"""Time snapshots of a sandbox, the resume of an agent, and an fsync."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measurement import Sample, summarize
from benchmarks.sandbox.timings import settle
from habilis.agent import Agent, RunLimits
from habilis.core.errors import AgentError, SandboxError
from habilis.core.settings import Settings
from habilis.journal import Journal, RunInfo, Scope
from habilis.journal.stores.urls import open_store
from habilis.models import Message, ScriptedModel
from habilis.sandbox import Sandbox

MEGABYTE = 1_000_000
STEPS = 10
TASK = 'Count.'

TEXT = "table = '\\n'.join(f'{n},customer number {n},{n * 7 % 1000}' for n in range(36_000))"
"""A megabyte as one string."""

ROWS = """
rows = [{'id': n, 'name': f'customer number {n}', 'total': n * 7 % 1000} for n in range(14_000)]
numbers = list(range(1_000_000, 1_096_000))
"""
"""The same size in 150,000 objects."""


@dataclass(frozen=True, kw_only=True)
class SnapshotTimes:
    """Seconds to record the variables of a sandbox."""

    total: Sample
    sandbox: Sample
    """Share of the sandbox."""

    size: int
    """Bytes of the snapshot."""


async def snapshot_times(url: str, repeats: int, data: str) -> SnapshotTimes:
    """Time a step with an attached snapshot, after a cell that created a megabyte of data."""
    total: list[float] = []
    sandbox_only: list[float] = []
    store = open_store(url)
    journal = await Journal.create(store, RunInfo(run='bench-snapshots', name='bench'))
    scope = Scope(journal, '')
    size = 0
    async with await Sandbox.create() as sandbox:

        async def snapshot() -> dict[str, bytes]:
            nonlocal size
            started = time.perf_counter()
            data = await sandbox.snapshot()
            sandbox_only.append(time.perf_counter() - started)
            size = len(data)
            return {'main': data}

        async def work() -> None:
            """Does nothing: the cell has already run."""

        for number in range(repeats + 1):
            # The changed variable makes a new snapshot: identical ones are stored only once.
            cell = await sandbox.run(f'{data}\nround = {number}')
            if cell.error is not None:
                raise SandboxError(str(cell.error))
            started = time.perf_counter()
            await scope.step('cell', work, attach=snapshot)
            total.append(time.perf_counter() - started)
    await journal.close()
    await store.delete(journal.run)
    await store.close()
    if size < MEGABYTE:
        msg = f'the snapshot is only {size:,} bytes'
        raise SandboxError(msg)
    return SnapshotTimes(total=summarize(total[1:]), sandbox=summarize(sandbox_only[1:]), size=size)


async def resume_time(url: str, repeats: int) -> Sample:
    """Seconds from a new `Agent` to its first new step, in a run with `STEPS` recorded steps."""
    return summarize([await _resume(url) for _ in range(repeats)])


async def _resume(url: str) -> float:
    requests: list[float] = []

    def reply(messages: Sequence[Message]) -> str:
        requests.append(time.perf_counter())
        return f'```python\nprint({len(messages)})\n```'

    settings = Settings()
    async with Agent(ScriptedModel(reply), journal=url, settings=settings, limits=RunLimits(steps=STEPS)) as agent:
        stopped = await agent.run(TASK)
    await settle()
    before = len(requests)
    started = time.perf_counter()
    async with Agent(ScriptedModel(reply), journal=url, settings=settings) as agent:
        await agent.resume(stopped.run_id, max_steps=1)
    await settle()
    if (before, len(requests)) != (STEPS, STEPS + 1):
        msg = f'expected {STEPS} and 1 model requests, not {before} and {len(requests) - before}'
        raise AgentError(msg)
    return requests[-1] - started


def fsync_time(folder: Path, repeats: int) -> Sample:
    """Seconds to write and fsync a page, the lower bound of a step with `durability=full`."""
    path = folder / 'fsync'
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
    return summarize(times)
