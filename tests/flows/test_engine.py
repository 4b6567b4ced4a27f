"""Engines: a run is done at least once, somewhere, and each of its steps once."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TypeVar

import pytest

from habilis.core.errors import RunBusy, RunNotFound
from habilis.flows import FlowArgumentsError, Job, LocalEngine, Outcome, load_target, queue_job, run_job
from habilis.flows.engine import is_abandoned
from habilis.flows.targets import TargetNotFound
from habilis.journal import Journal, MemoryStore, RunInfo
from habilis.journal.questions import answer_run
from habilis.journal.stores.wrapper import StoreWrapper
from tests.flows import app
from tests.flows.processes import Place

T = TypeVar('T')
EVERYTHING = 'tests.flows.app:everything'


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv('FLOWS_FOLDER', str(tmp_path))
    return Place(tmp_path)


async def test_a_job_that_was_queued_has_all_that_another_process_needs(place: Place) -> None:
    store = MemoryStore()
    run = await queue_job(Job(target=EVERYTHING, inputs={'name': 'x'}, user='ann', session='s'), store)
    info = await store.info(run)
    assert (info.status, info.name, info.user, info.session) == ('queued', EVERYTHING, 'ann', 's')
    assert await is_abandoned(store, info)
    outcome = await run_job(Job(run=run), store)
    assert (outcome.status, outcome.value) == ('done', [name.upper() for name in app.all_effects('x')])
    assert await run_job(Job(run=run), store) == outcome
    assert sorted(place.effects) == sorted(app.all_effects('x'))


async def test_a_job_may_be_run_without_being_queued_first_and_again_with_the_same_name(place: Place) -> None:
    store = MemoryStore()
    job = Job(target='tests.flows.app:inner', inputs={'name': 'x'}, run='one')
    assert await run_job(job, store) == await run_job(job, store)
    assert place.effects == ['x-1', 'x-2']


async def test_wrong_arguments_are_said_before_anything_is_queued() -> None:
    store = MemoryStore()
    with pytest.raises(FlowArgumentsError, match='name: expected str, got 3'):
        await queue_job(Job(target=EVERYTHING, inputs={'name': 3}), store)
    with pytest.raises(FlowArgumentsError, match='name: missing'):
        await queue_job(Job(target=EVERYTHING), store)
    assert await store.runs() == []


@pytest.mark.parametrize(
    ('target', 'problem'),
    [
        ('everything', 'write it as `module:name`'),
        ('tests.flows.nowhere:everything', 'make its module importable here'),
        ('tests.flows.app:nothing', 'has no flow named nothing'),
        ('tests.flows.app:note', 'has no flow named note'),
        ('tests.flows.app:effect.function', 'has no flow named'),
    ],
)
async def test_a_target_that_is_no_flow_is_named(target: str, problem: str) -> None:
    with pytest.raises(TargetNotFound, match=problem):
        await queue_job(Job(target=target), MemoryStore())


def test_flows_and_workflows_are_found_by_their_names() -> None:
    assert load_target(EVERYTHING) is app.everything
    assert load_target('tests.flows.app:measured') is app.measured.flow
    assert load_target('tests.flows.app:measure') is app.measured.flow
    assert load_target('__main__:everything', apps=['tests.flows.app']) is app.everything


async def test_the_engine_of_this_process_does_jobs_side_by_side(place: Place) -> None:
    engine = LocalEngine(MemoryStore())
    runs = [await engine.submit(Job(target=EVERYTHING, inputs={'name': name})) for name in ('a', 'b')]
    for run, name in zip(runs, ('a', 'b'), strict=True):
        outcome = await engine.wait(run)
        assert (outcome.run, outcome.status) == (run, 'done')
        assert outcome.value == [effect.upper() for effect in app.all_effects(name)]
    await engine.close()
    assert sorted(place.effects) == sorted(app.all_effects('a') + app.all_effects('b'))


class Watched(StoreWrapper):
    """A store that tells its operations."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.operations: list[str] = []

    async def _do(self, operation: str, work: Callable[[], Coroutine[object, object, T]]) -> T:
        self.operations.append(operation)
        return await work()


async def test_the_engine_of_this_process_reads_nothing_of_a_run_that_it_has_just_recorded() -> None:
    store = Watched()
    engine = LocalEngine(store)
    run = await engine.submit(Job(target='tests.flows.app:inner', inputs={'name': 'x'}))
    assert (await engine.wait(run)).status == 'done'
    assert store.operations == ['create', 'claim', *['append'] * 4, 'release']
    assert [record.kind for record in await store.load(run)][-2:] == ['done', 'ended']


async def test_a_run_that_a_worker_has_taken_from_the_engine_of_this_process_is_not_done_twice(place: Place) -> None:
    store = MemoryStore()
    engine = LocalEngine(store)
    run = await engine.submit(Job(target='tests.flows.app:inner', inputs={'name': 'x'}))
    done = await run_job(Job(run=run), store)  # before the task of the engine starts
    assert await engine.wait(run) == done
    assert place.effects == ['x-1', 'x-2']


async def test_a_failed_run_is_reported_and_can_be_submitted_again(place: Place) -> None:
    engine = LocalEngine(MemoryStore())
    run = await engine.submit(Job(target='tests.flows.app:fails', inputs={'name': 'x'}))
    told = Outcome(run=run, status='failed', error='ValueError: x')
    assert await engine.wait(run) == told
    assert await engine.submit(Job(run=run)) == run
    assert await engine.wait(run) == told
    assert place.effects == ['x']
    await engine.close()


async def test_a_run_that_waits_for_a_person_continues_when_it_is_submitted_again(place: Place) -> None:
    store = MemoryStore()
    engine = LocalEngine(store)
    run = await engine.submit(Job(target='tests.flows.app:publish', inputs={'name': 'x'}))
    assert (await engine.wait(run)).status == 'waiting'
    await answer_run(store, run, False)
    await engine.submit(Job(run=run))
    assert (await engine.wait(run)).value == 'X-NO'
    await engine.close()
    assert place.effects == ['x-no']


async def test_an_engine_that_is_closed_leaves_its_runs_for_others(place: Place) -> None:
    store = MemoryStore()
    engine = LocalEngine(store)
    place.hold('x-right')
    before = asyncio.all_tasks()
    run = await engine.submit(Job(target=EVERYTHING, inputs={'name': 'x'}))
    await place.reached('x-right')
    await engine.close()
    assert asyncio.all_tasks() == before
    assert (await store.info(run)).status == 'queued'
    place.let_go('x-right')
    assert (await run_job(Job(run=run), store)).status == 'done'
    repeated = {name for name in place.effects if place.effects.count(name) > 1}
    assert 'x-right' in repeated
    assert repeated <= {'x-right', 'x-left-1', 'x-left-2'}


async def test_a_run_of_that_name_is_not_made_twice() -> None:
    store = MemoryStore()
    job = Job(target='tests.flows.app:inner', inputs={'name': 'x'}, run='one')
    await queue_job(job, store)
    with pytest.raises(RunBusy, match='the run one exists already'):
        await queue_job(job, store)
    with pytest.raises(RunNotFound):
        await queue_job(Job(run='two'), store)
    with pytest.raises(RunNotFound):
        await queue_job(Job(run='one', user='bob'), store)
    with pytest.raises(RunNotFound):
        await run_job(Job(run='one', user='bob', target='tests.flows.app:nothing'), store)


async def test_only_flows_without_an_owner_are_abandoned() -> None:
    store = MemoryStore()
    await store.create(RunInfo(run='new', kind='flow', status='queued'))
    assert await is_abandoned(store, await store.info('new'))
    journal = await Journal.create(store, RunInfo(run='busy', kind='flow'))
    assert not await is_abandoned(store, await store.info('busy'))
    await journal.close()
    assert await is_abandoned(store, await store.info('busy'))
    assert not await is_abandoned(store, RunInfo(run='busy', kind='flow', status='stopped'))
    assert not await is_abandoned(store, RunInfo(run='busy', kind='agent', status='running'))


async def test_an_agent_runs_in_an_engine_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / 'helping.py').write_text(
        'from habilis import Agent, ScriptedModel\n'
        "model = ScriptedModel(['```python\\nfinal_answer(6 * 7)\\n```'])\n"
        "helper = Agent(model, output_type=int, name='helper')\n",
        encoding='utf-8',
    )
    monkeypatch.setattr(sys, 'path', [str(tmp_path), *sys.path])
    engine = LocalEngine(MemoryStore())
    run = await engine.submit(Job(target='helping:helper', inputs={'task': 'What is 6 * 7?'}))
    outcome = await engine.wait(run)
    assert (outcome.status, outcome.value) == ('done', 42)
    await engine.close()
