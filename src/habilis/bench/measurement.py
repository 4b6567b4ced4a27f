"""Timing: medians and spreads of repeats, memory as the system counts it, and how busy the machine is."""

import os
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Repeats of one measurement, in one unit."""

    median: float
    low: float
    """First quartile."""

    high: float
    """Third quartile."""

    repeats: int


def sample(values: Sequence[float]) -> Sample:
    """Median and quartiles; the slowest repeats are the machine's doing more than the code's."""
    if len(values) < 2:
        return Sample(median=values[0], low=values[0], high=values[0], repeats=1)
    low, median, high = statistics.quantiles(values, n=4, method='inclusive')
    return Sample(median=median, low=low, high=high, repeats=len(values))


def seconds(call: Callable[[], object]) -> float:
    """How long a call takes."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def per_second(call: Callable[[], object], *, threads: int, window: float) -> float:
    """How often a call ends in a second, with so many threads calling it."""
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
    """What it would give back if it ended: memory shared with others counts in part."""

    rss: int


def memory() -> Memory | None:
    """As Linux counts it; None elsewhere."""
    try:
        lines = Path('/proc/self/smaps_rollup').read_text().splitlines()
    except OSError:
        return None
    kilobytes = {name: int(rest.split()[0]) for name, _, rest in (line.partition(':') for line in lines[1:])}
    return Memory(pss=kilobytes['Pss'] << 10, rss=kilobytes['Rss'] << 10)


def load() -> float:
    """How many processes wanted a core in the last minute; 0 where the system does not tell."""
    return os.getloadavg()[0] if hasattr(os, 'getloadavg') else 0.0


def cores() -> int:
    """Of this machine."""
    return os.cpu_count() or 1
