"""Engines on clusters: a process or a node that is killed loses nothing, and nothing is done twice."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from habilis.flows import FlowError, Job
from habilis.journal import Store
from habilis.journal.stores.urls import open_store
from tests.flows.processes import Place
from tests.requirements import require_package

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings('ignore')]  # those of Ray and Dask are not ours to mend

INNER = 'tests.flows.app:inner'


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    place = Place(tmp_path)
    for name, value in place.variables.items():
        monkeypatch.setenv(name, value)
    return place


@pytest.fixture
def nodes(place: Place, monkeypatch: pytest.MonkeyPatch) -> Generator[str]:
    """The address of a Ray cluster of two nodes that have sandboxes, and a head that has none."""
    require_package('ray')
    monkeypatch.setenv('RAY_AUTH_MODE', 'disabled')
    cluster = import_module('ray.cluster_utils').Cluster(
        initialize_head=True, head_node_args={'num_cpus': 0, 'include_dashboard': False}
    )
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=2, resources={'sandboxes': 2})
        cluster.wait_for_nodes()
        yield cluster.address
    finally:
        cluster.shutdown()


@asynccontextmanager
async def ray_engine(place: Place, address: str, **options: Any) -> AsyncGenerator[Any]:
    from habilis.flows.ray_engine import RayEngine

    async with RayEngine(place.store, address=address, resources={'sandboxes': 1}, **options) as engine:
        yield engine


async def owner_of(place: Place, run: str) -> int:
    store = open_store(place.store)
    lease = await store.lease(run)
    await store.close()
    return int(lease.owner.split('/')[1])


async def until_queued(store: Store, run: str) -> None:
    while (await store.info(run)).status != 'queued':  # noqa: ASYNC110 - another process changes it
        await asyncio.sleep(0.05)


def parent_of(pid: int) -> int:
    return int(Path(f'/proc/{pid}/stat').read_text('utf-8').rpartition(')')[2].split()[1])


async def test_ray_takes_over_the_runs_of_a_killed_worker_and_of_a_killed_node(place: Place, nodes: str) -> None:
    place.hold('x-2')
    async with ray_engine(place, nodes) as engine:
        run = await engine.submit(Job(target=INNER, inputs={'name': 'x'}))
        await place.reached('x-2')
        worker = await owner_of(place, run)
        os.kill(worker, signal.SIGKILL)
        await place.reached('x-2')
        second = await owner_of(place, run)
        assert second != worker
        for process in (parent_of(second), second):  # the raylet and what it has started: the node is gone
            os.kill(process, signal.SIGKILL)
        await place.reached('x-2')
        assert await owner_of(place, run) not in {worker, second}
        place.let_go('x-2')
        outcome = await engine.wait(run)
    assert (outcome.status, outcome.value) == ('done', ['X-1', 'X-2'])
    assert place.effects == ['x-1', 'x-2', 'x-2', 'x-2']


async def test_ray_is_given_only_so_many_runs_and_a_cancelled_one_goes_back_to_the_queue(
    place: Place, nodes: str
) -> None:
    place.hold('x-1')
    async with ray_engine(place, nodes, limit=1) as engine:
        first = await engine.submit(Job(target=INNER, inputs={'name': 'x'}))
        await place.reached('x-1')
        later = asyncio.create_task(engine.submit(Job(target=INNER, inputs={'name': 'y'})))
        await asyncio.sleep(0.3)
        assert not later.done()
        await engine.cancel(first)
        assert (await engine.wait(await later)).value == ['Y-1', 'Y-2']
        store = open_store(place.store)
        await until_queued(store, first)
        await store.close()
        place.let_go('x-1')
        assert (await engine.wait(await engine.submit(Job(run=first)))).value == ['X-1', 'X-2']
    assert place.effects == ['x-1', 'y-1', 'y-2', 'x-1', 'x-2']


async def test_dask_takes_over_the_runs_of_a_killed_worker(place: Place) -> None:
    require_package('distributed')
    from habilis.flows.dask_engine import DaskEngine

    place.hold('x-2')
    async with DaskEngine(place.store, workers=2) as engine:
        run = await engine.submit(Job(target=INNER, inputs={'name': 'x'}))
        await place.reached('x-2')
        worker = await owner_of(place, run)
        os.kill(worker, signal.SIGKILL)
        await place.reached('x-2')
        assert await owner_of(place, run) != worker
        place.let_go('x-2')
        outcome = await engine.wait(run)
    assert (outcome.status, outcome.value) == ('done', ['X-1', 'X-2'])
    assert place.effects == ['x-1', 'x-2', 'x-2']


async def test_an_engine_on_a_cluster_needs_a_store_that_its_nodes_can_reach() -> None:
    require_package('distributed')
    from habilis.flows.dask_engine import DaskEngine

    with pytest.raises(FlowError, match='all machines can reach'):
        DaskEngine('memory:')
    with pytest.raises(FlowError, match='not started'):
        await DaskEngine('runs.db').submit(Job(target=INNER))
