"""Measurements of the backends `docker` and `remote`: sandboxes in containers and on a server."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Unpack

from benchmarks.docker import find_docker
from benchmarks.measurement import interleave
from benchmarks.report import Comparison, Pair, Progress, Row, Target, time_row
from benchmarks.sandbox import timings
from habilis.sandbox.options import SandboxSettings
from habilis.sandbox.session import Sandbox

WARM_SECONDS = 3.0
"""Time for the next containers to start."""

DOCKER_ALLOWANCE_MS = 50.0
CONCURRENT = 100
CELLS = 5
WORK = 'sum(range(20_000))'
_SERVE = (sys.executable, '-m', 'habilis', 'serve', 'sandboxes', '--port', '0')


async def measure_docker(rounds: int, cells: int, progress: Progress) -> list[Row]:
    """New containers next to `docker run` of the same image, warm ones, and later cells."""
    found = find_docker()
    if found.problem:
        return [Row(key='docker_new', label='docker: new sandbox', unit='ms', note=found.problem)]
    progress('docker: new sandboxes')
    image: SandboxSettings = {'image': found.image}
    async with await Sandbox.create('docker', **image) as sandbox:  # prepares the image
        await timings.warm_up(sandbox)
        [later] = await interleave(cells, partial(timings.later_cell, sandbox))

    async def run_docker() -> float:
        started = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            *('docker', 'run', '--rm', '--network', 'none', found.image, 'python3', '-c', f'print({timings.CODE})'),
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await process.communicate()
        assert output.decode().strip() == str(timings.ANSWER)
        return time.perf_counter() - started

    async def warm() -> float:
        await asyncio.sleep(WARM_SECONDS)
        return await _new('docker', **image)

    async def cold() -> float:
        return await _new('docker', image=found.image, mounts={'/data': timings.FOLDER})

    cold_times, theirs = await interleave(rounds, cold, run_docker)
    [warm_times] = await interleave(rounds, warm)
    pair = Pair(ours=cold_times, peer=theirs)
    slower = (cold_times.median - theirs.median) * 1e3
    return [
        Row(
            key='docker_new',
            label='docker: new sandbox + first result, minus docker run',
            unit='ms',
            value=slower,
            target=Target(bound=DOCKER_ALLOWANCE_MS),
            comparison=Comparison(peer='docker run', pair=pair),
        ),
        time_row('docker_warm', 'docker: the same from a warm container', warm_times, 40),
        time_row('docker_later', 'docker: later cell', later),
    ]


async def measure_remote(rounds: int, cells: int, progress: Progress) -> list[Row]:
    """Cells of a server in a process of its own, as it is used, next to the same backend in this process."""
    progress('remote: cells over loopback')
    server = await asyncio.create_subprocess_exec(*_SERVE, stderr=asyncio.subprocess.PIPE)
    assert server.stderr is not None
    said = (await server.stderr.readline()).decode()
    url = next((word for word in said.split() if word.startswith('http://')), None)
    if url is None:
        await server.wait()
        return [Row(key='remote_later', label='remote on loopback: later cell', unit='ms', note=said.strip())]
    try:
        async with await Sandbox.create('remote', url=url) as sandbox, await Sandbox.create() as local:
            await timings.warm_up(sandbox)
            await timings.warm_up(local)
            theirs, ours = await interleave(
                cells, partial(timings.later_cell, local), partial(timings.later_cell, sandbox)
            )
        progress(f'remote: {CONCURRENT} at once')
        alone, remote = await interleave(max(2, rounds // 5), partial(_many, 'wasm'), partial(_many, 'remote', url=url))
    finally:
        server.terminate()
        await server.wait()
    ratio = remote.median / alone.median
    return [
        time_row('remote_later', 'remote on loopback: later cell', ours, 2.0),
        time_row('remote_later_wasm', 'the same in this process (wasm)', theirs),
        Row(
            key='remote_many',
            label=f'remote: {CONCURRENT} sandboxes at once ÷ the same in this process',
            unit='×',
            value=ratio,
            target=Target(bound=1.3),
        ),
    ]


async def _new(backend: str, **settings: Unpack[SandboxSettings]) -> float:
    started = time.perf_counter()
    sandbox = await Sandbox.create(backend, **settings)
    timings.check(await sandbox.run(timings.CODE))
    taken = time.perf_counter() - started
    await sandbox.close()
    return taken


async def _many(backend: str, **settings: Unpack[SandboxSettings]) -> float:
    """Seconds for some cells in each of many sandboxes, all at once."""
    sandboxes = [await Sandbox.create(backend, **settings) for _ in range(CONCURRENT)]
    await asyncio.gather(*(sandbox.run(timings.CODE) for sandbox in sandboxes))

    async def work(sandbox: Sandbox) -> None:
        for _ in range(CELLS):
            await sandbox.run(WORK)

    started = time.perf_counter()
    await asyncio.gather(*map(work, sandboxes))
    taken = time.perf_counter() - started
    await asyncio.gather(*(sandbox.close() for sandbox in sandboxes))
    return taken


MEASURES: dict[str, Callable[[int, int, Progress], Awaitable[list[Row]]]] = {
    'docker': measure_docker,
    'remote': measure_remote,
}
"""By backend: a function of rounds, cells and progress."""
