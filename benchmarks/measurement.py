"""Measure times, rates and memory."""

import os
import statistics
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Median and quartiles of repeated measurements."""

    median: float
    low: float
    """First quartile."""

    high: float
    """Third quartile."""

    repeats: int


def summarize(values: Sequence[float]) -> Sample:
    """Median and quartiles, which ignore outliers caused by other load on the machine."""
    if len(values) < 2:
        return Sample(median=values[0], low=values[0], high=values[0], repeats=1)
    low, median, high = statistics.quantiles(values, n=4, method='inclusive')
    return Sample(median=median, low=low, high=high, repeats=len(values))


async def interleave(rounds: int, *measures: Callable[[], Awaitable[float]]) -> list[Sample]:
    """Take every measurement once per round, so that other load affects all of them alike."""
    values: list[list[float]] = [[] for _ in measures]
    for _ in range(rounds):
        for measure, taken in zip(measures, values, strict=True):
            taken.append(await measure())
    return [summarize(taken) for taken in values]


def calls_per_second(call: Callable[[], object], *, threads: int, window: float) -> float:
    """Rate of a call made by several threads for `window` seconds."""
    counts = [0] * threads
    failures: list[BaseException] = []
    end = time.perf_counter() + window

    def work(index: int) -> None:
        try:
            while time.perf_counter() < end:
                call()
                counts[index] += 1
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(index,)) for index in range(threads)]
    started = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failures:
        raise failures[0]
    return sum(counts) / (time.perf_counter() - started)


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Memory of this process in bytes."""

    pss: int
    """Proportional set size: shared memory counts in part."""

    rss: int


def process_memory() -> Memory | None:
    """Memory of this process; None if the system is not Linux."""
    try:
        lines = Path('/proc/self/smaps_rollup').read_text().splitlines()
    except OSError:
        return None
    kilobytes = {name: int(rest.split()[0]) for name, _, rest in (line.partition(':') for line in lines[1:])}
    return Memory(pss=kilobytes['Pss'] << 10, rss=kilobytes['Rss'] << 10)


def load_average() -> float:
    """Load average of the last minute; 0 where the system has none."""
    return os.getloadavg()[0] if hasattr(os, 'getloadavg') else 0.0


def cpu_count() -> int:
    """Number of CPU cores."""
    return os.cpu_count() or 1
