"""Runs that are cancelled, and failures beside others: nothing is left behind, nothing is lost."""

import asyncio

import pytest

from habilis.core.errors import LeaseLost
from habilis.flows import flow, parallel, step
from habilis.journal import MemoryStore

calls: list[str] = []


@pytest.fixture(autouse=True)
def afresh() -> None:
    calls.clear()


@step
async def quick(name: str) -> str:
    calls.append(name)
    return name


async def test_a_cancelled_run_is_stopped_and_can_be_resumed() -> None:
    reached = asyncio.Event()

    @step
    async def slow() -> str:
        calls.append('slow')
        if not reached.is_set():
            reached.set()
            await asyncio.sleep(3600)
        return 'slow'

    @flow
    async def work() -> str:
        await quick('first')
        return await slow()

    store = MemoryStore()
    before = asyncio.all_tasks()
    run = await work.start(journal=store)
    await reached.wait()
    await run.cancel()
    assert asyncio.all_tasks() == before
    assert run.status == (await store.info(run.id)).status == 'stopped'
    assert (await store.lease(run.id)).until == 0
    with pytest.raises(asyncio.CancelledError):
        await run.result()
    assert await work.resume(run.id, journal=store) == 'slow'
    assert calls == ['first', 'slow', 'slow']


async def test_cancelling_the_caller_of_a_flow_cancels_all_its_tasks() -> None:
    reached, ended = asyncio.Semaphore(0), list[str]()

    @step
    async def slow(name: str) -> None:
        try:
            reached.release()
            await asyncio.sleep(3600)
        finally:
            ended.append(name)

    @flow
    async def work() -> None:
        forgotten = asyncio.create_task(slow('forgotten'))
        await asyncio.gather(slow('a'), parallel(slow, ['b', 'c']))
        await forgotten

    store = MemoryStore()
    before = asyncio.all_tasks()
    run = await work.start(journal=store)
    for _ in range(4):
        await reached.acquire()
    await run.cancel()
    assert sorted(ended) == ['a', 'b', 'c', 'forgotten']
    assert asyncio.all_tasks() == before


async def test_a_second_cancellation_does_not_keep_the_end_from_being_recorded() -> None:
    reached = asyncio.Event()

    class Slow(MemoryStore):
        async def release(self, run: str, *, epoch: int) -> None:
            await asyncio.sleep(0.02)
            await super().release(run, epoch=epoch)

    @step
    async def wait() -> None:
        reached.set()
        await asyncio.sleep(3600)

    @flow
    async def work() -> None:
        await wait()

    store = Slow()
    run = await work.start(journal=store, run_id='one')
    task = asyncio.create_task(run.cancel())
    await reached.wait()
    inner = next(task for task in asyncio.all_tasks() if task.get_name() == 'one')
    while not inner.done():
        inner.cancel()
        await asyncio.sleep(0.005)
    await task
    assert (await store.info('one')).status == 'stopped'
    assert (await store.lease('one')).until == 0


async def test_when_one_of_several_fails_steps_under_way_end_and_are_recorded() -> None:
    go, ended = asyncio.Event(), list[str]()

    @step
    async def fails() -> None:
        if not go.is_set():
            go.set()
            raise ValueError('no')

    @step
    async def under_way() -> str:
        calls.append('under way')
        await go.wait()
        await asyncio.sleep(0.01)
        return 'kept'

    async def both() -> str:
        try:
            value = await under_way()
            return value + await quick('later')
        finally:
            ended.append('both')

    @flow
    async def work() -> str:
        value, _ = await asyncio.gather(both(), fails())
        return value

    store = MemoryStore()
    before = asyncio.all_tasks()
    run = await work.start(journal=store)
    with pytest.raises(ValueError, match='no'):
        await run.result()
    assert asyncio.all_tasks() == before
    assert ended == ['both']
    assert calls == ['under way']
    assert await work.resume(run.id, journal=store) == 'keptlater'
    assert calls == ['under way', 'later']


async def test_a_task_that_waits_for_nothing_that_will_come_does_not_hold_up_the_end() -> None:
    @step
    async def fails() -> None:
        await asyncio.sleep(0.01)
        raise ValueError('no')

    async def stuck() -> None:
        await quick('first')
        await asyncio.Event().wait()

    @flow
    async def work() -> None:
        await asyncio.gather(stuck(), fails())

    with pytest.raises(ValueError, match='no'):
        await (await work.start(journal=MemoryStore())).result()


async def test_a_group_of_failures_is_raised_and_all_of_them_are_tried_again() -> None:
    broken = {'a', 'b'}

    @step
    async def fragile(name: str) -> str:
        calls.append(name)
        if name in broken:
            raise ValueError(name)
        return name

    @flow
    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            for name in ('a', 'b', 'c'):
                group.create_task(fragile(name))

    store = MemoryStore()
    run = await work.start(journal=store)
    with pytest.raises(ExceptionGroup):
        await run.result()
    broken.clear()
    await work.resume(run.id, journal=store)
    assert calls.count('a') == calls.count('b') == 2


async def test_a_run_that_was_taken_over_ends_without_writing_any_more() -> None:
    store = MemoryStore()

    @step
    async def lose_it() -> None:
        lease = await store.lease('one')
        await store.claim('one', owner='thief', seconds=60, over=lease.epoch)

    @flow
    async def work() -> None:
        await lose_it()

    run = await work.start(journal=store, run_id='one')
    with pytest.raises(LeaseLost):
        await run.result()
    assert (await store.info('one')).status == 'running'
    assert (await store.lease('one')).owner == 'thief'


async def test_who_waits_for_a_result_may_go_away_without_ending_the_run() -> None:
    go = asyncio.Event()

    @step
    async def wait() -> str:
        await go.wait()
        return 'x'

    @flow
    async def work() -> str:
        return await wait()

    run = await work.start(journal=MemoryStore())
    waiter = asyncio.create_task(run.result())
    await asyncio.sleep(0.01)
    waiter.cancel()
    await asyncio.gather(waiter, return_exceptions=True)
    go.set()
    assert await run.result() == 'x'


@pytest.mark.parametrize('how', ['step', 'parallel', 'flow'])
async def test_a_flow_that_continues_after_a_time_limit_of_its_own_does_so_again_on_resume(how: str) -> None:
    @step
    async def slow(name: str = 'x') -> str:
        calls.append('slow')
        await asyncio.sleep(3600)
        return name

    @flow
    async def inner() -> str:
        return await slow()

    fails = [True]

    @step
    async def fragile() -> None:
        if fails:
            raise ValueError('no')

    @flow
    async def work() -> str:
        try:
            async with asyncio.timeout(0.01):
                await (slow() if how == 'step' else inner() if how == 'flow' else parallel(slow, ['x']))
        except TimeoutError:
            await quick('too late')
        await fragile()
        return 'end'

    store = MemoryStore()
    run = await work.start(journal=store)
    with pytest.raises(ValueError, match='no'):
        await run.result()
    fails.clear()
    assert await work.resume(run.id, journal=store) == 'end'
    assert calls == ['slow', 'too late']


async def test_while_a_run_is_cancelled_no_new_steps_begin_and_they_are_done_in_their_time_after_resume() -> None:
    reached, hold = asyncio.Event(), [True]

    @step
    async def slow() -> str:
        calls.append('slow')
        if hold:
            reached.set()
            await asyncio.sleep(3600)
        return 'slow'

    @flow
    async def work() -> str:
        try:
            return await slow()
        finally:
            await quick('tidy')

    store = MemoryStore()
    run = await work.start(journal=store)
    await reached.wait()
    await run.cancel()
    hold.clear()
    assert (await store.info(run.id)).status == 'stopped'
    assert await work.resume(run.id, journal=store) == 'slow'
    assert calls == ['slow', 'slow', 'tidy']
