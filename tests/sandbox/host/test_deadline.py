"""The time limit of a cell counts the code's own time, not that of a person who is asked."""

import asyncio
import threading
import time

from habilis import Limits, Sandbox
from habilis.sandbox.host.deadline import Deadline, deadline_paused


async def test_time_does_not_count_while_a_tool_has_paused_the_deadline() -> None:
    def think() -> str:
        with deadline_paused():
            time.sleep(0.8)
        return 'yes'

    async with await Sandbox.create(tools=[think], limits=Limits(seconds=0.4)) as sandbox:
        assert (await sandbox.run('think()')).value == 'yes'


async def test_the_same_for_an_async_tool_and_for_two_at_once() -> None:
    async def think(seconds: float) -> float:
        with deadline_paused():
            await asyncio.sleep(seconds)
        return seconds

    code = 'import asyncio\nsum(await asyncio.gather(think(0.5), think(0.9)))'
    async with await Sandbox.create(tools=[think], limits=Limits(seconds=0.4)) as sandbox:
        assert (await sandbox.run(code)).value == 1.4


async def test_the_deadline_is_resumed_afterwards() -> None:
    def think() -> None:
        with deadline_paused():
            time.sleep(0.3)

    async with await Sandbox.create(tools=[think], limits=Limits(seconds=0.5)) as sandbox:
        cell = await sandbox.run('think()\nwhile True: pass')
        assert cell.error is not None
        assert cell.error.kind == 'time'
        assert (await sandbox.run('1 + 1')).value == 2


def test_a_deadline_with_several_pauses_is_resumed_by_the_last() -> None:
    deadline = Deadline(0.5)
    deadline.pause()
    deadline.pause()
    time.sleep(0.6)
    assert not deadline.is_expired()
    deadline.resume()
    assert not deadline.is_expired()
    other = threading.Thread(target=deadline.resume)
    other.start()
    other.join()
    assert not deadline.is_expired()
    time.sleep(0.6)
    assert deadline.is_expired()


def test_without_a_cell_there_is_nothing_to_pause() -> None:
    with deadline_paused():
        pass
