"""How far a run has come, from its records alone."""

import asyncio

import pytest

from habilis.core.errors import RunNotFound
from habilis.flows import FlowPaused, StepStatus, approval, flow, flow_status, step
from habilis.journal import MemoryStore


def states(found: list[StepStatus]) -> dict[str, str]:
    return {step.path: step.state for step in found}


@step
async def good() -> str:
    return 'x' * 100_000


@step
async def bad() -> None:
    raise ValueError('no')


async def test_steps_that_are_done_failed_and_around_them_are_distinguished() -> None:
    @flow
    async def inner() -> None:
        await good()
        await bad()

    @flow
    async def outer() -> None:
        await good()
        await inner()

    store = MemoryStore()
    run = await outer.start(journal=store)
    with pytest.raises(ValueError, match='no'):
        await run.result()
    found = await flow_status(store, run.id)
    assert states(found) == {
        'outer#1/good#1': 'done',
        'outer#1/inner#1': 'failed',
        'outer#1/inner#1/good#1': 'done',
        'outer#1/inner#1/bad#1': 'failed',
    }
    assert [step.error for step in found] == ['', 'ValueError: no', '', 'ValueError: no']
    seconds = {step.path: step.seconds for step in found}
    assert (seconds['outer#1/inner#1'] or -1) > 0
    assert seconds['outer#1/good#1'] is None  # too quick to be written down when it began


async def test_a_step_under_way_is_running_and_one_that_was_cut_off_is_not_run() -> None:
    reached = asyncio.Event()

    @step
    async def slow() -> None:
        reached.set()
        await asyncio.sleep(3600)

    @flow
    async def work() -> None:
        await slow()

    store = MemoryStore()
    run = await work.start(journal=store)
    await reached.wait()
    while not (found := states(await flow_status(store, run.id))):  # noqa: ASYNC110 - it is shown when it takes a while
        await asyncio.sleep(0.01)
    assert found == {'work#1/slow#1': 'running'}
    await run.cancel()
    assert states(await flow_status(store, run.id)) == {'work#1/slow#1': 'not run'}


async def test_what_waits_for_a_person_is_waiting_and_so_is_what_is_around_it() -> None:
    @step
    async def careful() -> bool:
        return await approval('Really?')

    @flow
    async def work() -> bool:
        return await careful()

    store = MemoryStore()
    run = await work.start(journal=store)
    with pytest.raises(FlowPaused):
        await run.result()
    assert states(await flow_status(store, run.id)) == {
        'work#1/careful#1': 'waiting',
        'work#1/careful#1/approval#1': 'waiting',
    }


async def test_how_long_a_step_took_is_unknown_if_the_run_was_stopped_in_between() -> None:
    broken = [True]

    @step
    async def fragile() -> None:
        if broken:
            raise ValueError('no')

    @flow
    async def work() -> None:
        await fragile()

    store = MemoryStore()
    run = await work.start(journal=store)
    with pytest.raises(ValueError, match='no'):
        await run.result()
    broken.clear()
    await work.resume(run.id, journal=store)
    [found] = await flow_status(store, run.id)
    assert (found.state, found.seconds) == ('done', None)


async def test_a_run_that_is_not_there_has_no_status() -> None:
    with pytest.raises(RunNotFound):
        await flow_status(MemoryStore(), 'nothing')
