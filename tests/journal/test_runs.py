"""Runs as their readers see them: listed, read as far as they are whole, forked, scored, deleted, pruned, compared."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from habilis.core.errors import CorruptRecord, JournalError, RunBusy, RunNotFound
from habilis.journal import Journal, MemoryStore, RunInfo, Scope, Store
from habilis.journal.runs import (
    TolerantStore,
    align_runs,
    delete_run,
    fork,
    list_runs,
    prunable,
    read_run,
    score_run,
)
from habilis.journal.stores.files import FileStore
from habilis.journal.stores.sqlite import SqliteStore

DYING = """
import asyncio, os, sys
from habilis.journal import Journal, RunInfo
from habilis.journal.stores.sqlite import SqliteStore
async def main():
    await Journal.create(SqliteStore(sys.argv[1]), RunInfo(run='r', user='ada'))
    os._exit(9)
asyncio.run(main())
"""


async def told(store: Store, run: str, *names: str, user: str = '', end: bool = True) -> None:
    """A run with these steps, each of which says its own name."""
    journal = await Journal.create(store, RunInfo(run=run, name='work', user=user))
    scope = Scope(journal, '').below('work')
    await journal.write('opened', scope.path, value={'names': list(names)})
    for name in names:

        async def work(name: str = name) -> str:
            return name

        await scope.step(name, work)
    if end:
        await journal.write('done', scope.path, value='all')
        await journal.end('done', value={'ended': 'answer'})
    await journal.close()


async def replayed(store: Store, run: str, *names: str) -> list[str]:
    """The steps that had to be done again when the run was resumed with these."""
    done: list[str] = []
    journal = await Journal.open(store, run)
    scope = Scope(journal, '').below('work')
    for name in names:

        async def work(name: str = name) -> str:
            done.append(name)
            return name

        await scope.step(name, work)
    await journal.close()
    return done


# States ---------------------------------------------------------------------------------------------------------------


async def test_a_run_that_is_worked_on_runs_and_one_that_was_let_go_of_does_not() -> None:
    store = MemoryStore()
    journal = await Journal.create(store, RunInfo(run='r'))
    assert [each.state for each in await list_runs(store)] == ['running']
    assert await list_runs(store, state='interrupted') == []
    await journal.close()
    assert [each.state for each in await list_runs(store)] == ['interrupted']
    assert [each.state for each in await list_runs(store, state='interrupted')] == ['interrupted']
    assert await list_runs(store, state='running') == []


async def test_a_run_whose_process_died_is_interrupted_before_its_lease_ends(tmp_path: Path) -> None:
    path = tmp_path / 'runs.db'
    assert subprocess.run([sys.executable, '-c', DYING, os.fspath(path)], check=False).returncode == 9
    store = SqliteStore(path)
    (listed,) = await list_runs(store, user='ada')
    assert (listed.info.status, listed.state) == ('running', 'interrupted')
    await store.close()


async def test_runs_of_others_are_not_found() -> None:
    store = MemoryStore()
    await told(store, 'r', user='ada')
    assert await list_runs(store, user='bob') == []
    for work in (
        read_run(store, 'r', user='bob'),
        fork(store, 'r', 1, user='bob'),
        score_run(store, 'r', 1.0, user='bob'),
        delete_run(store, 'r', user='bob'),
    ):
        with pytest.raises(RunNotFound, match="no such run: 'r'"):
            await work
    assert (await read_run(store, 'r', user='ada')).run == 'r'


# Reading --------------------------------------------------------------------------------------------------------------


async def test_a_reading_has_steps_in_their_order_and_how_it_ended() -> None:
    store = MemoryStore()
    await told(store, 'r', 'a', 'b')
    reading = await read_run(store, 'r')
    assert [path for path, _ in reading.steps()] == ['work#1', 'work#1/a#1', 'work#1/b#1']
    assert reading.ended == {'ended': 'answer'}
    assert reading.damage == []


async def test_what_is_noted_after_the_end_does_not_change_how_it_ended() -> None:
    store = MemoryStore()
    await told(store, 'r', 'a')
    assert (await read_run(store, 'r')).score is None
    await score_run(store, 'r', 0.5)
    await score_run(store, 'r', 0.75)
    reading = await read_run(store, 'r')
    assert (reading.score, reading.state, reading.ended) == (0.75, 'done', {'ended': 'answer'})


async def test_a_resumed_run_has_not_ended() -> None:
    store = MemoryStore()
    await told(store, 'r', 'a', end=False)
    journal = await Journal.open(store, 'r')
    await journal.end('stopped', value={'ended': 'max_steps'})
    await journal.close()
    assert (await read_run(store, 'r')).ended == {'ended': 'max_steps'}
    assert await replayed(store, 'r', 'a', 'b') == ['b']
    assert (await read_run(store, 'r')).ended == {}


@pytest.fixture
def files(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / 'runs')


def damage(store: FileStore, run: str, seq: int) -> None:
    file = next(store.folder.glob(f'*{run}*/records.jsonl'))
    lines = file.read_bytes().split(b'\n')
    lines[seq - 1] = b'x' + lines[seq - 1]
    file.write_bytes(b'\n'.join(lines))


async def test_what_is_before_a_damaged_record_can_be_read(files: FileStore) -> None:
    await told(files, 'r', 'a', 'b', 'c')
    damage(files, 'r', 3)
    with pytest.raises(CorruptRecord) as corrupt:
        await files.load('r')
    before = [getattr(record, 'path', '') for record in corrupt.value.before]
    assert before == ['work#1', 'work#1/a#1']
    reading = await read_run(files, 'r')
    assert [record.seq for record in reading.records] == [1, 2]
    assert 'record 3 of r is damaged' in str(reading.damage[0])


async def test_a_blob_that_is_damaged_is_noted(files: FileStore) -> None:
    journal = await Journal.create(files, RunInfo(run='r'))
    record = await journal.write('done', 'a#1', value='z' * 100_000)
    await journal.close()
    next(files.folder.rglob(f'{record.blob}*')).write_bytes(b'other')
    reading = await read_run(files, 'r')
    assert await reading.value_or_none(record) is None
    assert 'record 1 of r is damaged' in str(reading.damage[0])
    with pytest.raises(CorruptRecord):
        await reading.value(record)


async def test_a_store_around_another_is_a_store() -> None:
    store = TolerantStore(MemoryStore())
    assert isinstance(store, Store)
    await told(store, 'r', 'a')
    assert await replayed(store, 'r', 'a', 'b') == ['b']


# Forks ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('before', 'again'),
    [
        ('work#1', ['a', 'b', 'c']),
        ('work#1/a#1', ['a', 'b', 'c']),
        ('work#1/b#1', ['b', 'c']),
        ('work#1/c#1', ['c']),
        (1, ['a', 'b', 'c']),
        (3, ['b', 'c']),
        (5, []),
        (6, []),
    ],
)
async def test_a_fork_does_again_what_came_from_there_on(before: str | int, again: list[str]) -> None:
    store = MemoryStore()
    await told(store, 'r', 'a', 'b', 'c')
    copy = await fork(store, 'r', before)
    assert (copy.parent, copy.status) == ('r', 'stopped')
    assert await replayed(store, copy.run, 'a', 'b', 'c') == again
    assert await replayed(store, 'r', 'a', 'b', 'c') == []


@pytest.mark.parametrize('before', ['', 'work', 'work#2', 'work#1/a', 'work#1/d#1', 0, -1, 99])
async def test_a_fork_needs_a_step_that_is_there(before: str | int) -> None:
    store = MemoryStore()
    await told(store, 'r', 'a')
    with pytest.raises(JournalError, match=r'no step|readable records'):
        await fork(store, 'r', before)
    assert len(await list_runs(store)) == 1


async def test_a_damaged_run_is_forked_before_the_damage(files: FileStore) -> None:
    await told(files, 'r', 'a', 'b', 'c')
    damage(files, 'r', 4)
    copy = await fork(files, 'r', 4)
    assert await replayed(files, copy.run, 'a', 'b', 'c') == ['c']
    with pytest.raises(JournalError, match='has 3 readable records'):
        await fork(files, 'r', 5)


async def test_a_run_can_be_forked_while_it_is_worked_on() -> None:
    store = MemoryStore()
    journal = await Journal.create(store, RunInfo(run='r', name='work'))
    await journal.write('done', 'work#1/a#1', value={'p': 'a'})
    copy = await fork(store, 'r', 2)
    assert await replayed(store, copy.run, 'a', 'b') == ['b']
    await journal.write('done', 'work#1/b#1', value={'p': 'b'})
    await journal.close()


# Deleting -------------------------------------------------------------------------------------------------------------


async def test_a_run_that_is_worked_on_is_neither_deleted_nor_scored_nor_pruned() -> None:
    store = MemoryStore()
    journal = await Journal.create(store, RunInfo(run='r', created=1.0))
    with pytest.raises(RunBusy, match='r is being executed'):
        await delete_run(store, 'r')
    with pytest.raises(RunBusy):
        await score_run(store, 'r', 1.0)
    assert await prunable(store, seconds=0, states=('running', 'interrupted')) == []
    await journal.close()
    assert [each.state for each in await prunable(store, seconds=0, states=('interrupted',))] == ['interrupted']
    await delete_run(store, 'r')
    assert await list_runs(store) == []


async def test_old_runs_that_have_ended_are_prunable_but_not_the_newest() -> None:
    store = MemoryStore()
    for number, status in enumerate(('done', 'failed', 'stopped', 'waiting', 'queued', 'done'), 1):
        await store.create(RunInfo(run=f'r{number}', status=status, created=number, updated=number))
    everything = await prunable(store, seconds=60)
    assert [each.info.run for each in everything] == ['r6', 'r3', 'r2', 'r1']
    assert [each.info.run for each in await prunable(store, seconds=60, keep=4)] == ['r2', 'r1']
    assert [each.info.run for each in await prunable(store, seconds=60, states=('waiting',))] == ['r4']
    assert await prunable(store, seconds=1e10) == []
    assert await prunable(store, seconds=60, user='ada') == []


# Side by side ---------------------------------------------------------------------------------------------------------


async def test_steps_are_put_side_by_side_by_their_paths() -> None:
    store = MemoryStore()
    await told(store, 'one', 'a', 'b', 'd')
    await told(store, 'two', 'a', 'c', 'd', 'e')
    pairs = align_runs(await read_run(store, 'one'), await read_run(store, 'two'))
    assert [(pair.path.partition('/')[2], pair.left is None, pair.right is None) for pair in pairs] == [
        ('a#1', False, False),
        ('c#1', True, False),
        ('b#1', False, True),
        ('d#1', False, False),
        ('e#1', True, False),
        ('', False, False),
    ]


async def test_a_run_is_equal_to_itself() -> None:
    store = MemoryStore()
    await told(store, 'r', 'a')
    reading = await read_run(store, 'r')
    assert all(pair.left == pair.right for pair in align_runs(reading, reading))
