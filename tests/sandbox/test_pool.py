"""The pool keeps its bound, serves in order, and loses no place whatever happens."""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from habilis import Limits, Sandbox, SandboxPool
from habilis.core.errors import PoolTimeout, SandboxClosed, SandboxError
from habilis.sandbox import backends
from habilis.sandbox.contract import Guest, GuestSpec
from tests.waiting import until


class CountingBackend:
    """The `wasm` backend, counted; or one that fails when told to."""

    isolation = 'as wasm'

    def __init__(self) -> None:
        self.started = 0
        self.broken = False

    def start(self, spec: GuestSpec) -> Guest:
        if self.broken:
            msg = 'nothing left to start'
            raise SandboxError(msg)
        self.started += 1
        return backends.backend('wasm').start(spec)


@pytest.fixture
def counting() -> Iterator[CountingBackend]:
    backend = CountingBackend()
    backends.register('counting', lambda: backend)
    yield backend
    backends.unregister('counting')


async def settle(seconds: float = 0.05) -> None:
    """Let tasks of the pool come to rest."""
    await asyncio.sleep(seconds)


# The bound ------------------------------------------------------------------------------------------------------------


async def test_never_more_than_the_size_are_in_use() -> None:
    most = 0
    async with SandboxPool(3) as pool:

        async def work(number: int) -> object:
            nonlocal most
            async with pool.sandbox() as sandbox:
                most = max(most, pool.in_use)
                return (await sandbox.run(f'import time\ntime.sleep(0.02)\n{number}')).value

        assert await asyncio.gather(*(work(number) for number in range(20))) == list(range(20))
        assert most == 3
        assert pool.in_use == 0


@pytest.mark.parametrize(('size', 'warm'), [(0, 0), (-1, 0), (1, -1)])
def test_a_pool_without_room_is_refused(size: int, warm: int) -> None:
    with pytest.raises(ValueError, match='size must be at least 1'):
        SandboxPool(size, warm=warm)


async def test_waiting_too_long_for_a_sandbox_is_an_error_that_says_what_to_do() -> None:
    async with SandboxPool(1, timeout=0.1) as pool, pool.sandbox():
        start = time.monotonic()
        with pytest.raises(PoolTimeout, match=r'all 1 sandboxes .* in use for 0\.1 s; release some or make it larger'):
            await pool.acquire()
        assert time.monotonic() - start >= 0.1
        with pytest.raises(PoolTimeout, match='for 0 s'):
            await pool.acquire(timeout=0)
    async with SandboxPool(1) as pool:
        assert (await pool.acquire(timeout=0)).closed is False


async def test_a_task_that_asks_twice_of_a_pool_of_one_gets_an_error_and_not_a_hang() -> None:
    async with asyncio.timeout(60), SandboxPool(1) as pool:
        async with pool.sandbox():
            with pytest.raises(PoolTimeout):
                async with pool.sandbox(timeout=0.1):
                    pass
        assert (await pool.run('1', timeout=1)).value == 1


async def test_first_come_first_served() -> None:
    served: list[int] = []
    async with SandboxPool(1) as pool:
        held = await pool.acquire()

        async def wait(number: int) -> None:
            async with pool.sandbox():
                served.append(number)
                await asyncio.sleep(0.01)

        tasks: list[asyncio.Task[None]] = []
        for number in range(8):
            tasks.append(asyncio.create_task(wait(number)))
            await asyncio.sleep(0)
        await pool.release(held)
        late = asyncio.create_task(wait(8))
        await asyncio.gather(*tasks, late)
    assert served == list(range(9))


# No place is lost -----------------------------------------------------------------------------------------------------


async def test_a_waiter_that_is_cancelled_takes_no_place() -> None:
    async with SandboxPool(2, timeout=1) as pool:
        held = [await pool.acquire(), await pool.acquire()]
        waiters = [asyncio.create_task(pool.acquire()) for _ in range(5)]
        await settle()
        for waiter in waiters[:4]:
            waiter.cancel()
        await pool.release(held[0])
        waiters[0].cancel()  # again, at the moment a place becomes free
        assert await waiters[4] is not None
        await pool.release(held[1])
        assert pool.in_use == 1
        await pool.acquire()
        with pytest.raises(PoolTimeout):
            await pool.acquire(timeout=0.05)


async def test_cancelling_at_any_moment_of_acquiring_takes_no_place() -> None:
    async with SandboxPool(1, timeout=1) as pool:
        for moment in range(30):
            task = asyncio.create_task(pool.acquire())
            for _ in range(moment % 10):
                await asyncio.sleep(0.0005)
            task.cancel()
            [outcome] = await asyncio.gather(task, return_exceptions=True)
            if isinstance(outcome, Sandbox):
                await pool.release(outcome)
        async with pool.sandbox() as sandbox:
            assert (await sandbox.run('1')).value == 1


async def test_a_sandbox_that_cannot_be_made_gives_its_place_back(counting: CountingBackend) -> None:
    async with SandboxPool(1, backend='counting', timeout=0.2) as pool:
        counting.broken = True
        for _ in range(3):
            with pytest.raises(SandboxError, match='nothing left to start'):
                await pool.acquire()
        counting.broken = False
        assert (await pool.run('2')).value == 2


async def test_releasing_twice_frees_one_place_only() -> None:
    async with SandboxPool(1, timeout=0.05) as pool:
        first = await pool.acquire()
        await pool.release(first)
        await pool.release(first)
        await pool.acquire()
        with pytest.raises(PoolTimeout):
            await pool.acquire()
        await pool.release(first)
        with pytest.raises(PoolTimeout):
            await pool.acquire()


async def test_an_error_in_the_body_gives_the_place_back() -> None:
    async with SandboxPool(1, timeout=0.2) as pool:
        for _ in range(3):
            with pytest.raises(KeyError):
                async with pool.sandbox():
                    raise KeyError
        assert pool.in_use == 0


# Fresh ones -----------------------------------------------------------------------------------------------------------


async def test_a_user_of_the_pool_sees_no_variables_or_files_of_another() -> None:
    async with SandboxPool(1, workspace=True) as pool:
        assert (await pool.run("secret = 1\nopen('note', 'w').write('x')")).ok
        seen = await pool.run("import os\n'secret' in globals(), os.listdir('.')")
        assert seen.value == (False, [])


async def test_runs_leave_no_folder_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
    async with SandboxPool(2, warm=2, workspace=True, limits=Limits(seconds=0.3)) as pool:
        cells = await asyncio.gather(*(pool.run(code) for code in ['1', '1/0', 'while True: pass', 'exit(1)'] * 2))
        assert [cell.ok for cell in cells] == [True, False, False, False] * 2
    assert list(tmp_path.iterdir()) == []


async def test_warm_ones_are_used_and_made_again(counting: CountingBackend) -> None:
    async with SandboxPool(4, warm=2, backend='counting') as pool:
        assert counting.started == 2
        async with pool.sandbox() as one, pool.sandbox() as two:
            await until(lambda: counting.started == 4)
            assert one is not two
        async with pool.sandbox():
            await until(lambda: counting.started == 5)


async def test_a_warm_one_that_cannot_be_made_is_no_harm(
    counting: CountingBackend, caplog: pytest.LogCaptureFixture
) -> None:
    async with SandboxPool(2, warm=1, backend='counting') as pool:
        counting.broken = True
        async with pool.sandbox():
            await settle()
            with pytest.raises(SandboxError, match='nothing left'):
                await pool.acquire()
        counting.broken = False
        assert (await pool.run('1')).value == 1
    assert caplog.records == []


async def test_a_pool_that_cannot_start_warm_leaves_nothing_open(counting: CountingBackend) -> None:
    counting.broken = True
    pool = SandboxPool(1, warm=1, backend='counting')
    with pytest.raises(SandboxError, match='nothing left'):
        await pool.__aenter__()
    with pytest.raises(SandboxClosed):
        await pool.acquire()


# Idle ones ------------------------------------------------------------------------------------------------------------


async def test_an_idle_sandbox_is_closed_and_makes_room() -> None:
    async with SandboxPool(1, idle_seconds=0.2) as pool:
        idle = await pool.acquire()
        assert (await idle.run('1')).ok
        start = time.monotonic()
        next_one = await pool.acquire(timeout=30)
        assert time.monotonic() - start > 0.15
        assert idle.closed
        with pytest.raises(SandboxClosed):
            await idle.run('1')
        assert (await next_one.run('2')).value == 2


async def test_a_sandbox_that_is_used_or_runs_long_is_not_idle() -> None:
    async with SandboxPool(2, idle_seconds=2) as pool, pool.sandbox() as long, pool.sandbox() as often:

        async def keep_using() -> None:
            for _ in range(30):
                assert (await often.run('1')).ok
                await asyncio.sleep(0.1)

        cell, _ = await asyncio.gather(long.run("import time\ntime.sleep(3)\n'done'"), keep_using())
        assert cell.value == 'done'
        assert not long.closed


# The end --------------------------------------------------------------------------------------------------------------


async def test_closing_ends_what_runs_and_refuses_waiting_callers() -> None:
    pool = SandboxPool(2, warm=1, timeout=5)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(pool)
        running = await pool.acquire()
        cell = asyncio.create_task(running.run('while True: pass'))
        idle = await pool.acquire()
        waiting = [asyncio.create_task(pool.acquire()) for _ in range(3)]
        await settle()
    error = (await cell).error
    assert error is not None
    assert error.kind == 'cancelled'
    assert running.closed
    assert idle.closed
    for outcome in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(outcome, SandboxClosed)
    assert pool.in_use == 0
    with pytest.raises(SandboxClosed, match='this pool is closed'):
        await pool.acquire()
    await pool.close()


async def test_a_sandbox_that_is_being_made_while_the_pool_closes_is_not_left_open() -> None:
    pool = SandboxPool(1)
    making = asyncio.create_task(pool.acquire())
    await asyncio.sleep(0)
    await pool.close()
    with pytest.raises(SandboxClosed):
        await making
    assert pool.in_use == 0
