"""Worker processes that share a store: one that is killed is replaced, and its runs are taken over."""

import asyncio
import os
import signal
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from habilis.core.errors import RunBusy
from habilis.flows import FlowError, Job, WorkerPool
from habilis.flows.engine import queue_job, wait_in_store
from habilis.flows.worker import Worker
from habilis.journal import MemoryStore, RunInfo, Status
from habilis.journal.questions import answer_run
from habilis.journal.stores.urls import open_store
from tests.flows import app
from tests.flows.processes import Place
from tests.waiting import until

EVERYTHING = 'tests.flows.app:everything'


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv('FLOWS_FOLDER', str(tmp_path))
    return Place(tmp_path)


@asynccontextmanager
async def pool_of(place: Place, workers: int = 2) -> AsyncGenerator[WorkerPool]:
    async with WorkerPool(place.store, apps=['tests.flows.app'], workers=workers, pause=0.05) as pool:
        yield pool


async def owner_of(place: Place, run: str) -> int:
    store = open_store(place.store)
    lease = await store.lease(run)
    await store.close()
    return int(lease.owner.split('/')[1])


def lives(pid: int) -> bool:
    stat = Path(f'/proc/{pid}/stat')
    return stat.exists() and stat.read_text('utf-8').rpartition(')')[2].split()[0] not in {'Z', 'X'}


async def test_workers_do_the_runs_and_each_step_once(place: Place) -> None:
    names = [f'run{number}' for number in range(6)]
    async with pool_of(place) as pool:
        runs = [await pool.submit(Job(target=EVERYTHING, inputs={'name': name})) for name in names]
        outcomes = [await pool.wait(run) for run in runs]
        pids = pool.pids
    assert [outcome.value for outcome in outcomes] == [
        [effect.upper() for effect in app.all_effects(name)] for name in names
    ]
    assert sorted(place.effects) == sorted(effect for name in names for effect in app.all_effects(name))
    assert len(pids) == 2
    assert not any(lives(pid) for pid in pids)


async def test_a_killed_worker_is_replaced_and_its_run_taken_over_with_nothing_repeated(place: Place) -> None:
    under_way = ['x-map0', 'x-map1']
    for name in under_way:
        place.hold(name)
    async with pool_of(place) as pool:
        run = await pool.submit(Job(target=EVERYTHING, inputs={'name': 'x'}))
        for name in under_way:
            await place.reached(name)
        killed = await owner_of(place, run)
        assert killed in pool.pids
        os.kill(killed, signal.SIGKILL)
        for name in under_way:
            await place.reached(name)
        taker = await owner_of(place, run)
        assert taker not in {killed, os.getpid()}
        for name in under_way:
            place.let_go(name)
        outcome = await pool.wait(run)
        await until(lambda: len(pool.pids) == 2)
        assert killed not in pool.pids
    assert outcome.value == [effect.upper() for effect in app.all_effects('x')]
    assert sorted(place.effects) == sorted([*app.all_effects('x'), *under_way])


async def test_a_worker_that_blocks_its_event_loop_keeps_its_run(place: Place) -> None:
    """It cannot renew the lease there, and other workers see an expired one after the clock has jumped."""
    place.hold('x')
    async with pool_of(place) as pool:
        run = await pool.submit(Job(target='tests.flows.app:blocks', inputs={'name': 'x'}))
        await place.reached('x')
        store = open_store(place.store)
        owner = (await store.lease(run)).owner
        with sqlite3.connect(place.folder / 'runs.db') as file:
            file.execute('UPDATE runs SET claimed = claimed - 3600, until = until - 3600')  # as an hour later
        await asyncio.sleep(0.5)  # several polls of the other worker
        assert (await store.lease(run)).owner == owner
        with pytest.raises(RunBusy):
            await app.blocks.resume(run, journal=place.store)
        place.let_go('x')
        outcome = await pool.wait(run)
        await store.close()
    assert (outcome.status, outcome.value) == ('done', 'X')
    assert place.effects == ['x']


async def test_two_pools_on_one_store_do_not_do_the_same_run_twice(place: Place) -> None:
    names = [f'run{number}' for number in range(8)]
    async with pool_of(place, workers=1) as one, pool_of(place, workers=1) as other:
        runs = [await one.submit(Job(target='tests.flows.app:inner', inputs={'name': name})) for name in names]
        assert {(await other.wait(run)).status for run in runs} == {'done'}
    assert sorted(place.effects) == sorted(f'{name}-{number}' for name in names for number in (1, 2))


async def test_a_run_that_kills_its_workers_fails_in_the_end_and_says_why(place: Place) -> None:
    async with pool_of(place, workers=1) as pool:
        run = await pool.submit(Job(target='tests.flows.app:kills', inputs={'name': 'x'}))
        outcome = await pool.wait(run)
        assert outcome.status == 'failed'
        assert '3 processes died while they executed this run' in outcome.error
        fine = await pool.submit(Job(target='tests.flows.app:measured', inputs={'input': 'four'}))
        assert (await pool.wait(fine)).value == 4
    assert place.effects == ['x', 'x', 'x', 'four']


class _Forgetful(MemoryStore):
    """Loses a run as soon as it is listed."""

    async def runs(
        self, *, user: str | None = None, session: str | None = None, status: Status | None = None
    ) -> list[RunInfo]:
        """See `Store`."""
        found = await super().runs(user=user, session=session, status=status)
        for info in found:
            if info.run == 'lost':
                await self.delete(info.run)
        return found


class _Counting(MemoryStore):
    """Counts how often its runs are listed."""

    lists = 0

    async def runs(
        self, *, user: str | None = None, session: str | None = None, status: Status | None = None
    ) -> list[RunInfo]:
        """See `Store`."""
        self.lists += 1
        return await super().runs(user=user, session=session, status=status)


async def test_a_worker_that_has_no_room_does_not_look_for_work(place: Place) -> None:
    store, stop = _Counting(), asyncio.Event()
    place.hold('x-1')
    for name in ('x', 'y'):
        await queue_job(Job(run=name, target='tests.flows.app:inner', inputs={'name': name}), store)
    work = asyncio.create_task(Worker(store=store, pause=0.001, limit=1).work(stop))
    await place.reached('x-1')
    before = store.lists
    await asyncio.sleep(0.1)
    assert store.lists == before
    place.let_go('x-1')
    assert (await wait_in_store(store, 'y')).status == 'done'
    stop.set()
    await work


async def test_a_run_that_is_deleted_while_workers_look_for_work_does_not_stop_them(
    place: Place,
) -> None:
    store, stop = _Forgetful(), asyncio.Event()
    for run in ('lost', 'kept'):
        await queue_job(Job(run=run, target='tests.flows.app:measured', inputs={'input': run}), store)
    work = asyncio.create_task(Worker(store=store, pause=0.01).work(stop))
    outcome = await wait_in_store(store, 'kept')
    stop.set()
    await work
    assert (outcome.value, place.effects) == (4, ['kept'])


async def test_a_closed_pool_leaves_its_runs_for_the_next_one(place: Place) -> None:
    place.hold('x-inner-1')
    async with pool_of(place, workers=1) as pool:
        run = await pool.submit(Job(target=EVERYTHING, inputs={'name': 'x'}))
        await place.reached('x-inner-1')
    store = open_store(place.store)
    assert (await store.info(run)).status == 'queued'
    await store.close()
    place.let_go('x-inner-1')
    async with pool_of(place, workers=1) as pool:
        assert (await pool.wait(run)).status == 'done'
    assert [name for name in place.effects if place.effects.count(name) > 1] == ['x-inner-1'] * 2


async def test_a_run_left_by_a_process_of_no_pool_is_taken_over_too(place: Place) -> None:
    place.hold('x-round0')
    process = place.begin("finish(app.everything, 'x', store, 'one')")
    await place.reached('x-round0', process)
    process.kill()
    process.wait()
    place.let_go('x-round0')
    async with pool_of(place, workers=1) as pool:
        assert (await pool.wait('one')).status == 'done'
    assert place.effects.count('x-round0') == 2
    assert len(place.effects) == len(app.all_effects('x')) + 1


async def test_a_run_that_waits_for_a_person_continues_after_the_answer(place: Place) -> None:
    async with pool_of(place, workers=1) as pool:
        run = await pool.submit(Job(target='tests.flows.app:publish', inputs={'name': 'x'}))
        assert (await pool.wait(run)).status == 'waiting'
        store = open_store(place.store)
        await answer_run(store, run, True)
        await store.close()
        await pool.submit(Job(run=run))
        assert (await pool.wait(run)).value == 'X-YES'


async def test_workers_end_with_the_process_that_started_them(place: Place) -> None:
    script = (
        'import asyncio\nfrom habilis.flows import WorkerPool\n'
        f'async def main():\n    async with WorkerPool({place.store!r}, apps=["tests.flows.app"], workers=2) as pool:\n'
        '        print(*pool.pids, flush=True)\n        await asyncio.sleep(3600)\nasyncio.run(main())'
    )
    process = await asyncio.create_subprocess_exec(
        *place.python(script), stdout=asyncio.subprocess.PIPE, env=place.variables
    )
    assert process.stdout is not None
    pids = [int(word) for word in (await process.stdout.readline()).split()]
    assert len(pids) == 2
    process.kill()
    await process.wait()
    await until(lambda: not any(lives(pid) for pid in pids))


async def test_workers_that_cannot_start_are_reported(place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FlowError, match='a worker did not start'):
        async with WorkerPool(place.store, apps=['tests.flows.nowhere'], workers=1):
            pass
    assert "No module named 'tests.flows.nowhere'" in capfd.readouterr().err


@pytest.mark.parametrize('address', ['off', 'memory:'])
def test_a_store_that_cannot_be_shared_is_refused(address: str) -> None:
    with pytest.raises(FlowError, match='one process only'):
        WorkerPool(address, apps=[])


async def test_a_pool_that_is_not_open_is_reported(place: Place) -> None:
    with pytest.raises(FlowError, match='not started'):
        await WorkerPool(place.store, apps=[]).submit(Job(target=EVERYTHING))
    with pytest.raises(FlowError, match='workers=-1'):
        WorkerPool(place.store, apps=[], workers=-1)


async def test_the_address_of_the_store_is_not_shown_to_everybody_on_the_machine(place: Place) -> None:
    async with pool_of(place, workers=1) as pool:
        arguments = Path(f'/proc/{pool.pids[0]}/cmdline').read_text('utf-8')
    assert 'worker' in arguments.split('\0')
    assert str(place.store) not in arguments


@pytest.mark.parametrize('turns', range(6))
async def test_a_pool_can_be_closed_in_the_moment_in_which_a_new_worker_is_ready(place: Place, turns: int) -> None:
    """`close` cancels the task that waits for it, which must not go on to wait for the end of the worker."""
    process = await asyncio.create_subprocess_exec('true', stdout=asyncio.subprocess.PIPE)
    process.stdout = asyncio.StreamReader()
    pool = WorkerPool(place.store, apps=['tests.flows.app'])
    waiting = asyncio.create_task(pool._wait_until_ready(process))  # pyright: ignore[reportPrivateUsage]
    await asyncio.sleep(0.01)
    process.stdout.feed_data(b'ready\n')
    for _ in range(turns):
        await asyncio.sleep(0)
    if waiting.cancel():  # it has not returned yet
        await asyncio.wait([waiting])
        assert waiting.cancelled()
    await process.wait()
