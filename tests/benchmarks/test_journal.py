"""Benchmarks of the journal. The speed itself is not tested here."""

import json
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.installation import PeerError
from benchmarks.journal import snapshots
from benchmarks.journal.comparison import DbosSetup, Repeats, compare, dbos_setups
from benchmarks.journal.dbos_client import INSTALL, Database, python_with_dbos, run_dbos
from benchmarks.journal.servers import Server, postgres_server, redis_server
from benchmarks.journal.steps import StepTimer
from benchmarks.journal.stores import bench_stores
from habilis.core.errors import JournalError
from habilis.journal.stores.urls import open_store
from tests.benchmarks.process import benchmarks
from tests.requirements import missing

NOWHERE = ('--postgres', 'postgresql://me:hunter2@127.0.0.1:1/none', '--redis', 'redis://127.0.0.1:1/0')
ON_SERVERS = {'step_postgres', 'step_postgres_full', 'step_redis', 'replay_postgres', 'replay_redis'}
HERE = {
    'step_sqlite',
    'step_sqlite_full',
    'step_files',
    'step_memory',
    'flow_step',
    'once_sqlite',
    'once_files',
    'replay_sqlite',
    'snapshot',
    'snapshot_sandbox',
    'snapshot_pieces',
    'resume',
    'disk',
}
TARGETS = {'step_sqlite': 0.1, 'replay_sqlite': 20.0, 'snapshot': 15.0, 'snapshot_pieces': 15.0}
REPEATS = Repeats(rounds=1, steps=2, replays=1, replayed=3)

FAKE_DBOS = """
import contextlib

recorded, steps = {}, []
name = ['']


class Handle:
    def __init__(self, work):
        self.work = work

    async def get_result(self):
        return await self.work


class DBOS:
    def __init__(self, config):
        print('this is not an answer', config['system_database_url'])

    launch = destroy = staticmethod(lambda: None)

    @staticmethod
    def step():
        def make(function):
            async def call(*arguments):
                known = recorded.get(name[0], 0)
                steps.append(arguments)
                return None if len(steps) <= known else await function(*arguments)

            return call

        return make

    @staticmethod
    def workflow():
        def make(function):
            DBOS.function = staticmethod(function)

            async def call(count):
                steps.clear()
                DBOS.count = count
                return await function(count)

            return call

        return make

    @staticmethod
    async def fork_workflow_async(workflow, start):
        steps.clear()
        name[0] = 'fork'
        recorded['fork'] = start - 1
        return Handle(DBOS.function(DBOS.count))


@contextlib.contextmanager
def SetWorkflowID(workflow):
    yield
"""


# The suite ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope='module')
def quick() -> subprocess.CompletedProcess[str]:
    return benchmarks('journal', '--quick', '--json', *NOWHERE)


@pytest.fixture(scope='module')
def rows(quick: subprocess.CompletedProcess[str]) -> Mapping[str, Any]:
    assert quick.returncode == 0, quick.stderr
    return {row['key']: row for row in json.loads(quick.stdout)['rows']}


@pytest.mark.slow
def test_a_quick_run_has_every_number(rows: Mapping[str, Any], quick: subprocess.CompletedProcess[str]) -> None:
    assert rows.keys() >= HERE | ON_SERVERS
    for key in HERE:
        spread = rows[key]['spread']
        assert 0 < spread['low'] <= spread['median'] <= spread['high']
        assert rows[key]['value'] == spread['median']
    assert {key: rows[key]['target']['bound'] for key in HERE if rows[key]['target']} == TARGETS
    report = json.loads(quick.stdout)
    assert set(report['missed']) == {key for key, row in rows.items() if row['met'] is False}
    assert report['load'] >= 0


@pytest.mark.slow
def test_a_server_that_does_not_answer_is_reported_and_the_rest_is_measured(rows: Mapping[str, Any]) -> None:
    for key in ON_SERVERS:
        assert (rows[key]['value'], rows[key]['met']) == (None, None)
        assert '127.0.0.1:1' in rows[key]['note']
        assert 'hunter2' not in rows[key]['note']


@pytest.mark.slow
def test_the_peer_is_measured_or_reported_as_missing(
    rows: Mapping[str, Any], quick: subprocess.CompletedProcess[str]
) -> None:
    unavailable = json.loads(quick.stdout)['peers']
    if python_with_dbos(''):
        assert rows['step_sqlite_alike']['ratio'] > 0
        assert not unavailable
    else:
        assert [peer['unavailable'] for peer in unavailable] == [INSTALL]
        assert {row['ratio'] for row in rows.values()} == {None}


@pytest.mark.slow
def test_a_run_says_on_stderr_what_it_is_doing(quick: subprocess.CompletedProcess[str]) -> None:
    assert 'benchmarks: measuring replay of 1,000 steps …\n' in quick.stderr
    assert 'Traceback' not in quick.stderr


# Steps ----------------------------------------------------------------------------------------------------------------


@pytest.fixture(params=['sqlite:{}/runs.db', 'sqlite:{}/runs.db?durability=full', 'files:{}/runs'])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(request.param).format(tmp_path)


async def test_each_step_is_timed_and_no_run_is_left(url: str) -> None:
    timer = StepTimer(url)
    assert len([seconds for seconds in await timer.steps(5) if seconds > 0]) == 5
    assert len([seconds for seconds in await timer.flow_steps(4) if seconds > 0]) == 4
    assert len([seconds for seconds in await timer.steps(4, once=True) if seconds > 0]) == 4
    await timer.record(30)
    assert await timer.replay(30) > 0
    assert await timer.replay(30) > 0
    await timer.close()
    store = open_store(url)
    assert await store.runs() == []
    await store.close()


async def test_a_replay_that_executes_a_step_is_an_error(tmp_path: Path) -> None:
    timer = StepTimer(f'sqlite:{tmp_path}/runs.db')
    await timer.record(3)
    with pytest.raises(JournalError, match='a recorded step was executed again'):
        await timer.replay(4)
    await timer.close()


async def test_memory_is_a_store_like_the_others() -> None:
    timer = StepTimer('memory:')
    assert len(await timer.steps(3)) == 3
    await timer.close()


# Sandboxes and agents -------------------------------------------------------------------------------------------------


async def test_a_megabyte_of_variables_is_saved(tmp_path: Path) -> None:
    saved = await snapshots.snapshot_times(f'sqlite:{tmp_path}/runs.db', 1, snapshots.TEXT)
    assert saved.size >= snapshots.MEGABYTE
    assert saved.total.median > saved.sandbox.median > 0


async def test_the_resume_of_an_agent_is_timed(tmp_path: Path) -> None:
    assert (await snapshots.resume_time(f'sqlite:{tmp_path}/runs.db', 1)).median > 0


def test_fsync_is_timed_and_leaves_no_file(tmp_path: Path) -> None:
    assert snapshots.fsync_time(tmp_path, 2).repeats == 2
    assert list(tmp_path.iterdir()) == []


# Servers --------------------------------------------------------------------------------------------------------------


def _require(server: Server, requirement: str) -> None:
    if server.unavailable:
        missing(requirement, server.unavailable)


async def test_a_private_postgres_is_started_and_stopped() -> None:
    async with postgres_server('') as server:
        _require(server, 'postgres')
        timer = StepTimer(server.store_url)
        assert len(await timer.steps(2)) == 2
        await timer.close()
    assert not Path(server.url.partition('host=')[2]).exists()


async def test_a_private_redis_is_started_and_stopped() -> None:
    async with redis_server('') as server:
        _require(server, 'redis-server')
        timer = StepTimer(server.store_url)
        assert len(await timer.steps(2)) == 2
        await timer.close()
    assert not Path(server.url.removeprefix('unix://')).parent.exists()


async def test_a_given_postgres_is_left_unchanged() -> None:
    from psycopg import AsyncConnection

    async def schemas(url: str) -> list[tuple[object, ...]]:
        async with await AsyncConnection.connect(url) as connection:
            return await (await connection.execute('SELECT nspname FROM pg_namespace ORDER BY 1')).fetchall()

    async with postgres_server('') as private:
        _require(private, 'postgres')
        before = await schemas(private.url)
        async with postgres_server(private.url) as server:
            timer = StepTimer(server.store_url)
            await timer.steps(1)
            await timer.close()
            assert len(await schemas(private.url)) == len(before) + 1
        assert await schemas(private.url) == before


@pytest.mark.parametrize(
    ('url', 'said'),
    [
        ('postgresql://me:hunter2@127.0.0.1:1/none', '127.0.0.1:1'),
        ('redis://localhost', 'must begin with postgresql:// or postgres://'),
        ('nonsense', 'must begin with postgresql:// or postgres://'),
        ('off', 'must begin with postgresql:// or postgres://'),
    ],
)
async def test_a_url_without_a_server_is_reported(url: str, said: str) -> None:
    async with postgres_server(url) as server:
        assert said in server.unavailable
        assert 'hunter2' not in server.unavailable
        assert (server.url, server.namespace) == ('', '')


async def test_a_missing_program_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: object, **__: object) -> None:
        """No program is found."""

    monkeypatch.setattr('shutil.which', nothing)
    async with postgres_server('') as postgres, redis_server('') as redis:
        assert 'or name a server with --postgres' in postgres.unavailable
        assert 'or name a server with --redis' in redis.unavailable


def test_stores_on_missing_servers_have_a_reason(tmp_path: Path) -> None:
    found = {
        store.key: store for store in bench_stores(tmp_path, Server(unavailable='no p'), Server(unavailable='no r'))
    }
    assert [found[key].unavailable for key in ('postgres', 'postgres_full', 'redis')] == ['no p', 'no p', 'no r']
    assert all(found[key].url for key in ('sqlite', 'sqlite_full', 'files', 'memory'))


# The peer -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def fake_dbos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package with the part of DBOS that the benchmark uses; it stores nothing."""
    (tmp_path / 'dbos.py').write_text(FAKE_DBOS, encoding='utf-8')
    information = tmp_path / 'dbos-9.9.dist-info'
    information.mkdir()
    (information / 'METADATA').write_text('Metadata-Version: 2.1\nName: dbos\nVersion: 9.9\n', encoding='utf-8')
    monkeypatch.setenv('PYTHONPATH', str(tmp_path))
    return sys.executable


async def test_the_peer_runs_steps_and_replays_them(fake_dbos: str) -> None:
    async with run_dbos(fake_dbos, Database(url='sqlite:///nowhere')) as dbos:
        assert dbos.version == '9.9'
        assert len(await dbos.steps(3)) == 3
        await dbos.record(4)
        assert await dbos.replay(4) > 0


async def test_a_peer_that_does_not_replay_is_not_measured(fake_dbos: str) -> None:
    async with run_dbos(fake_dbos, Database(url='sqlite:///nowhere')) as dbos:
        await dbos.record(4)
        with pytest.raises(PeerError, match='3 steps were executed instead of 1'):
            await dbos.replay(2)


async def test_our_stores_and_the_peer_are_interleaved(fake_dbos: str, tmp_path: Path) -> None:
    timer = StepTimer(f'sqlite:{tmp_path}/runs.db')
    setup = DbosSetup(
        database=Database(url='sqlite:///nowhere'),
        settings='with defaults',
        steps={'a': 'sqlite'},
        flow_steps={'b': 'sqlite'},
        replay={'c': 'sqlite'},
    )
    found = await compare(setup, fake_dbos, {'sqlite': timer}, REPEATS)
    assert found.comparisons.keys() == {'a', 'b', 'c'}
    assert found.comparisons['a'].peer == 'DBOS 9.9 with defaults'
    assert all(each.pair.ratio > 0 for each in found.comparisons.values())
    assert found.unavailable == ()
    await timer.close()


@pytest.mark.parametrize(
    ('script', 'said'),
    [
        ('exit 1', "its Python sent '' instead of a response"),
        ('echo nonsense', "its Python sent 'nonsense\\n' instead of a response"),
        ('echo "{}"', "its Python sent '{}\\n' instead of a response"),
        ('echo 7', "its Python sent '7\\n' instead of a response"),
        ('echo \'{"error": "no dbos here"}\'', 'no dbos here'),
        (None, 'No such file or directory'),
    ],
)
async def test_a_broken_peer_is_reported(script: str | None, said: str, tmp_path: Path) -> None:
    python = tmp_path / 'python'
    if script is not None:
        python.write_text(f'#!/bin/sh\n{script}\n', encoding='utf-8')
        python.chmod(0o755)
    [setup, *_] = dbos_setups(tmp_path, Server(unavailable='none'))
    found = await compare(setup, str(python), {}, REPEATS)
    assert not found.comparisons
    [row] = found.unavailable
    assert row.peer == 'DBOS on SQLite, with its default settings'
    assert row.unavailable.startswith('does not work: ')
    assert said in row.unavailable


def test_the_peer_has_our_durability_once_on_each_database(tmp_path: Path) -> None:
    found = dbos_setups(tmp_path, Server(url='postgresql://me@/db?host=/somewhere', namespace='habilis_bench_1'))
    assert [setup.database_name for setup in found] == ['SQLite', 'SQLite', 'PostgreSQL', 'PostgreSQL']
    assert [setup.database.relaxed for setup in found] == [False, True, False, False]
    assert textwrap.shorten(found[2].database.url, 200).endswith('&options=-csynchronous_commit%3Doff')
    assert {setup.database.schema for setup in found[2:]} == {'habilis_bench_1_peer'}
