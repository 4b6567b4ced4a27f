"""`habilis bench sandbox --backends`: start and cells of every backend that is usable here."""

import asyncio
import itertools
import time
from functools import partial

from habilis.bench.measurement import interleave, load_average
from habilis.bench.report import Progress, Report, Row, make_report, time_row
from habilis.bench.sandbox.containers_and_servers import MEASURES
from habilis.bench.sandbox.timings import CODE, check
from habilis.core.errors import HabilisError
from habilis.core.limits import Limits
from habilis.sandbox.backends import names
from habilis.sandbox.session import Sandbox

PAUSE = 2.0
"""Seconds between two sandboxes, in which a backend may start a guest ahead."""

TARGETS = {'wasm': (3.5, 3.5, 0.25), 'process': (60.0, 15.0, 0.5)}
"""Milliseconds: new sandbox, another one with the same settings, later cell."""

_numbers = itertools.count()


async def measure_backends(*, quick: bool, progress: Progress) -> Report:
    """Measure each backend; one that cannot start has a note instead of a number."""
    load = load_average()
    rounds = 3 if quick else 15
    rows: list[Row] = []
    for name in names():
        own = MEASURES.get(name)
        rows += await (own(rounds, 50 * rounds, progress) if own else _measure(name, rounds, progress))
    return make_report(rows, load=load, quick=quick, peers=[])


async def _measure(name: str, rounds: int, progress: Progress) -> list[Row]:
    progress(f'backend {name}')
    new, again, later = TARGETS.get(name, (None, None, None))
    try:
        await _new(name)
        [fresh] = await interleave(rounds, partial(_new, name))
        await _again(name)
        [ready] = await interleave(rounds, partial(_again, name))
        async with await Sandbox.create(name) as sandbox:
            check(await sandbox.run(CODE))
            [cells] = await interleave(50 * rounds, partial(_cell, sandbox))
    except HabilisError as error:
        return [Row(key=f'{name}_new', label=f'{name}: new sandbox + first result', unit='ms', note=str(error))]
    return [
        time_row(f'{name}_new', f'{name}: new sandbox + first result', fresh, new),
        time_row(f'{name}_again', f'{name}: another one with the same settings', ready, again),
        time_row(f'{name}_later', f'{name}: later cell', cells, later),
    ]


async def _new(name: str) -> float:
    """With settings that no other sandbox has had."""
    return await _first_result(name, Limits(output_bytes=1_000_000 + next(_numbers)))


async def _again(name: str) -> float:
    taken = await _first_result(name, Limits())
    await asyncio.sleep(PAUSE)
    return taken


async def _first_result(name: str, limits: Limits) -> float:
    started = time.perf_counter()
    async with await Sandbox.create(name, limits=limits) as sandbox:
        check(await sandbox.run(CODE))
        return time.perf_counter() - started


async def _cell(sandbox: Sandbox) -> float:
    started = time.perf_counter()
    check(await sandbox.run(CODE))
    return time.perf_counter() - started
