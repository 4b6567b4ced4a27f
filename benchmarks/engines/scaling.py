"""`python -m benchmarks engines --scaling FILE.svg`: the same work by 1, 2, 4, … processes, as a table and a plot."""

import asyncio
import math
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.engines.suite import run_tasks
from benchmarks.fresh_process import ROOT
from benchmarks.journal.servers import postgres_server
from benchmarks.measurement import load_average
from benchmarks.report import Progress, Report, Row, make_report
from habilis.core.errors import SandboxError
from habilis.flows import WorkerPool
from habilis.journal.stores.urls import open_store

MOST = 16
RUNS, QUICK_RUNS = 200, 20
"""For each process."""

SECONDS, QUICK_SECONDS = 3.0, 0.5
SANDBOXES, SQLITE, POSTGRES = 'new sandboxes', 'runs, SQLite', 'runs, PostgreSQL'

SANDBOX_PROGRAM = """
import asyncio, sys, time
from benchmarks.sandbox.timings import CODE, check
from habilis import Sandbox

async def main():
    async with await Sandbox.create() as sandbox:
        check(await sandbox.run(CODE))
    print('ready', flush=True)
    sys.stdin.readline()
    done, end = 0, time.monotonic() + float(sys.argv[1])
    while time.monotonic() < end:
        async with await Sandbox.create() as sandbox:
            check(await sandbox.run(CODE))
        done += 1
    print(done)

asyncio.run(main())
"""

Rates = dict[str, list[tuple[int, float]]]
"""For each kind of work: the number of processes, and how often a second it was done."""


async def measure_scaling(target: Path, *, quick: bool, progress: Progress) -> Report:
    """Measure, and write the plot."""
    load, cores = load_average(), len(os.sched_getaffinity(0))
    counts = [2**power for power in range(5) if 2**power <= min(MOST, cores)]
    rates: Rates = {SANDBOXES: [], SQLITE: []}
    with tempfile.TemporaryDirectory() as folder:
        async with postgres_server('') as server:
            stores = {SQLITE: f'sqlite:{folder}/runs.db'}
            if not server.unavailable:
                stores[POSTGRES], rates[POSTGRES] = server.store_url, []
            for count in counts:
                progress(f'{count} processes')
                rates[SANDBOXES].append((count, await _sandboxes(count, QUICK_SECONDS if quick else SECONDS)))
                for name, url in stores.items():
                    rates[name].append((count, await _runs(url, count, (QUICK_RUNS if quick else RUNS) * count)))
    await asyncio.to_thread(target.write_text, draw(rates), encoding='utf-8')
    rows = [
        Row(key=f'{name}_{count}', label=f'{name}, {count} processes', unit='/s', value=rate)
        for name, found in rates.items()
        for count, rate in found
    ]
    return make_report(rows, load=load, quick=quick)


async def _runs(url: str, workers: int, count: int) -> float:
    store = open_store(url)
    async with WorkerPool(url, apps=(), workers=workers) as engine:
        first = workers * 1_000_000  # a task that was done is not done again
        await run_tasks(engine, store, 4 * workers, first=first)  # starts everything
        began = time.perf_counter()
        await run_tasks(engine, store, count, first=first + 1000, processes=workers)
        seconds = time.perf_counter() - began
    await store.close()
    return count / seconds


async def _sandboxes(processes: int, seconds: float) -> float:
    """All begin at the same time."""
    pipe = asyncio.subprocess.PIPE
    command = [sys.executable, '-c', SANDBOX_PROGRAM, str(seconds)]
    started = [
        await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdin=pipe, stdout=pipe) for _ in range(processes)
    ]
    for process in started:
        assert process.stdout is not None
        if await process.stdout.readline() != b'ready\n':
            msg = 'a process of the benchmark has ended'
            raise SandboxError(msg)
    outputs = await asyncio.gather(*(process.communicate(b'\n') for process in started))
    return sum(int(output) for output, _ in outputs) / seconds


# The plot -------------------------------------------------------------------------------------------------------------

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _LINE = 640, 360, 60, 50, 14
_COLOURS = ('#2563eb', '#d97706', '#059669')


def draw(rates: Rates) -> str:
    """An SVG with logarithmic axes, on which linear scaling is a straight line: dashed, from the first point."""
    values = [rate for found in rates.values() for _, rate in found]
    lowest, highest = math.floor(math.log2(min(values))), math.ceil(math.log2(max(values)))
    widest = max(1, *(math.log2(found[-1][0]) for found in rates.values()))

    def place(count: float, rate: float) -> str:
        x = _LEFT + math.log2(count) / widest * (_WIDTH - _LEFT - 180)
        y = (_HEIGHT - _BOTTOM) * (1 - (math.log2(rate) - lowest) / max(1, highest - lowest)) + 10
        return f'{x:.1f},{y:.1f}'

    parts = [_text(place(1, 2.0**power), f'{2**power:,}', dx=-8, anchor='end') for power in range(lowest, highest + 1)]
    counts = [count for count, _ in next(iter(rates.values()))]
    parts += [_text(place(count, 2.0**lowest), str(count), dy=22, anchor='middle') for count in counts]
    parts.append(_text(place(1, 2.0**lowest), 'processes; how often a second', dy=42))
    labels: list[float] = []
    for (name, found), colour in zip(rates.items(), _COLOURS, strict=False):
        line = ' '.join(place(count, rate) for count, rate in found)
        ideal = ' '.join(place(count, found[0][1] * count) for count, _ in found if found[0][1] * count <= 2.0**highest)
        parts.append(f'<polyline points="{ideal}" fill="none" stroke="{colour}" stroke-dasharray="3 4" opacity="0.6"/>')
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        end = place(*found[-1])
        height = float(end.partition(',')[2])
        offset = 4 + sum(_LINE for other in labels if abs(other - height) < _LINE)  # not on each other
        labels.append(height)
        parts.append(_text(end, f'{name}: {found[-1][1]:,.0f}', dx=8, dy=offset, colour=colour))
    style = 'font-family="sans-serif" font-size="12"'
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT + 20}" width="{_WIDTH}" height="{_HEIGHT + 20}"'
    return '\n'.join([f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>', *parts, '</svg>\n'])


def _text(place: str, text: str, *, dx: int = 0, dy: int = 4, anchor: str = 'start', colour: str = '#6b7280') -> str:
    x, y = (float(part) for part in place.split(','))
    return f'<text x="{x + dx:.1f}" y="{y + dy:.1f}" text-anchor="{anchor}" fill="{colour}">{text}</text>'
