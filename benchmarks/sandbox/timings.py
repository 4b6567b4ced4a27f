"""Measurements of the sandbox, made through its public interface."""

import asyncio
import json
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack, cast
from unittest.mock import patch

from benchmarks.fresh_process import run_python
from benchmarks.measurement import Sample, process_memory, summarize
from habilis.core.errors import SandboxError
from habilis.core.limits import Limits
from habilis.sandbox.contract import Cell
from habilis.sandbox.host.warm_guests import WarmGuests
from habilis.sandbox.options import SandboxSettings
from habilis.sandbox.pool import SandboxPool
from habilis.sandbox.session import Sandbox

CODE = '1 + 1'
ANSWER = 2
SETTLE_SECONDS = 0.03
CALLS = 1000
CONCURRENT_TOOLS = 10
TOOL_SECONDS = 0.2
FOLDER = Path(__file__).parent
"""A folder to mount."""

FIRST_RESULT = f"""
import asyncio
from habilis import Sandbox

async def main():
    async with await Sandbox.create() as sandbox:
        print((await sandbox.run({CODE!r})).value, flush=True)

asyncio.run(main())
"""


async def new_sandbox() -> float:
    """Seconds for a new sandbox and its first result, with a prestarted interpreter."""
    taken = await _new_sandbox()
    await settle()
    return taken


async def new_sandbox_with_mount() -> float:
    """The same with a mounted folder."""
    taken = await _new_sandbox(mounts={'/data': FOLDER})
    await settle()
    return taken


async def new_sandbox_cold() -> float:
    """The same with nothing started ahead."""
    with nothing_ahead():
        taken = await _new_sandbox(mounts={'/data': FOLDER})
    await settle()
    return taken


def nothing_ahead() -> AbstractContextManager[object]:
    """Every sandbox starts its own interpreter."""
    return patch.object(WarmGuests, 'take', return_value=None)


async def sandboxes_in_a_row(count: int) -> float:
    """Seconds for one of several new sandboxes with their first results, each created when the last one was closed."""
    taken = [await _new_sandbox() for _ in range(count)]
    await settle()
    return sum(taken) / count


async def cold_sandboxes_in_a_row(count: int) -> float:
    """The same with nothing started ahead."""
    with nothing_ahead():
        return await sandboxes_in_a_row(count)


async def _new_sandbox(**settings: Unpack[SandboxSettings]) -> float:
    started = time.perf_counter()
    sandbox = await Sandbox.create(**settings)
    check(await sandbox.run(CODE))
    taken = time.perf_counter() - started
    await sandbox.close()
    return taken


async def settle() -> None:
    """Let the next interpreters start, so that this does not slow the next measurement."""
    await asyncio.sleep(SETTLE_SECONDS)


async def warm_up(sandbox: Sandbox) -> None:
    """Run a first cell, and let the next interpreters start."""
    await later_cell(sandbox)
    await settle()


async def later_cell(sandbox: Sandbox) -> float:
    """Seconds for one more result in the same sandbox."""
    started = time.perf_counter()
    check(await sandbox.run(CODE))
    return time.perf_counter() - started


async def sandboxes_per_second(callers: int, window: float, backend: str = 'wasm') -> float:
    """Rate of new sandboxes with one result each, created by concurrent callers."""
    done = 0
    started = time.perf_counter()

    async def call(pool: SandboxPool) -> None:
        nonlocal done
        while time.perf_counter() < started + window:
            check(await pool.run(CODE))
            done += 1

    async with SandboxPool(callers, backend=backend) as pool:
        await asyncio.gather(*(call(pool) for _ in range(callers)))
        return done / (time.perf_counter() - started)


async def tool_call(repeats: int) -> Sample:
    """Seconds for one tool call, measured in cells that make many."""

    def add(first: int, second: int) -> int:
        return first + second

    async with await Sandbox.create(tools=[add], limits=Limits(calls=CALLS)) as sandbox:
        cells = [await sandbox.run(f'for i in range({CALLS}): n = add(i, 1)\nn') for _ in range(repeats)]
    for cell in cells:
        check(cell, CALLS)
    return summarize([cell.seconds / CALLS for cell in cells])


async def concurrent_tools(repeats: int) -> Sample:
    """Seconds for a cell that awaits several slow tools concurrently."""

    async def wait() -> int:
        await asyncio.sleep(TOOL_SECONDS)
        return 1

    code = f'import asyncio\nsum(await asyncio.gather(*(wait() for _ in range({CONCURRENT_TOOLS}))))'
    async with await Sandbox.create(tools=[wait]) as sandbox:
        cells = [await sandbox.run(code) for _ in range(repeats)]
    for cell in cells:
        check(cell, CONCURRENT_TOOLS)
    return summarize([cell.seconds for cell in cells])


def process_start(repeats: int) -> Sample:
    """Seconds from the start of a process to its first result, with a warm cache."""
    _first_result()  # fills the file system cache
    return summarize([_first_result() for _ in range(repeats)])


def _first_result() -> float:
    started = time.perf_counter()
    with subprocess.Popen([sys.executable, '-c', FIRST_RESULT], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        answer = process.stdout.readline()
        taken = time.perf_counter() - started
    if answer.strip() != str(ANSWER):
        msg = f'a new process returned {answer!r} as its first result'
        raise SandboxError(msg)
    return taken


@dataclass(frozen=True, kw_only=True)
class MemoryGrowth:
    """Memory growth of a process by live sandboxes, in bytes."""

    count: int
    pss: int
    rss: int


def live_sandboxes(count: int) -> MemoryGrowth | None:
    """Memory of live sandboxes, measured in a new process. None if the system is not Linux."""
    code = f'from benchmarks.sandbox.timings import print_memory_growth; print_memory_growth({count})'
    output = run_python(code, what=f'{count:,} live sandboxes', error=SandboxError)
    numbers = cast('dict[str, int] | None', json.loads(output))
    return None if numbers is None else MemoryGrowth(**numbers)


def print_memory_growth(count: int) -> None:
    """Entry point of the new process."""
    print(json.dumps(asyncio.run(_memory_growth(count))))


async def _memory_growth(count: int) -> dict[str, int] | None:
    sandboxes = [await Sandbox.create()]  # loads the component, which all sandboxes share
    check(await sandboxes[0].run(CODE))
    before = process_memory()
    for _ in range(count):
        sandbox = await Sandbox.create()
        check(await sandbox.run(CODE))
        sandboxes.append(sandbox)
    after = process_memory()
    await asyncio.gather(*(sandbox.close() for sandbox in sandboxes))
    if before is None or after is None:
        return None
    return {'count': count, 'pss': after.pss - before.pss, 'rss': after.rss - before.rss}


def check(cell: Cell, expected: object = ANSWER) -> None:
    """Raise `SandboxError` if a cell returned a wrong value."""
    if cell.error is not None or cell.value != expected:
        msg = f'the sandbox returned {cell.error or cell.text} instead of {expected!r}'
        raise SandboxError(msg)
