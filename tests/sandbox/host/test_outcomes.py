"""Outcomes of workers: the task that awaits one continues at once, in its own context, and none is lost."""

import asyncio
import contextvars
import gc
import threading

import pytest

from habilis.sandbox.host.outcomes import LoopCalls, WorkerOutcome
from tests.waiting import until

name = contextvars.ContextVar('name', default='')


async def test_the_task_continues_before_anything_else_and_in_its_own_context() -> None:
    loop = asyncio.get_running_loop()
    outcome: WorkerOutcome[int] = WorkerOutcome(loop=loop)
    order: list[object] = []

    async def wait() -> None:
        name.set('task')
        order.append(await outcome)
        order.append(name.get())

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    outcome.add_done_callback(lambda done: order.append(f'second callback: {done.result()}'))
    loop.call_soon(outcome.set_result, 1)
    loop.call_soon(order.append, 'later call')
    await task
    await asyncio.sleep(0)
    assert order == [1, 'task', 'later call', 'second callback: 1']


async def test_a_task_that_is_cancelled_ends_after_the_one_that_cancels_it() -> None:
    outcome: WorkerOutcome[int] = WorkerOutcome()
    order: list[str] = []

    async def wait() -> None:
        try:
            await outcome
        finally:
            order.append('cancelled')

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    order.append('cancel returned')
    with pytest.raises(asyncio.CancelledError):
        await task
    assert order == ['cancel returned', 'cancelled']
    assert outcome.cancelled()


async def test_an_error_and_a_removed_callback_are_as_in_any_future() -> None:
    failed: WorkerOutcome[int] = WorkerOutcome()
    asyncio.get_running_loop().call_soon(failed.set_exception, KeyError('x'))
    with pytest.raises(KeyError):
        await failed
    outcome: WorkerOutcome[int] = WorkerOutcome()
    called: list[object] = []
    outcome.add_done_callback(called.append)
    assert outcome.remove_done_callback(called.append) == 1
    outcome.set_result(1)
    await asyncio.sleep(0)
    assert not called


async def test_calls_of_many_threads_run_on_the_loop_and_one_that_fails_loses_no_other() -> None:
    loop = asyncio.get_running_loop()
    problems: list[object] = []
    loop.set_exception_handler(lambda _loop, context: problems.append(context['exception']))
    calls = LoopCalls(loop)
    done: list[threading.Thread] = []

    def fail() -> None:
        raise KeyError('x')

    def add() -> None:
        calls.add(fail)
        for _ in range(500):
            calls.add(lambda: done.append(threading.current_thread()))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    await asyncio.to_thread(lambda: [thread.join() for thread in threads])  # more than the loop was told of
    await until(lambda: len(done) == 2000)
    assert set(done) == {threading.current_thread()}
    assert [type(problem) for problem in problems] == [KeyError] * 4


def test_the_pipe_of_a_loop_is_closed_with_it() -> None:
    loop = asyncio.new_event_loop()
    calls = LoopCalls(loop)
    loop.close()
    del loop
    gc.collect()
    with pytest.raises(OSError, match='Bad file descriptor'):
        calls.add(lambda: None)
