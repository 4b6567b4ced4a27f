"""Going on with a run: what was saved is not done again, at any level."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from habilis.core.errors import JournalError, RunBusy, RunChanged, RunNotFound
from habilis.flows import Flow, current_flow, flow, flow_status, parallel, step
from habilis.journal import MemoryStore, RunInfo

calls: list[str] = []
broken: set[str] = set()


@pytest.fixture(autouse=True)
def afresh() -> None:
    calls.clear()
    broken.clear()


@step
async def work(name: str) -> str:
    calls.append(name)
    await asyncio.sleep(0)
    if name in broken:
        raise ValueError(name)
    return name.upper()


@flow
async def inner(names: list[str]) -> list[str]:
    return [await work(name) for name in names]


@flow
async def nested(rounds: int = 2) -> list[str]:
    found = await inner(['a', 'b'])
    left, middle, right = await asyncio.gather(work('left'), inner(['c', 'd']), work('right'))
    found += [left, *middle, right]
    for number in range(rounds):
        found.append(await work(f'round {number}'))
    found += await parallel(work, ['x', 'y', 'z'], limit=2)
    return found


ALL = ['a', 'b', 'left', 'c', 'd', 'right', 'round 0', 'round 1', 'x', 'y', 'z']


async def test_a_failed_run_says_where_and_continues_with_the_failed_step_alone() -> None:
    store = MemoryStore()
    broken.add('round 1')
    run = await nested.start(journal=store)
    with pytest.raises(ValueError, match='round 1') as caught:
        await run.result()
    assert caught.value.__notes__ == [
        f'in step work#2 of nested {run.id}; resume it with nested.resume({run.id!r})',
    ]
    info = await store.info(run.id)
    assert (info.status, info.error) == ('failed', 'ValueError: round 1')
    broken.clear()
    value = await nested.resume(run.id, journal=store)
    assert value == ['A', 'B', 'LEFT', 'C', 'D', 'RIGHT', 'ROUND 0', 'ROUND 1', 'X', 'Y', 'Z']
    assert sorted(calls) == sorted([*ALL, 'round 1'])
    assert (await store.info(run.id)).status == 'done'


@pytest.mark.parametrize('failing', ALL)
async def test_wherever_a_run_fails_nothing_that_was_done_is_done_again(failing: str) -> None:
    store = MemoryStore()
    broken.add(failing)
    run = await nested.start(journal=store)
    with pytest.raises(ValueError, match=failing):
        await run.result()
    broken.clear()
    await nested.resume(run.id, journal=store)
    assert sorted(calls) == sorted([*ALL, failing])


async def test_a_run_that_fails_again_and_again_is_resumed_again_and_again() -> None:
    store = MemoryStore()
    broken.update({'b', 'x', 'z'})
    run = await nested.start(journal=store)
    with pytest.raises(ValueError, match='b'):
        await run.result()
    with pytest.raises(ValueError, match='b'):
        await nested.resume(run.id, journal=store)
    broken.discard('b')
    with pytest.raises(ValueError, match='x'):
        await nested.resume(run.id, journal=store)
    broken.clear()
    await nested.resume(run.id, journal=store)
    assert {name: calls.count(name) for name in ALL if calls.count(name) > 1} == {'b': 3, 'x': 2}


async def test_a_failure_that_the_flow_catches_stays_as_it_was() -> None:
    @flow
    async def careful() -> str:
        caught = ''
        try:
            await work('bad')
        except ValueError as error:
            caught = str(error)
        await work('good')
        await work('end')
        return caught

    store = MemoryStore()
    broken.update({'bad', 'end'})
    run = await careful.start(journal=store)
    with pytest.raises(ValueError, match='end'):
        await run.result()
    broken.clear()
    assert await careful.resume(run.id, journal=store) == 'bad'
    assert calls == ['bad', 'good', 'end', 'end']


async def test_a_run_that_is_done_gives_its_result_again_without_doing_anything() -> None:
    store = MemoryStore()
    run = await nested.start(journal=store)
    value = await run.result()
    before = await store.load(run.id)
    assert await nested.resume(run.id, journal=store) == value
    assert (await store.load(run.id), sorted(calls)) == (before, sorted(ALL))


async def test_typed_inputs_come_back_from_the_record() -> None:
    store = MemoryStore()
    broken.add('round 0')
    run = await nested.start(rounds=1, journal=store)
    with pytest.raises(ValueError, match='round 0'):
        await run.result()
    broken.clear()
    assert len(await nested.resume(run.id, journal=store)) == 10


def flow_named(name: str, function: Callable[..., Awaitable[object]]) -> Flow[..., object]:
    return flow(name=name)(function)


async def test_inputs_that_no_longer_fit_the_parameters_are_named() -> None:
    async def before(size: int) -> None:
        await work(str(size))

    async def renamed(length: int) -> None:
        await work(str(length))

    async def retyped(size: list[int]) -> None:
        await work(str(size))

    store = MemoryStore()
    broken.add('3')
    run = await flow_named('measure', before).start(3, journal=store)
    with pytest.raises(ValueError, match='3'):
        await run.result()
    for changed, problem in [(renamed, 'size: no such parameter'), (retyped, 'no longer match')]:
        with pytest.raises(RunChanged, match=problem):
            await flow_named('measure', changed).resume(run.id, journal=store)
    broken.clear()
    await flow_named('measure', before).resume(run.id, journal=store)
    assert calls == ['3', '3']


async def test_changed_code_is_detected_and_the_run_can_continue_from_there() -> None:
    async def before() -> str:
        return await work('a') + await work('b') + await work('c')

    async def after() -> str:
        return await work('a') + await work('other') + await work('c')

    store = MemoryStore()
    broken.add('c')
    run = await flow_named('letters', before).start(journal=store)
    with pytest.raises(ValueError, match='c'):
        await run.result()
    broken.clear()
    with pytest.raises(RunChanged, match='with different arguments'):
        await flow_named('letters', after).resume(run.id, journal=store)
    assert calls == ['a', 'b', 'c']
    assert await flow_named('letters', after).resume(run.id, journal=store, on_change='continue') == 'AOTHERC'
    assert calls == ['a', 'b', 'c', 'other', 'c']


async def test_another_flow_or_an_agent_cannot_resume_it() -> None:
    store = MemoryStore()
    broken.add('a')
    run = await inner.start(['a'], journal=store)
    with pytest.raises(ValueError, match='a'):
        await run.result()
    with pytest.raises(RunChanged, match='is a run of the flow inner'):
        await nested.resume(run.id, journal=store)
    await store.create(RunInfo(run='talk', kind='agent', name='helper'))
    with pytest.raises(JournalError, match='the run of an agent'):
        await nested.resume('talk', journal=store)
    with pytest.raises(RunNotFound):
        await nested.resume('nothing', journal=store)


async def test_two_users_do_not_see_each_others_runs() -> None:
    """G8."""
    store = MemoryStore()
    run = await inner.start(['a'], journal=store, user='ann', session='s1')
    await run.result()
    with pytest.raises(RunNotFound):
        await inner.resume(run.id, journal=store, user='bob')
    with pytest.raises(RunNotFound):
        await inner.reset(run.id, journal=store, user='bob')
    with pytest.raises(RunNotFound):
        await flow_status(store, run.id, user='bob')
    assert await inner.resume(run.id, journal=store, user='ann') == ['A']
    assert [info.run for info in await store.runs(user='ann', session='s1')] == [run.id]
    assert await store.runs(user='bob') == []


async def test_a_run_that_somebody_works_on_is_not_resumed_a_second_time() -> None:
    going = asyncio.Event()

    @step
    async def wait() -> None:
        await going.wait()

    @flow
    async def slow() -> None:
        await wait()

    store = MemoryStore()
    run = await slow.start(journal=store)
    with pytest.raises(RunBusy):
        await slow.resume(run.id, journal=store)
    with pytest.raises(RunBusy, match='already'):
        await slow.start(journal=store, run_id=run.id)
    going.set()
    await run.result()


async def test_reset_forgets_the_steps_and_keeps_what_went_in() -> None:
    """G4."""
    store = MemoryStore()
    broken.add('b')
    run = await inner.start(['a', 'b'], journal=store)
    with pytest.raises(ValueError, match='b'):
        await run.result()
    await inner.reset(run.id, journal=store)
    assert (await store.info(run.id)).status == 'stopped'
    assert await flow_status(store, run.id) == []
    broken.clear()
    assert await inner.resume(run.id, journal=store) == ['A', 'B']
    assert calls == ['a', 'b', 'a', 'b']
    await inner.reset(run.id, journal=store)
    assert await inner.resume(run.id, journal=store) == ['A', 'B']
    assert calls == ['a', 'b'] * 3


async def test_outputs_of_steps_that_were_answered_from_the_record_are_there_too() -> None:
    seen: list[object] = []

    @flow
    async def remembering() -> None:
        await work('a')
        seen.append(dict(current_flow().outputs))
        await work('b')

    store = MemoryStore()
    broken.add('b')
    run = await remembering.start(journal=store)
    with pytest.raises(ValueError, match='b'):
        await run.result()
    broken.clear()
    await remembering.resume(run.id, journal=store)
    assert seen == [{'work': 'A', 'work#1': 'A'}] * 2
