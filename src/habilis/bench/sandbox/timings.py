"""Our own numbers, each as a user of the library would get it."""

import asyncio
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack, cast

from habilis.bench.measurement import Sample, memory, sample
from habilis.bench.sandbox.peers import ANSWER, CODE
from habilis.core.errors import SandboxError
from habilis.core.limits import Limits
from habilis.sandbox.contract import Cell
from habilis.sandbox.options import Settings
from habilis.sandbox.pool import SandboxPool
from habilis.sandbox.session import Sandbox

SETTLE = 0.03
CALLS = 1000
TOOLS_AT_ONCE = 10
TOOL_SECONDS = 0.2

FIRST_RESULT = f"""
import asyncio
from habilis import Sandbox

async def main():
    async with await Sandbox.create() as sandbox:
        print((await sandbox.run({CODE!r})).value, flush=True)

asyncio.run(main())
"""


async def new() -> float:
    """Seconds for a new sandbox and its first result, with an interpreter that was started ahead."""
    taken = await _new()
    await settle()
    return taken


async def new_cold() -> float:
    """The same where none was started ahead: that is not done for a sandbox with mounted folders."""
    return await _new(mounts={'/data': Path(__file__).parent})


async def _new(**settings: Unpack[Settings]) -> float:
    started = time.perf_counter()
    sandbox = await Sandbox.create(**settings)
    check(await sandbox.run(CODE))
    taken = time.perf_counter() - started
    await sandbox.close()
    return taken


async def settle() -> None:
    """Let the next interpreters be started, so that this does not slow what is measured next."""
    await asyncio.sleep(SETTLE)


async def later(sandbox: Sandbox) -> float:
    """Seconds for one more result in the same sandbox."""
    started = time.perf_counter()
    check(await sandbox.run(CODE))
    return time.perf_counter() - started


async def rate(callers: int, window: float) -> float:
    """Fresh sandboxes a second, each with one result, so many at once."""
    done = 0
    started = time.perf_counter()

    async def call(pool: SandboxPool) -> None:
        nonlocal done
        while time.perf_counter() < started + window:
            check(await pool.run(CODE))
            done += 1

    async with SandboxPool(callers) as pool:
        await asyncio.gather(*(call(pool) for _ in range(callers)))
        return done / (time.perf_counter() - started)


async def host_call(repeats: int) -> Sample:
    """Seconds for one call of a tool, measured over a cell that makes many."""

    def add(first: int, second: int) -> int:
        return first + second

    async with await Sandbox.create(tools=[add], limits=Limits(calls=CALLS)) as sandbox:
        cells = [await sandbox.run(f'for i in range({CALLS}): n = add(i, 1)\nn') for _ in range(repeats)]
    for cell in cells:
        check(cell, CALLS)
    return sample([cell.seconds / CALLS for cell in cells])


async def gather(repeats: int) -> Sample:
    """Seconds for a cell that awaits ten slow tools at once."""

    async def wait() -> int:
        await asyncio.sleep(TOOL_SECONDS)
        return 1

    code = f'import asyncio\nsum(await asyncio.gather(*(wait() for _ in range({TOOLS_AT_ONCE}))))'
    async with await Sandbox.create(tools=[wait]) as sandbox:
        cells = [await sandbox.run(code) for _ in range(repeats)]
    for cell in cells:
        check(cell, TOOLS_AT_ONCE)
    return sample([cell.seconds for cell in cells])


def start_up(repeats: int) -> Sample:
    """Seconds from starting a process to its first result, with everything in the cache."""
    _first_result()  # fills the cache of the file system too
    return sample([_first_result() for _ in range(repeats)])


def _first_result() -> float:
    started = time.perf_counter()
    with subprocess.Popen([sys.executable, '-c', FIRST_RESULT], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        answer = process.stdout.readline()
        taken = time.perf_counter() - started
    if answer.strip() != str(ANSWER):
        msg = f'a fresh process gave {answer!r} as its first result'
        raise SandboxError(msg)
    return taken


@dataclass(frozen=True, kw_only=True)
class Live:
    """Growth of a process by so many live sandboxes, in bytes."""

    count: int
    pss: int
    rss: int


def live(count: int) -> Live | None:
    """Measured in a process of its own, so that nothing from before is used again. None where Linux does not tell."""
    code = f'from habilis.bench.sandbox.timings import print_live; print_live({count})'
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        msg = f'{count:,} live sandboxes: {(done.stderr.strip().splitlines() or ["no reason given"])[-1]}'
        raise SandboxError(msg)
    numbers = cast('dict[str, int] | None', json.loads(done.stdout))
    return None if numbers is None else Live(**numbers)


def print_live(count: int) -> None:
    """In the process of its own."""
    print(json.dumps(asyncio.run(_live(count))))


async def _live(count: int) -> dict[str, int] | None:
    sandboxes = [await Sandbox.create()]  # loads the component, which all share
    check(await sandboxes[0].run(CODE))
    before = memory()
    for _ in range(count):
        sandbox = await Sandbox.create()
        check(await sandbox.run(CODE))
        sandboxes.append(sandbox)
    after = memory()
    await asyncio.gather(*(sandbox.close() for sandbox in sandboxes))
    if before is None or after is None:
        return None
    return {'count': count, 'pss': after.pss - before.pss, 'rss': after.rss - before.rss}


def check(cell: Cell, expected: object = ANSWER) -> None:
    """A number that comes from a wrong answer is worth nothing."""
    if cell.error is not None or cell.value != expected:
        msg = f'the sandbox gave {cell.error or cell.text} instead of {expected!r}'
        raise SandboxError(msg)
