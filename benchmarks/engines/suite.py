"""All measurements of `python -m benchmarks engines`: many scripted runs of three steps, by each engine."""

import contextlib
import os
import resource
import tempfile
import time
from collections.abc import AsyncGenerator, Callable
from importlib import import_module
from pathlib import Path

from benchmarks.engines.scripted_tasks import ANSWER, APP
from benchmarks.installation import why_missing
from benchmarks.measurement import load_average
from benchmarks.report import Progress, Report, Row, Target, make_report
from habilis.flows import Engine, LocalEngine, WorkerPool
from habilis.flows.agent_tasks import TaskResult
from habilis.flows.mapping import IN_FLIGHT, MapTask, TaskMap, map_tasks
from habilis.journal import Store
from habilis.journal.stores.urls import open_store

RUNS, QUICK_RUNS = 10_000, 200
SECONDS = 100.0
"""Target for all runs with SQLite on two cores."""

QUEUED = 16
"""Runs that wait for each process, of which it does four at a time."""

Opened = Callable[[str], contextlib.AbstractAsyncContextManager[Engine]]


async def measure(*, quick: bool, progress: Progress) -> Report:
    """Run all measurements. CPU time tells more than time where the machine has other work."""
    load, count = load_average(), QUICK_RUNS if quick else RUNS
    rows: list[Row] = []
    for name, opened in _engines().items():
        progress(f'{count:,} runs, {name}')
        rows += await _rows(name, opened, count)
    for package, name in (('ray', 'Ray'), ('distributed', 'Dask')):
        if why := why_missing(package):
            rows.append(Row(key=f'{package}_seconds', label=f'{count:,} runs, {name}', unit=' s', note=why))
    return make_report(rows, load=load, quick=quick)


async def _rows(name: str, opened: Opened, count: int) -> list[Row]:
    processes = 1 if name.startswith('in this') else len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        url = f'sqlite:{Path(folder) / "runs.db"}'
        store = open_store(url)
        async with opened(url) as engine:
            await run_tasks(engine, store, 8)  # starts everything
            memory, cpu, began = _peak(), _cpu(), time.perf_counter()
            await run_tasks(engine, store, count, first=100, processes=processes)
            seconds = time.perf_counter() - began
        cpu = _cpu() - cpu  # that of workers counts when they have ended
        await store.close()
    key, target = name.split(maxsplit=1)[0].lower(), SECONDS * count / RUNS if name.startswith('workers') else None
    bound = Target(bound=target) if target is not None else None
    return [
        Row(key=f'{key}_seconds', label=f'{count:,} runs, {name}', unit=' s', value=seconds, target=bound),
        Row(
            key=f'{key}_cpu',
            label='CPU time of a run, with its start',
            unit=' ms',
            value=cpu / count * 1e3,
        ),
        Row(key=f'{key}_memory', label='growth of the driver', unit=' MB', value=(_peak() - memory) / 1e3),
    ]


async def run_tasks(engine: Engine, store: Store, count: int, *, first: int = 0, processes: int = 1) -> None:
    """Do so many scripted runs, and check their answers. As many wait for each process as with `habilis map`."""
    tasks = (MapTask(number=first + number, task='Count.') for number in range(count))
    async for outcome in map_tasks(
        TaskMap(app=APP, in_flight=max(IN_FLIGHT, QUEUED * processes)), tasks, engine=engine, store=store
    ):
        assert isinstance(outcome.result, TaskResult), outcome.error
        assert outcome.result.output == ANSWER


def _engines() -> dict[str, Opened]:
    cores = len(os.sched_getaffinity(0))
    engines: dict[str, Opened] = {
        'in this process': _local,
        f'workers, {cores} processes': lambda url: WorkerPool(url, apps=(), workers=cores),
    }
    if not why_missing('ray'):
        engines['ray'] = lambda url: import_module('habilis.flows.ray_engine').RayEngine(url)
    if not why_missing('distributed'):
        engines['dask'] = lambda url: import_module('habilis.flows.dask_engine').DaskEngine(url)
    return engines


@contextlib.asynccontextmanager
async def _local(url: str) -> AsyncGenerator[Engine]:
    store = open_store(url)
    engine = LocalEngine(store)
    yield engine
    await engine.close()
    await store.close()


def _cpu() -> float:
    """CPU seconds of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _peak() -> float:
    """The most memory that this process has had, in kB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
