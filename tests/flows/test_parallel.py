"""The same for many items, so many at a time."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from habilis.core.errors import RunChanged
from habilis.flows import FlowError, flow, parallel, step
from habilis.journal import MemoryStore


@step
async def double(number: int) -> int:
    return 2 * number


@given(items=st.lists(st.integers(), max_size=20), limit=st.none() | st.integers(1, 5))
@settings(max_examples=50, deadline=None)
async def test_results_are_in_the_order_of_the_items(items: list[int], limit: int | None) -> None:
    @flow
    async def work(items: list[int]) -> list[int]:
        return await parallel(double, items, limit=limit)

    assert await (await work.start(items, journal=MemoryStore())).result() == [2 * item for item in items]


@pytest.mark.parametrize('limit', [1, 2, 3])
async def test_no_more_than_the_limit_work_at_a_time(limit: int) -> None:
    now, most = 0, 0

    async def busy(_: int) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.002)
        now -= 1

    await parallel(busy, range(7), limit=limit)
    assert most == limit


async def test_outside_of_a_flow_plain_functions_work_too() -> None:
    assert await parallel(str, [1, 2], limit=1) == ['1', '2']
    assert await parallel(double, [1, 2]) == [2, 4]
    assert await parallel(double, []) == []


@pytest.mark.parametrize('limit', [0, -1, 1.5])
async def test_a_limit_that_makes_no_sense_is_refused(limit: int) -> None:
    with pytest.raises(FlowError, match='limit='):
        await parallel(double, [1], limit=limit)


async def test_after_a_failure_no_more_items_are_begun_and_resume_does_only_the_rest() -> None:
    calls: list[int] = []
    broken = {2}

    @step
    async def fragile(number: int) -> int:
        calls.append(number)
        await asyncio.sleep(0)
        if number in broken:
            raise ValueError(number)
        return number

    @flow
    async def work() -> list[int]:
        return await parallel(fragile, range(6), limit=2)

    store = MemoryStore()
    run = await work.start(journal=store)
    with pytest.raises(ValueError, match='2') as caught:
        await run.result()
    assert 'in step parallel#1/~3/fragile#1 of work' in caught.value.__notes__[0]
    assert calls[:3] == [0, 1, 2]
    assert 5 not in calls
    broken.clear()
    assert await work.resume(run.id, journal=store) == [0, 1, 2, 3, 4, 5]
    assert sorted(calls) == [0, 1, 2, 2, 3, 4, 5]


async def test_items_that_failed_together_are_tried_again_together() -> None:
    calls: list[int] = []
    broken = {0, 1}
    barrier = asyncio.Barrier(2)

    @step
    async def fragile(number: int) -> int:
        calls.append(number)
        if number in broken:
            await barrier.wait()
            raise ValueError(number)
        return number

    @flow
    async def work() -> list[int]:
        return await parallel(fragile, range(2))

    store = MemoryStore()
    run = await work.start(journal=store)
    with pytest.raises(ValueError, match=r'0|1'):
        await run.result()
    broken.clear()
    assert await work.resume(run.id, journal=store) == [0, 1]
    assert sorted(calls) == [0, 0, 1, 1]


async def test_a_failure_that_the_flow_catches_is_the_same_on_replay() -> None:
    calls: list[str] = []
    broken = {'b', 'end'}

    @step
    async def fragile(name: str) -> str:
        calls.append(name)
        if name in broken:
            raise ValueError(name)
        return name

    @flow
    async def work() -> str:
        text = ''
        try:
            await parallel(fragile, ['a', 'b', 'c', 'd'], limit=2)
        except ValueError as error:
            text = str(error)
        await fragile('end')
        return text

    store = MemoryStore()
    run = await work.start(journal=store)
    with pytest.raises(ValueError, match='end'):
        await run.result()
    before = list(calls)
    broken.clear()
    assert await work.resume(run.id, journal=store) == 'b'
    assert calls == [*before, 'end']


async def test_another_number_of_items_on_resume_is_a_change() -> None:
    numbers = [1, 2, 3]
    broken = {3}

    @step
    async def fragile(number: int) -> int:
        if number in broken:
            raise ValueError(number)
        return number

    @flow
    async def work() -> list[int]:
        return await parallel(fragile, numbers)

    store = MemoryStore()
    run = await work.start(journal=store)
    with pytest.raises(ValueError, match='3'):
        await run.result()
    numbers.pop()
    with pytest.raises(RunChanged):
        await work.resume(run.id, journal=store)


async def test_nested_and_side_by_side_they_do_not_shift_each_others_records() -> None:
    calls: list[int] = []
    broken = {23}

    @step
    async def leaf(number: int) -> int:
        calls.append(number)
        await asyncio.sleep(0.001 * (number % 3))
        if number in broken:
            raise ValueError(number)
        return number

    async def row(ten: int) -> list[int]:
        return await parallel(leaf, [10 * ten + one for one in range(4)], limit=2)

    @flow
    async def work() -> list[list[int]]:
        first, second = await asyncio.gather(parallel(row, [1, 2]), parallel(row, [3, 4]))
        return [*first, *second, *await parallel(row, [5])]

    store = MemoryStore()
    run = await work.start(journal=store)
    with pytest.raises(ValueError, match='23'):
        await run.result()
    done = set(calls) - broken
    broken.clear()
    value = await work.resume(run.id, journal=store)
    assert value == [[10 * ten + one for one in range(4)] for ten in range(1, 6)]
    assert {number for number in calls if calls.count(number) > 1} == {23}
    assert done <= set(calls)
