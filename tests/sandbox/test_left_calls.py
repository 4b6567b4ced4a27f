"""Calls of tools that a cell leaves running end with it; tasks that wait for them are told in the next cell."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from habilis.sandbox.session import Sandbox
from tests.waiting import until

ended: list[str] = []
REASON = 'the cell that called fetch has ended, and the call with it: await it in the same cell'


async def fetch(number: int) -> int:
    """Returns only if there is no need to wait."""
    try:
        await asyncio.sleep(60 if number else 0)
    except asyncio.CancelledError:
        ended.append('cancelled')
        raise
    return number


@pytest.fixture
async def fetching() -> AsyncIterator[Sandbox]:
    ended.clear()
    async with await Sandbox.create(tools=[fetch]) as made:
        await made.run('import asyncio')
        yield made


LEFT = 't = asyncio.create_task(fetch(9))\nawait asyncio.sleep(0)'


async def test_a_task_that_awaits_a_call_of_an_earlier_cell_gets_an_error_at_once(fetching: Sandbox) -> None:
    first = await fetching.run(LEFT)
    assert first.ok
    assert [(call.tool, call.ok, call.error) for call in first.calls] == [('fetch', False, 'CancelledError: ')]
    await until(lambda: ended == ['cancelled'])
    second = await fetching.run('await t')
    assert second.error is not None
    assert (second.error.type, second.error.message) == ('CancelledError', REASON)
    assert (second.calls, second.stderr) == ((), '')


async def test_the_rest_of_a_task_continues_in_the_next_cell(fetching: Sandbox) -> None:
    code = """
steps = []
async def work():
    try:
        await fetch(9)
    except asyncio.CancelledError as error:
        steps.append(str(error))
    await asyncio.sleep(0.01)
    steps.append(await fetch(0))
    return 'done'
t = asyncio.create_task(work())
await asyncio.sleep(0)
"""
    assert (await fetching.run(code)).ok
    cell = await fetching.run('(await t, steps)')
    assert cell.value == ('done', [REASON, 0])


async def test_a_task_of_an_earlier_cell_that_only_sleeps_continues(fetching: Sandbox) -> None:
    assert (await fetching.run('t = asyncio.create_task(asyncio.sleep(0.05, 7))\nawait asyncio.sleep(0)')).ok
    assert (await fetching.run('await t')).value == 7


@pytest.mark.parametrize('end', ['1 / 0', 'exit(3)', 'raise KeyboardInterrupt'])
async def test_a_cell_that_fails_ends_its_calls_too(fetching: Sandbox, end: str) -> None:
    await fetching.run(f'{LEFT}\n{end}')
    assert [call.tool for call in (await fetching.run('1')).calls] == []
    cell = await fetching.run('await t')
    assert cell.error is not None
    assert cell.error.message == REASON


async def test_a_race_leaves_nothing_behind(fetching: Sandbox) -> None:
    race = """
tasks = [asyncio.create_task(fetch(n)) for n in (0, 9)]
done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
[t.result() for t in done]
"""
    cell = await fetching.run(race)
    assert (cell.value, sorted(call.ok for call in cell.calls)) == ([0], [False, True])
    later = await fetching.run('del tasks, done, pending\nimport gc\ngc.collect()\nawait asyncio.sleep(0.01)')
    assert (later.error, later.stderr) == (None, '')


async def test_a_call_at_the_time_limit_is_recorded_and_its_task_is_gone(fetching: Sandbox) -> None:
    cell = await fetching.run(f'{LEFT}\nawait t', seconds=0.3)
    assert cell.error is not None
    assert cell.error.kind == 'time'
    assert [call.error for call in cell.calls] == ['CancelledError: ']
    gone = await fetching.run('await t')
    assert gone.error is not None
    assert gone.error.type == 'NameError'


async def test_a_snapshot_and_a_fork_have_no_task(fetching: Sandbox) -> None:
    await fetching.run(LEFT)
    assert (await fetching.snapshot()).lost == ('t',)
    async with await fetching.fork() as twin:
        cell = await twin.run('await t')
    assert cell.error is not None
    assert cell.error.type == 'NameError'
    told = await fetching.run('await t')
    assert told.error is not None
    assert told.error.message == REASON


async def test_a_cancelled_cell_ends_its_calls(fetching: Sandbox) -> None:
    running = asyncio.create_task(fetching.run(f'{LEFT}\nprint("begun")\nawait t'))
    await asyncio.sleep(0.2)
    assert fetching.cancel()
    cell = await running
    assert cell.error is not None
    assert (cell.error.kind, [call.tool for call in cell.calls]) == ('cancelled', ['fetch'])
    await until(lambda: ended == ['cancelled'])
