"""`habilis map`: each task once, however often it is killed and started again."""

import asyncio
import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from habilis.journal.contract import RunFigures
from habilis.journal.stores.urls import open_store
from tests.cli.chat import code, script
from tests.cli.process import COMMAND, environment, habilis
from tests.place import Place
from tests.requirements import require_package
from tests.waiting import until

APP = ('--app', 'jobs:agent', '--store', 'runs.db', '-o', 'results.jsonl', '--workers', '2')


def write_tasks(place: Place, *names: str) -> None:
    lines = [json.dumps({'task': f'Do {name}.', 'variables': {'name': name}, 'id': name}) for name in names]
    (place.folder / 'tasks.jsonl').write_text('\n'.join(lines), 'utf-8')


def map_tasks(*options: str) -> subprocess.CompletedProcess[str]:
    return habilis('map', 'tasks.jsonl', *(options or APP))


def results(place: Place) -> dict[str, str]:
    lines = (place.folder / 'results.jsonl').read_text('utf-8').splitlines()
    rows = [json.loads(line) for line in lines]
    return {row['id']: row['output'] or row['ended'] for row in sorted(rows, key=lambda row: row['number'])}


def effects(place: Place) -> Counter[str]:
    file = place.folder / 'effects'
    return Counter(line.split()[0] for line in file.read_text('utf-8').splitlines()) if file.exists() else Counter()


def effects_of(*names: str) -> Counter[str]:
    return Counter(f'{name}-{number}' for name in names for number in (1, 2))


def counted() -> dict[tuple[str, str], tuple[int, float]]:
    """Runs and cost by status and end, as the store counts them."""

    async def figures() -> RunFigures:
        store = open_store('runs.db')
        try:
            return await store.figures(since=0.0, interval=1e12)
        finally:
            await store.close()

    return {(one.status, one.ended): (one.runs, one.cost) for one in asyncio.run(figures()).counts}


def worker_at(place: Place, name: str) -> int:
    """The process that has left a trace."""
    lines = (place.folder / 'effects').read_text('utf-8').splitlines()
    return int([line.split()[1] for line in lines if line.split()[0] == name][-1])


def test_each_task_is_done_once_and_the_same_command_again_does_nothing(place: Place) -> None:
    write_tasks(place, 'a', 'b', 'c', 'a')
    done = map_tasks()
    assert (done.returncode, results(place)) == (0, {'a': 'A', 'b': 'B', 'c': 'C'}), done.stderr
    assert [line.split()[:4] for line in done.stderr.splitlines()] == [
        ['ENDED', 'TASKS', 'NEW', 'STEPS'],
        ['answer', '4', '4', '12'],
    ]
    again = map_tasks()
    assert (again.returncode, results(place)) == (0, {'a': 'A', 'b': 'B', 'c': 'C'})
    assert again.stderr.splitlines()[1].split()[:4] == ['answer', '4', '0', '12']
    assert effects(place) == effects_of('a', 'b', 'c', 'a')


def test_retry_runs_only_what_has_no_answer_and_goes_on_where_it_failed(place: Place) -> None:
    write_tasks(place, 'a', 'odd')
    broken = place.folder / 'broken'
    broken.touch()
    failed = map_tasks()
    assert (failed.returncode, results(place)) == (1, {'a': 'A', 'odd': 'failed'})
    assert counted() == {('done', 'answer'): (1, 0.75), ('failed', 'ModelError'): (1, 0.25)}
    broken.unlink()
    assert map_tasks().returncode == 1  # it is not retried unless that is asked for
    done = map_tasks(*APP, '--retry')
    assert (done.returncode, results(place)) == (0, {'a': 'A', 'odd': 'ODD'})
    assert counted() == {('done', 'answer'): (2, 1.5)}  # with what was paid before the failure
    assert effects(place) == effects_of('a', 'odd')


def test_a_task_without_an_answer_is_retried_from_its_start(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('HABILIS_MAX_STEPS', '4')
    write_tasks(place, 'a', 'odd')
    (place.folder / 'endless').touch()
    assert (map_tasks().returncode, results(place)) == (3, {'a': 'A', 'odd': 'max_steps'})
    assert counted() == {('done', 'answer'): (1, 0.75), ('done', 'max_steps'): (1, 1.0)}
    (place.folder / 'endless').unlink()
    assert (map_tasks(*APP, '--retry').returncode, results(place)) == (0, {'a': 'A', 'odd': 'ODD'})
    assert effects(place) == effects_of('a', 'odd', 'odd')


def test_no_more_runs_are_started_when_the_budget_is_spent(place: Place) -> None:
    write_tasks(place, *'abcdef')
    # Each costs 0.75, and as much is kept free for each that is under way.
    options = (*APP, '--budget', '2', '--max-cost', '0.75')
    stopped = map_tasks(*options)
    assert stopped.returncode == 3, stopped.stderr
    assert [*results(place).values()] == ['A', 'B', *['not started'] * 4]
    again = map_tasks(*APP, '--budget', '3')
    assert [*results(place).values()][:3] == ['A', 'B', 'C'], again.stderr


@pytest.mark.parametrize('killed', ['worker', 'command'])
def test_a_map_whose_processes_are_killed_ends_whole_and_repeats_nothing(place: Place, killed: str) -> None:
    names = [f't{number}' for number in range(6)]
    write_tasks(place, *names)
    hold = place.folder / 'hold-t2-2'
    hold.touch()
    one = [*COMMAND, 'map', 'tasks.jsonl', *APP, '--limit', '1']  # a killed worker has no other run under way
    process = subprocess.Popen(one, env=environment(), stderr=subprocess.PIPE)
    try:
        _wait(lambda: effects(place)['t2-2'] == 1, process)
        worker = worker_at(place, 't2-2')
        os.kill(worker if killed == 'worker' else process.pid, signal.SIGKILL)
        if killed == 'command':
            process.wait()
            _wait(lambda: not Path(f'/proc/{worker}').exists())  # workers end with the command
            hold.unlink()
            assert map_tasks().returncode == 0
        else:
            _wait(lambda: effects(place)['t2-2'] == 2, process)
            hold.unlink()
            assert process.wait() == 0
    finally:
        process.kill()
        process.communicate()
    assert results(place) == {name: name.upper() for name in names}
    assert effects(place) == effects_of(*names) + Counter(['t2-2'])  # the call that was under way


def _wait(condition: Callable[[], bool], process: subprocess.Popen[bytes] | None = None) -> None:
    def check() -> bool:
        assert process is None or process.poll() is None, 'it has ended too early'
        return condition()

    asyncio.run(until(check))


def test_options_make_an_agent_in_each_worker_and_results_can_be_parquet(place: Place) -> None:
    require_package('pyarrow')
    write_tasks(place, 'a', 'b', 'c')
    model = script(place.folder, code('x = len(name)'), code('final_answer(x + 1)'))
    done = map_tasks('--model', model, '--store', 'runs.db', '-o', 'results.parquet', '--output-type', 'int')
    assert done.returncode == 0, done.stderr
    rows = import_module('pyarrow.parquet').read_table('results.parquet').to_pylist()
    found = sorted((row['number'], row['id'], row['output'], row['steps']) for row in rows)
    assert found == [(1, 'a', '2', 2), (2, 'b', '2', 2), (3, 'c', '2', 2)]


@pytest.mark.parametrize(
    ('line', 'problem'),
    [('{"task": 1}', '"task" must be text'), ('{"job": "x"}', 'write a JSON string'), ('x', 'line 1 of tasks.jsonl')],
)
def test_a_line_that_is_no_task_is_named(place: Place, line: str, problem: str) -> None:
    (place.folder / 'tasks.jsonl').write_text(line, 'utf-8')
    wrong = map_tasks()
    assert wrong.returncode == 2
    assert problem in wrong.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ('engine', 'package'),
    [
        pytest.param('ray', 'ray', marks=pytest.mark.crash),  # minutes; `tests/flows/test_clusters.py` has Ray
        ('dask', 'distributed'),
    ],
)
def test_a_map_can_be_done_by_a_cluster(
    place: Place, monkeypatch: pytest.MonkeyPatch, engine: str, package: str
) -> None:
    require_package(package)
    monkeypatch.setenv('RAY_AUTH_MODE', 'disabled')
    write_tasks(place, 'a', 'b', 'c')
    variables = {**environment(), 'PYTHONWARNINGS': 'ignore'}  # those of Ray and Dask are not ours to mend
    done = habilis('map', 'tasks.jsonl', *APP, '--engine', engine, fresh=True, env=variables)
    assert (done.returncode, results(place)) == (0, {'a': 'A', 'b': 'B', 'c': 'C'}), done.stderr
    assert effects(place) == effects_of('a', 'b', 'c')
