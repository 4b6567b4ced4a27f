"""The threads that guests run on: reused, bounded when idle, deep, and never waited for in vain."""

import asyncio
import threading
import weakref

import pytest

from habilis.sandbox.host import workers as module
from habilis.sandbox.host.workers import KEEP_IDLE, WORKERS, Workers, require_deep_stack
from tests.waiting import until


async def test_a_call_runs_on_another_thread_and_its_outcome_comes_back() -> None:
    def fail() -> None:
        raise KeyError('x')

    assert await WORKERS.submit(threading.current_thread) is not threading.current_thread()
    with pytest.raises(KeyError):
        await WORKERS.submit(fail)


async def test_threads_are_reused_and_only_some_stay_when_they_are_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, 'IDLE_SECONDS', 0.1)
    workers = Workers()
    first = await workers.submit(threading.current_thread)
    assert await workers.submit(threading.current_thread) is first
    go = threading.Event()

    def wait() -> threading.Thread:
        go.wait(5)
        return threading.current_thread()

    jobs = [workers.submit(wait) for _ in range(KEEP_IDLE + 10)]
    go.set()
    threads = await asyncio.gather(*jobs)
    assert len(set(threads)) == KEEP_IDLE + 10
    await until(lambda: len([thread for thread in threads if thread.is_alive()]) <= KEEP_IDLE)
    await asyncio.sleep(0.2)
    assert len([thread for thread in threads if thread.is_alive()]) == KEEP_IDLE


async def test_an_idle_thread_keeps_nothing_of_its_last_call() -> None:
    class Large:
        def work(self) -> None: ...

    large = Large()
    left = weakref.ref(large)
    await WORKERS.submit(large.work)
    del large
    await until(lambda: left() is None)


async def test_only_workers_have_the_deep_stack() -> None:
    before = threading.stack_size()
    await Workers().submit(require_deep_stack)
    assert threading.stack_size() == before
    with pytest.raises(RuntimeError, match='deep stack'):
        require_deep_stack()
    with pytest.raises(RuntimeError, match='deep stack'):
        await asyncio.to_thread(require_deep_stack)


async def test_a_cancelled_caller_can_still_wait_for_the_end_of_the_call() -> None:
    go, ended = threading.Event(), list[str]()
    job = WORKERS.start(lambda: (go.wait(60), ended.append('call')))
    job.future.cancel()
    await job.finish(lambda: ended.append('afterwards'), 0.05)
    assert ended == []
    go.set()
    await until(lambda: ended == ['call', 'afterwards'])
    await job.finish(lambda: ended.append('later'), 60)
    assert ended == ['call', 'afterwards', 'later']


async def test_an_abandoned_call_continues_and_does_no_harm() -> None:
    go, ended = threading.Event(), threading.Event()
    job = WORKERS.start(lambda: go.wait(60))
    job.give_up(TimeoutError('too long'), ended.set)
    with pytest.raises(TimeoutError):
        await job.future
    assert not ended.is_set()
    go.set()
    await until(ended.is_set)


def test_a_loop_that_is_closed_meanwhile_is_no_harm() -> None:
    go = threading.Event()
    done = threading.Event()

    def work() -> None:
        go.wait(5)
        done.set()

    async def leave() -> None:
        WORKERS.submit(work)

    asyncio.run(leave())
    go.set()
    assert done.wait(5)
    assert asyncio.run(again()) == 'fine'


async def again() -> str:
    return await WORKERS.submit(lambda: 'fine')


async def test_a_result_that_comes_too_late_is_discarded() -> None:
    go, freed = threading.Event(), list[str]()

    def make() -> str:
        go.wait(60)
        return 'guest'

    job = WORKERS.start(make, discard=freed.append)
    job.future.cancel()
    go.set()
    await until(lambda: freed == ['guest'])
    assert await WORKERS.start(lambda: 'taken', discard=freed.append).future == 'taken'
    assert freed == ['guest']


def test_a_result_for_a_loop_that_is_closed_is_discarded() -> None:
    go, freed = threading.Event(), threading.Event()

    async def leave() -> None:
        WORKERS.start(lambda: go.wait(60), discard=lambda _: freed.set()).future.cancel()

    asyncio.run(leave())
    go.set()
    assert freed.wait(60)
