"""Samples, rates and memory."""

import sys
import threading

import pytest

from benchmarks.measurement import Sample, calls_per_second, interleave, process_memory, summarize


def test_a_sample_has_median_and_quartiles() -> None:
    assert summarize([5, 1, 2, 3, 4]) == Sample(median=3, low=2, high=4, repeats=5)
    assert summarize([7]) == Sample(median=7, low=7, high=7, repeats=1)


def test_a_rate_counts_the_calls_of_all_threads() -> None:
    pause = threading.Event()
    assert 20 < calls_per_second(lambda: pause.wait(0.01), threads=2, window=0.3) < 210


def test_a_failing_call_is_not_counted_but_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        calls_per_second(lambda: 1 / 0, threads=2, window=0.1)


@pytest.mark.skipif(sys.platform != 'linux', reason='Linux counts memory this way')
def test_memory_is_what_linux_says() -> None:
    now = process_memory()
    assert now is not None
    assert now.rss >= now.pss > 1 << 20


async def test_interleaved_measurements_take_turns() -> None:
    order: list[str] = []

    async def first() -> float:
        order.append('first')
        return 1.0

    async def second() -> float:
        order.append('second')
        return 2.0

    one, two = await interleave(2, first, second)
    assert order == ['first', 'second', 'first', 'second']
    assert (one.median, two.median, two.repeats) == (1.0, 2.0, 2)
