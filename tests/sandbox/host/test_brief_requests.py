"""Short requests are done on the thread of the event loop, and nothing else is."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from habilis import Sandbox
from habilis.sandbox.host import interpreter
from habilis.sandbox.host.workers import WORKERS
from habilis.sandbox.wasm import engine


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], Any]]:
    """What was given to a worker."""
    given: list[Callable[[], Any]] = []
    start = WORKERS.start

    def counting(call: Callable[[], Any], **options: Any) -> Any:
        given.append(call)
        return start(call, **options)

    monkeypatch.setattr(WORKERS, 'start', counting)
    return given


async def _sandbox() -> Sandbox:
    sandbox = await Sandbox.create('wasm')
    assert (await sandbox.run('x = 1\nx')).value == 1
    while not WORKERS.is_idle:  # those of other tests
        await asyncio.to_thread(time.sleep, 0.01)
    return sandbox


async def test_a_short_cell_needs_no_worker(jobs: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, 'BRIEF', 10_000)  # also on a busy machine
    async with await _sandbox() as sandbox:
        jobs.clear()
        cells = [await sandbox.run('print(x)\nx += 1\nx') for _ in range(20)]
        assert [(cell.value, cell.stdout) for cell in cells] == [(n + 2, f'{n + 1}\n') for n in range(20)]
        assert not jobs


async def test_cells_of_several_sandboxes_run_side_by_side(jobs: list[object]) -> None:
    async with await _sandbox() as first, await _sandbox() as second:
        await asyncio.sleep(2 * interpreter.MAX_TURN)
        jobs.clear()
        await asyncio.gather(first.run('1'), second.run('2'))
        assert jobs, 'both waited for this thread'


async def test_a_long_cell_does_not_block_the_event_loop() -> None:
    async with await _sandbox() as sandbox:
        task = asyncio.create_task(sandbox.run('while True: pass', seconds=1))
        turns = 0
        while not task.done():
            await asyncio.sleep(0.01)
            turns += 1
        assert turns > 5
        error = task.result().error
        assert error is not None
        assert error.kind == 'time'
        assert (await sandbox.run('x')).value == 1


async def test_a_tool_is_called_on_another_thread() -> None:
    def where() -> str:
        return threading.current_thread().name

    async def here() -> str:
        return threading.current_thread().name

    async with await Sandbox.create('wasm', tools=[where, here]) as sandbox:
        cell = await sandbox.run('where(), await here()')
        match cell.value:
            case (str(of_function), str(of_coroutine)):
                assert of_coroutine == threading.current_thread().name != of_function
            case _:
                pytest.fail(str(cell))


async def test_short_cells_let_other_tasks_run() -> None:
    turns: list[int] = []

    async def other() -> None:
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    async with await _sandbox() as sandbox:
        task = asyncio.create_task(other())
        for _ in range(200):
            await sandbox.run('x')
        task.cancel()
    assert len(turns) > 3


async def test_a_guest_that_kept_the_event_loop_for_too_long_may_not_again(
    jobs: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await _sandbox() as sandbox:
        monkeypatch.setattr(interpreter, 'MAX_BRIEF', -1.0)
        await sandbox.run('y = sum(range(2_000_000))')
        jobs.clear()
        await sandbox.run('x')
        assert jobs


async def test_a_short_cell_may_end_the_interpreter() -> None:
    async with await _sandbox() as sandbox:
        cell = await sandbox.run('import os\nos._exit(3)')
        assert cell.error is not None
        assert cell.error.kind == 'exit'
        assert (await sandbox.run('x')).value == 1
