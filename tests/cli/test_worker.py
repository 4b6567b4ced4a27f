"""`habilis worker`: one of many, as the manifest for Kubernetes starts it."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from habilis.flows import Job, queue_job
from habilis.journal.stores.urls import open_store
from tests.cli.process import habilis
from tests.flows.processes import Place
from tests.house.repository import ROOT


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def manifest() -> Mapping[str, Any]:
    page = (ROOT / 'docs' / 'how-to' / 'many-workers.md').read_text('utf-8')
    (text,) = re.findall(r'^```yaml\n(.*?)^```', page, re.MULTILINE | re.DOTALL)
    return yaml.safe_load(text)


async def test_the_workers_of_a_kubernetes_job_do_the_queued_runs_and_end(place: Place) -> None:
    job = manifest()
    assert (job['apiVersion'], job['kind'], job['spec']['completionMode']) == ('batch/v1', 'Job', 'Indexed')
    (container,) = job['spec']['template']['spec']['containers']
    program, *arguments = container['command']
    assert program == 'habilis'
    assert [variable['name'] for variable in container['env']] == ['HABILIS_JOURNAL']
    store = open_store(place.store)
    runs = [
        await queue_job(Job(target='tests.flows.app:inner', inputs={'name': name}), store) for name in ('a', 'b', 'c')
    ]
    arguments[arguments.index('jobs')] = 'tests.flows.app'
    for index in range(2):
        variables = {**place.variables, 'HABILIS_JOURNAL': place.store, 'JOB_COMPLETION_INDEX': str(index)}
        done = habilis(*arguments, env=variables)
        assert done.returncode == 0, done.stderr
    assert {(await store.info(run)).status for run in runs} == {'done'}
    await store.close()
    assert sorted(place.effects) == [f'{name}-{number}' for name in 'abc' for number in (1, 2)]


def test_a_module_that_a_worker_cannot_import_is_named(place: Place) -> None:
    wrong = habilis('worker', '--store', place.store, '--app', 'tests.nowhere', env=os.environ)
    assert wrong.returncode == 2
    assert "No module named 'tests.nowhere'" in wrong.stderr
