"""A process that dies after any single operation on its store: the run is there and goes on, or was never begun."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from habilis.core.errors import RunBusy, RunNotFound
from habilis.flows import flow, step
from habilis.flows.contract import Job
from habilis.flows.engine import is_abandoned, queue_job, wait_in_store
from habilis.flows.worker import Worker
from habilis.journal import RunInfo, Store
from habilis.journal.leases import claims
from habilis.journal.runs import read_run
from habilis.journal.stores.urls import open_store
from tests.crash.stores import STORES, address
from tests.journal import servers
from tests.journal.dying import dying

postgres_url = servers.postgres_url
redis_url = servers.redis_url

LONG = 'x' * 100_000
"""Becomes a blob."""


@step
async def double(text: str) -> str:
    return 2 * text


@flow
async def work(text: str) -> str:
    await double('a')
    return await double(text)


JOB = Job(target=f'{__name__}:work', inputs={'text': LONG})


@pytest_asyncio.fixture(params=['memory', *STORES])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    where = 'memory:' if request.param == 'memory' else address(request.param, tmp_path, request)
    opened = open_store(where)
    yield opened
    await opened.close()


async def _resumed_or_started(store: Store, run: str) -> str:
    """What a person does who does not know how far it came."""
    try:
        return await work.resume(run, journal=store)
    except RunNotFound:
        return await (await work.start(LONG, journal=store, run_id=run)).result()


async def _started_or_resumed(store: Store, run: str) -> str:
    try:
        return await (await work.start(LONG, journal=store, run_id=run)).result()
    except RunBusy:
        return await work.resume(run, journal=store)


@pytest.mark.parametrize('go_on', [_resumed_or_started, _started_or_resumed])
async def test_a_run_whose_process_died_after_any_operation_comes_to_its_end(
    store: Store, go_on: Callable[[Store, str], Awaitable[str]]
) -> None:
    operations, ended = 0, False
    while not ended:
        run = f'run-{operations}'
        with dying(store, operations) as its_store:
            await (await work.start(LONG, journal=its_store, run_id=run)).result()
        ended = not its_store.is_dead
        assert await go_on(store, run) == 2 * LONG
        operations += 1
    assert operations > 5


async def _wait(store: Store, run: str) -> object:
    """The outcome of a run that a worker of this test takes."""
    stop = asyncio.Event()
    worker = asyncio.create_task(Worker(store=store, pause=0.01).work(stop))
    try:
        async with asyncio.timeout(60):
            outcome = await wait_in_store(store, run)
    finally:
        stop.set()
        await worker
    assert outcome.status == 'done'
    return outcome.value


async def test_a_job_whose_submitter_died_after_any_operation_is_done_or_was_not_queued(store: Store) -> None:
    operations, ended = 0, False
    while not ended:
        run = f'run-{operations}'
        with dying(store, operations) as its_store:
            await queue_job(Job(target=JOB.target, inputs=JOB.inputs, run=run), its_store)
        ended = not its_store.is_dead
        if operations == 0:
            with pytest.raises(RunNotFound):
                await store.info(run)
        else:
            assert await _wait(store, run) == 2 * LONG
        operations += 1
    assert operations == 2  # it is one operation


async def test_a_job_whose_worker_died_after_any_operation_is_done_by_another(store: Store) -> None:
    operations, ended = 0, False
    while not ended:
        run = f'run-{operations}'
        await queue_job(Job(target=JOB.target, inputs=JOB.inputs, run=run), store)
        with dying(store, operations) as its_store:
            await work.resume(run, journal=its_store)
        ended = not its_store.is_dead
        assert await _wait(store, run) == 2 * LONG
        operations += 1
    assert operations > 5


async def test_a_run_whose_process_died_right_after_it_was_created_is_interrupted(store: Store) -> None:
    with dying(store, 1) as its_store:
        await work.start('a', journal=its_store, run_id='one')
    view = await read_run(store, 'one')
    assert (view.state, [record.kind for record in view.records]) == ('interrupted', ['opened'])


async def test_workers_leave_a_run_that_was_just_created_to_its_process_for_a_while(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dying(store, 1) as its_store:
        await work.start('a', journal=its_store, run_id='one')
    assert not await is_abandoned(store, await store.info('one'))
    monkeypatch.setattr(claims, 'SECONDS', 0.0)
    assert await is_abandoned(store, await store.info('one'))
    await store.create(RunInfo(run='two', kind='flow', status='queued'))
    assert await is_abandoned(store, await store.info('two'))
