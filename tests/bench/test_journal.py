"""`habilis bench journal`: that it measures and reports what it says. How fast things are is not tested here."""

import json
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from habilis.bench.journal import saving
from habilis.bench.journal.comparison import Contest, Turns, contests, hold
from habilis.bench.journal.dbos import GET_IT, Database, python_with_dbos, running
from habilis.bench.journal.servers import Server, postgres_server, redis_server
from habilis.bench.journal.steps import Stepper
from habilis.bench.journal.stores import places
from habilis.bench.measurement import Sample
from habilis.bench.report import Beside, Pair, Row, report_of
from habilis.bench.sandbox.peers import WrongAnswer
from habilis.bench.table import plain
from habilis.core.errors import JournalError
from habilis.journal.stores import open_store
from tests.cli.process import environment, habilis

NOWHERE = ('--postgres', 'postgresql://me:hunter2@127.0.0.1:1/none', '--redis', 'redis://127.0.0.1:1/0')
ON_SERVERS = {'step_postgres', 'step_postgres_full', 'step_redis', 'replay_postgres', 'replay_redis'}
HERE = {
    'step_sqlite',
    'step_sqlite_full',
    'step_files',
    'step_memory',
    'flow_step',
    'replay_sqlite',
    'snapshot',
    'snapshot_sandbox',
    'snapshot_pieces',
    'resume',
    'disk',
}
TARGETS = {'step_sqlite': 0.1, 'replay_sqlite': 20.0, 'snapshot': 15.0, 'snapshot_pieces': 15.0}
TURNS = Turns(rounds=1, steps=2, replays=1, replayed=3)

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


# The whole ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope='module')
def quick() -> subprocess.CompletedProcess[str]:
    return habilis('bench', 'journal', '--quick', '--json', *NOWHERE, fresh=True)


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
def test_a_server_that_does_not_answer_is_said_and_the_rest_is_measured(rows: Mapping[str, Any]) -> None:
    for key in ON_SERVERS:
        assert (rows[key]['value'], rows[key]['met']) == (None, None)
        assert '127.0.0.1:1' in rows[key]['note']
        assert 'hunter2' not in rows[key]['note']


@pytest.mark.slow
def test_the_peer_is_measured_or_said_to_be_missing(
    rows: Mapping[str, Any], quick: subprocess.CompletedProcess[str]
) -> None:
    absent = json.loads(quick.stdout)['peers']
    if python_with_dbos(''):
        assert rows['step_sqlite_alike']['ratio'] > 0
        assert not absent
    else:
        assert [peer['absent'] for peer in absent] == [GET_IT]
        assert {row['ratio'] for row in rows.values()} == {None}


@pytest.mark.slow
def test_a_run_says_on_stderr_what_it_is_doing(quick: subprocess.CompletedProcess[str]) -> None:
    assert 'habilis: measuring 1,000 steps replayed …\n' in quick.stderr
    assert 'Traceback' not in quick.stderr


@pytest.mark.parametrize(('flags', 'returned'), [((), 0), (('--check',), 1)])
def test_a_missed_target_is_an_error_only_if_asked_for(flags: tuple[str, ...], returned: int) -> None:
    code = (
        'import sys\nfrom habilis.bench.journal import suite\nfrom tests.cli import test_bench\n'
        'async def measure(**_): return test_bench.report(test_bench.MISSED)\n'
        f'suite.measure = measure\nsys.argv = ["habilis", "bench", "journal", *{flags!r}]\n'
        'from habilis.cli.main import main\nmain()'
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, '-c', code], cwd=root, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == returned, done.stderr
    assert 'targets missed: sandboxes' in done.stdout


# The table ------------------------------------------------------------------------------------------------------------


def _sample(median: float) -> Sample:
    return Sample(median=median, low=median, high=median, repeats=1)


def test_a_row_stands_beside_its_peer() -> None:
    beside = Beside(peer='Peer 1.0 as it comes', pair=Pair(ours=_sample(0.0001), peer=_sample(0.004)))
    row = Row(key='a', what='a thing', unit='ms', value=0.11, beside=beside)
    report = report_of([row, Row(key='b', what='another', unit='ms', value=1.5)], load=0.0, quick=True)
    shown = plain(report)
    assert 'Peer 1.0 as it comes: 4 ms, ours 0.100  40× faster' in shown
    assert shown.splitlines()[2].split('  ')[-1] == 'ours is'
    encoded: Any = json.loads(json.dumps(report.to_json()))
    assert [each['ratio'] for each in encoded['rows']] == [pytest.approx(40), None]


# Steps ----------------------------------------------------------------------------------------------------------------


@pytest.fixture(params=['sqlite:{}/runs.db', 'sqlite:{}/runs.db?durability=full', 'files:{}/runs'])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(request.param).format(tmp_path)


async def test_each_step_is_timed_and_no_run_is_left(where: str) -> None:
    stepper = Stepper(where)
    assert len([seconds for seconds in await stepper.steps(5) if seconds > 0]) == 5
    assert len([seconds for seconds in await stepper.flow_steps(4) if seconds > 0]) == 4
    await stepper.record(30)
    assert await stepper.replay(30) > 0
    assert await stepper.replay(30) > 0
    await stepper.close()
    store = open_store(where)
    assert await store.runs() == []
    await store.close()


async def test_a_step_that_is_done_again_is_no_replay(tmp_path: Path) -> None:
    stepper = Stepper(f'sqlite:{tmp_path}/runs.db')
    await stepper.record(3)
    with pytest.raises(JournalError, match='a step was done again that is in the record'):
        await stepper.replay(4)
    await stepper.close()


async def test_memory_is_a_store_like_the_others() -> None:
    stepper = Stepper('memory:')
    assert len(await stepper.steps(3)) == 3
    await stepper.close()


# Sandboxes and agents -------------------------------------------------------------------------------------------------


async def test_a_megabyte_of_variables_is_saved(tmp_path: Path) -> None:
    saved = await saving.save(f'sqlite:{tmp_path}/runs.db', 1, saving.TEXT)
    assert saved.size >= saving.MEGABYTE
    assert saved.all.median > saved.sandbox.median > 0


async def test_an_agent_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    assert (await saving.resume(f'sqlite:{tmp_path}/runs.db', 1)).median > 0


def test_the_disk_is_timed_and_nothing_is_left_on_it(tmp_path: Path) -> None:
    assert saving.disk(tmp_path, 2).repeats == 2
    assert list(tmp_path.iterdir()) == []


# Servers --------------------------------------------------------------------------------------------------------------


async def test_a_private_postgres_is_started_and_stopped() -> None:
    async with postgres_server('') as server:
        assert server.absent == '', f'this test needs a PostgreSQL server: {server.absent}'
        stepper = Stepper(server.store)
        assert len(await stepper.steps(2)) == 2
        await stepper.close()
    assert not Path(server.url.partition('host=')[2]).exists()


async def test_a_private_redis_is_started_and_stopped() -> None:
    async with redis_server('') as server:
        assert server.absent == '', f'this test needs a Redis server: {server.absent}'
        stepper = Stepper(server.store)
        assert len(await stepper.steps(2)) == 2
        await stepper.close()
    assert not Path(server.url.removeprefix('unix://')).parent.exists()


async def test_a_postgres_of_somebody_is_left_as_it_was() -> None:
    from psycopg import AsyncConnection

    async def schemas(url: str) -> list[tuple[object, ...]]:
        async with await AsyncConnection.connect(url) as connection:
            return await (await connection.execute('SELECT nspname FROM pg_namespace ORDER BY 1')).fetchall()

    async with postgres_server('') as private:
        before = await schemas(private.url)
        async with postgres_server(private.url) as server:
            stepper = Stepper(server.store)
            await stepper.steps(1)
            await stepper.close()
            assert len(await schemas(private.url)) == len(before) + 1
        assert await schemas(private.url) == before


@pytest.mark.parametrize(
    ('url', 'said'),
    [
        ('postgresql://me:hunter2@127.0.0.1:1/none', '127.0.0.1:1'),
        ('redis://localhost', 'begins with postgresql:// or postgres://'),
        ('nonsense', 'begins with postgresql:// or postgres://'),
        ('off', 'begins with postgresql:// or postgres://'),
    ],
)
async def test_an_address_without_a_server_is_told(url: str, said: str) -> None:
    async with postgres_server(url) as server:
        assert said in server.absent
        assert 'hunter2' not in server.absent
        assert (server.url, server.part) == ('', '')


async def test_a_missing_program_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: object, **__: object) -> None:
        """No program is found."""

    monkeypatch.setattr('shutil.which', nothing)
    async with postgres_server('') as postgres, redis_server('') as redis:
        assert 'or name a server with --postgres' in postgres.absent
        assert 'or name a server with --redis' in redis.absent


def test_stores_on_missing_servers_have_a_reason(tmp_path: Path) -> None:
    found = {place.key: place for place in places(tmp_path, Server(absent='no p'), Server(absent='no r'))}
    assert [found[key].absent for key in ('postgres', 'postgres_full', 'redis')] == ['no p', 'no p', 'no r']
    assert all(found[key].where for key in ('sqlite', 'sqlite_full', 'files', 'memory'))


# The peer -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def fake_dbos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package that works as DBOS does, as far as the bench can see, and keeps nothing."""
    (tmp_path / 'dbos.py').write_text(FAKE_DBOS, encoding='utf-8')
    information = tmp_path / 'dbos-9.9.dist-info'
    information.mkdir()
    (information / 'METADATA').write_text('Metadata-Version: 2.1\nName: dbos\nVersion: 9.9\n', encoding='utf-8')
    monkeypatch.setenv('PYTHONPATH', str(tmp_path))
    return sys.executable


async def test_the_peer_takes_steps_and_replays_them(fake_dbos: str) -> None:
    async with running(fake_dbos, Database(url='sqlite:///nowhere')) as dbos:
        assert dbos.version == '9.9'
        assert len(await dbos.steps(3)) == 3
        await dbos.record(4)
        assert await dbos.replay(4) > 0


async def test_a_peer_that_does_not_replay_is_not_measured(fake_dbos: str) -> None:
    async with running(fake_dbos, Database(url='sqlite:///nowhere')) as dbos:
        await dbos.record(4)
        with pytest.raises(WrongAnswer, match='3 steps were done again instead of 1'):
            await dbos.replay(2)


async def test_ours_and_the_peer_take_turns(fake_dbos: str, tmp_path: Path) -> None:
    stepper = Stepper(f'sqlite:{tmp_path}/runs.db')
    contest = Contest(
        database=Database(url='sqlite:///nowhere'),
        setting='as it comes',
        steps={'a': 'sqlite'},
        flow_steps={'b': 'sqlite'},
        replay={'c': 'sqlite'},
    )
    found = await hold(contest, fake_dbos, {'sqlite': stepper}, TURNS)
    assert found.beside.keys() == {'a', 'b', 'c'}
    assert found.beside['a'].peer == 'DBOS 9.9 as it comes'
    assert all(beside.pair.ratio > 0 for beside in found.beside.values())
    assert found.absent == ()
    await stepper.close()


@pytest.mark.parametrize(
    ('script', 'said'),
    [
        ('exit 1', "its Python gave '' instead of an answer"),
        ('echo nonsense', "its Python gave 'nonsense\\n' instead of an answer"),
        ('echo "{}"', "its Python gave '{}\\n' instead of an answer"),
        ('echo 7', "its Python gave '7\\n' instead of an answer"),
        ('echo \'{"error": "no dbos here"}\'', 'no dbos here'),
        (None, 'No such file or directory'),
    ],
)
async def test_a_peer_that_does_not_work_is_said(script: str | None, said: str, tmp_path: Path) -> None:
    python = tmp_path / 'python'
    if script is not None:
        python.write_text(f'#!/bin/sh\n{script}\n', encoding='utf-8')
        python.chmod(0o755)
    [contest, *_] = contests(tmp_path, Server(absent='none'))
    found = await hold(contest, str(python), {}, TURNS)
    assert not found.beside
    [absent] = found.absent
    assert absent.peer == 'DBOS on SQLite, as it comes'
    assert absent.absent.startswith('does not work here: ')
    assert said in absent.absent


def test_the_peer_is_set_as_durable_as_ours_once_on_each_database(tmp_path: Path) -> None:
    found = contests(tmp_path, Server(url='postgresql://me@/db?host=/somewhere', part='habilis_bench_1'))
    assert [contest.on for contest in found] == ['SQLite', 'SQLite', 'PostgreSQL', 'PostgreSQL']
    assert [contest.database.alike for contest in found] == [False, True, False, False]
    assert textwrap.shorten(found[2].database.url, 200).endswith('&options=-csynchronous_commit%3Doff')
    assert {contest.database.schema for contest in found[2:]} == {'habilis_bench_1_peer'}


@pytest.mark.parametrize(
    ('options', 'complaint'),
    [
        (('--postgres', 'foo'), '--postgres: the address of this store begins with postgres'),
        (('--redis', 'foo'), '--redis: the address of this store begins with redis'),
        (('--peer-python', '/nope'), '--peer-python: /nope is no program that can be run'),
    ],
)
def test_what_is_named_wrongly_is_said_before_anything_is_measured(options: tuple[str, ...], complaint: str) -> None:
    done = habilis('bench', 'journal', '--quick', *options)
    assert (done.returncode, done.stdout) == (2, '')
    assert complaint in ' '.join(done.stderr.split())
    assert 'measuring' not in done.stderr
