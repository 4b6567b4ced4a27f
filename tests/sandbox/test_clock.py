"""The time limit of a cell counts the code's own time, not that of a person who is asked."""

import asyncio
import threading
import time

from habilis import Limits, Sandbox
from habilis.sandbox.clock import Clock, clock_stopped


async def test_time_does_not_count_while_a_tool_has_stopped_the_clock() -> None:
    def think() -> str:
        with clock_stopped():
            time.sleep(0.8)
        return 'yes'

    async with await Sandbox.create(tools=[think], limits=Limits(seconds=0.4)) as sandbox:
        assert (await sandbox.run('think()')).value == 'yes'


async def test_the_same_for_an_async_tool_and_for_two_at_once() -> None:
    async def think(seconds: float) -> float:
        with clock_stopped():
            await asyncio.sleep(seconds)
        return seconds

    code = 'import asyncio\nsum(await asyncio.gather(think(0.5), think(0.9)))'
    async with await Sandbox.create(tools=[think], limits=Limits(seconds=0.4)) as sandbox:
        assert (await sandbox.run(code)).value == 1.4


async def test_the_clock_goes_on_afterwards() -> None:
    def think() -> None:
        with clock_stopped():
            time.sleep(0.3)

    async with await Sandbox.create(tools=[think], limits=Limits(seconds=0.5)) as sandbox:
        cell = await sandbox.run('think()\nwhile True: pass')
        assert cell.error is not None
        assert cell.error.kind == 'time'
        assert (await sandbox.run('1 + 1')).value == 2


def test_a_clock_stopped_by_several_goes_on_with_the_last() -> None:
    clock = Clock(0.5)
    clock.stop()
    clock.stop()
    time.sleep(0.6)
    assert not clock.is_over()
    clock.go_on()
    assert not clock.is_over()
    other = threading.Thread(target=clock.go_on)
    other.start()
    other.join()
    assert not clock.is_over()
    time.sleep(0.6)
    assert clock.is_over()


def test_without_a_cell_there_is_nothing_to_stop() -> None:
    with clock_stopped():
        pass
