"""What is special about runs in an SQLite file."""

import asyncio
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from habilis.core.errors import CorruptRecord, RunBusy, RunNotFound, StoreUnavailable
from habilis.journal.contract import RunInfo
from habilis.journal.encoding import digest_of
from habilis.journal.stores import sqlite, sqlite_file
from habilis.journal.stores.conformance_values import record, records
from habilis.journal.stores.sqlite import SqliteStore
from habilis.journal.stores.sqlite_file import SqliteFile
from habilis.journal.stores.urls import open_store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file is; the folder is not there yet."""
    return tmp_path / 'a folder' / 'journal.db'


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    """A store without runs."""
    made = SqliteStore(path)
    yield made
    await made.close()


async def begin(store: SqliteStore, count: int = 3) -> int:
    """Have a run with records and a blob. Gives its epoch."""
    await store.create(RunInfo(run='run-1'))
    lease = await store.claim('run-1', owner='me', seconds=60)
    await store.append('run-1', records(count), epoch=lease.epoch, blobs={digest_of(b'x'): b'x'})
    return lease.epoch


@contextmanager
def database(path: Path) -> Generator[sqlite3.Connection]:
    """The same file, seen by another program."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


# The file -------------------------------------------------------------------------------------------------------------


async def test_nothing_is_made_before_the_first_use(store: SqliteStore, path: Path) -> None:
    assert not path.parent.exists()
    assert await store.runs() == []
    assert path.exists()


async def test_only_its_owner_can_read_it(store: SqliteStore, path: Path) -> None:
    await begin(store)
    names = {found.name: stat.S_IMODE(found.stat().st_mode) for found in path.parent.iterdir()}
    assert names == {'journal.db': 0o600, 'journal.db-wal': 0o600, 'journal.db-shm': 0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_the_data_folder_is_closed_to_others_and_no_other_folder_that_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv('HABILIS_DATA', raising=False)
    monkeypatch.setenv('XDG_DATA_HOME', str(tmp_path))
    monkeypatch.setenv('HOME', str(tmp_path))
    for store in (open_store(), open_store(f'sqlite:{tmp_path}/shared/runs.db')):
        assert isinstance(store, SqliteStore)
        store.path.parent.mkdir(parents=True)
        store.path.parent.chmod(0o755)
        await store.runs()
        await store.close()
        is_own = store.path.parent.name == 'habilis'
        assert stat.S_IMODE(store.path.parent.stat().st_mode) == (0o700 if is_own else 0o755)


async def test_a_relative_path_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ('a.db', ':memory:', 'file:x?mode=memory', '~'):
        store = SqliteStore(name)
        (tmp_path / 'elsewhere').mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / 'elsewhere')
        await begin(store)
        await store.close()
        monkeypatch.chdir(tmp_path)
        assert (tmp_path / name).is_file()


async def test_a_closed_store_is_opened_again_when_it_is_used(store: SqliteStore) -> None:
    epoch = await begin(store)
    await store.close()
    await store.append('run-1', records(1, first=4), epoch=epoch)
    assert await store.load('run-1') == records(4)


@pytest.mark.parametrize(('full', 'level'), [(False, 1), (True, 2)])
async def test_full_durability_waits_for_the_disk(path: Path, full: bool, level: int) -> None:
    file = SqliteFile(path, full=full)
    names = ('synchronous', 'journal_mode')
    rows = await file.do(lambda connection: [connection.execute(f'PRAGMA {name}').fetchone()[0] for name in names])
    assert rows == [level, 'wal']
    file.close()


async def test_a_store_of_full_durability_works_like_the_other(path: Path) -> None:
    store = SqliteStore(path, durability='full')
    await begin(store)
    assert await store.load('run-1') == records(3)
    await store.close()


# Files that are not a journal -----------------------------------------------------------------------------------------


async def refusal(path: Path) -> str:
    """Why a store in this place cannot be used; the same for everything one asks."""
    store = SqliteStore(path)
    said: set[str] = set()
    for asked in (store.runs(), store.create(RunInfo(run='run-1')), store.load('run-1')):
        with pytest.raises(StoreUnavailable) as caught:
            await asked
        assert not caught.value.passing
        said.add(str(caught.value))
    await store.close()
    [text] = said
    assert str(path) in text
    return text


async def test_a_folder_is_no_journal(tmp_path: Path) -> None:
    assert 'it is a folder; give a file' in await refusal(tmp_path)


async def test_a_file_has_no_journal_below_it(tmp_path: Path) -> None:
    (tmp_path / 'file').touch()
    assert 'Not a directory' in await refusal(tmp_path / 'file' / 'below' / 'journal.db')
    assert 'File exists' in await refusal(tmp_path / 'file' / 'journal.db')


async def test_a_path_that_cannot_be_is_no_journal(tmp_path: Path) -> None:
    assert 'null' in await refusal(tmp_path / 'a\x00b')
    assert 'too long' in await refusal(tmp_path / ('x' * 300))


async def test_a_file_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / 'letter.txt').write_text('Dear Ada,\n' * 500, encoding='utf-8')
    text = await refusal(tmp_path / 'letter.txt')
    assert 'is damaged, or not a journal' in text
    assert 'Move the file away' in text
    assert (tmp_path / 'letter.txt').read_text(encoding='utf-8') == 'Dear Ada,\n' * 500
    assert [path.name for path in tmp_path.iterdir()] == ['letter.txt']


@pytest.mark.parametrize('sql', ['CREATE TABLE runs (name)', 'PRAGMA user_version = 1', 'PRAGMA application_id = 7'])
async def test_the_database_of_another_program_is_left_as_it_is(tmp_path: Path, sql: str) -> None:
    with database(tmp_path / 'other.db') as other:
        other.execute(sql)
    before = (tmp_path / 'other.db').read_bytes()
    assert 'is the database of another program' in await refusal(tmp_path / 'other.db')
    assert (tmp_path / 'other.db').read_bytes() == before


async def test_a_newer_version_is_named_and_left_as_it_is(store: SqliteStore, path: Path) -> None:
    await begin(store)
    await store.close()
    with database(path) as other:
        other.execute(f'PRAGMA user_version = {sqlite_file.VERSION + 1}')
    text = await refusal(path)
    assert 'was written by a newer Habilis (tables of version 2, this one reads 1); update Habilis' in text


async def test_an_empty_file_becomes_a_journal(store: SqliteStore, path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b'')
    await begin(store)
    assert len(await store.runs()) == 1


def test_many_processes_may_make_it_at_once(path: Path) -> None:
    code = (
        'import asyncio, sys\nfrom habilis.journal import RunInfo\n'
        'from habilis.journal.stores.sqlite import SqliteStore\n'
        'async def main():\n    store = SqliteStore(sys.argv[1])\n    await store.create(RunInfo(run=sys.argv[2]))\n'
        '    await store.close()\nasyncio.run(main())'
    )
    processes = [subprocess.Popen([sys.executable, '-c', code, str(path), f'run-{n}']) for n in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    with database(path) as other:
        assert other.execute('SELECT count(*) FROM runs').fetchall() == [(4,)]


def test_many_may_make_it_in_the_same_instant(tmp_path: Path) -> None:
    many = 8
    for turn in range(20):
        path = tmp_path / f'{turn}.db'
        together = threading.Barrier(many)

        def make(number: int, path: Path = path, together: threading.Barrier = together) -> bool:
            async def create() -> bool:
                store = SqliteStore(path)
                together.wait()
                try:
                    return await store.create(RunInfo(run=f'run-{number}'))
                finally:
                    await store.close()

            return asyncio.run(create())

        with ThreadPoolExecutor(many) as threads:
            assert list(threads.map(make, range(many))) == [True] * many


# Damage ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'change',
    [
        'line = replace(line, \'"n":2\', \'"n":7\')',
        'line = substr(line, 1, 20)',
        "line = CAST(replace(line, 'step', x'ff') AS TEXT)",
        "line = x'00ff'",
        'line = NULL',
        'line = 7',
        "line = ''",
    ],
)
async def test_a_damaged_record_is_named(store: SqliteStore, path: Path, change: str) -> None:
    epoch = await begin(store)
    with database(path) as other:
        other.execute(f'UPDATE records SET {change} WHERE seq = 2')
    with pytest.raises(CorruptRecord, match='record 2 of run-1 is damaged'):
        await store.load('run-1')
    assert await store.load('run-1', after=2) == records(1, first=3)
    await store.append('run-1', records(1, first=4), epoch=epoch)


async def test_a_missing_record_is_named(store: SqliteStore, path: Path) -> None:
    await begin(store)
    with database(path) as other:
        other.execute('DELETE FROM records WHERE seq = 2')
    with pytest.raises(CorruptRecord, match='record 2 of run-1 is damaged: its number is 3'):
        await store.load('run-1')


@pytest.mark.parametrize('data', [b'y', b'', 'x', None, 7])
async def test_a_damaged_blob_is_named(store: SqliteStore, path: Path, data: object) -> None:
    await begin(store)
    with database(path) as other:
        other.execute('UPDATE blobs SET data = ?', (data,))
    with pytest.raises(CorruptRecord, match=f'run-1: the blob {digest_of(b"x")[:12]}… is'):
        await store.blob('run-1', digest_of(b'x'))


async def test_a_damaged_info_is_named_and_the_others_are_listed(
    store: SqliteStore, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await begin(store)
    await store.create(RunInfo(run='run-2'))
    with database(path) as other:
        other.execute("UPDATE runs SET info = substr(info, 1, 20) WHERE run = 'run-1'")
    with pytest.raises(CorruptRecord, match='info of a run is damaged'):
        await store.info('run-1')
    assert [info.run for info in await store.runs()] == ['run-2']
    assert 'run-1 is not listed: the info of a run is damaged' in caplog.text
    await store.delete('run-1')
    with pytest.raises(RunNotFound):
        await store.info('run-1')


@pytest.mark.parametrize('place', [0, 5, 17, 100, 4096])
async def test_a_damaged_file_is_named_and_what_to_do(store: SqliteStore, path: Path, place: int) -> None:
    await begin(store, count=300)
    await store.close()
    data = bytearray(path.read_bytes())
    data[place : place + 50] = b'\xa5' * 50
    path.write_bytes(data)
    with pytest.raises(StoreUnavailable) as caught:
        await asyncio.gather(store.load('run-1'), store.runs())  # one of them meets the damage
    assert str(path) in str(caught.value)
    assert 'Move the file away' in str(caught.value)


async def test_a_file_that_was_repaired_is_used_again(store: SqliteStore, path: Path) -> None:
    epoch = await begin(store)
    await store.close()
    whole = path.read_bytes()
    path.write_bytes(b'\x00' * len(whole))
    with pytest.raises(StoreUnavailable):
        await store.load('run-1')
    path.write_bytes(whole)
    await store.append('run-1', records(1, first=4), epoch=epoch)
    assert await store.load('run-1') == records(4)


# Others at the same file ----------------------------------------------------------------------------------------------


async def test_while_another_process_writes_the_event_loop_continues(store: SqliteStore, path: Path) -> None:
    epoch = await begin(store)
    with database(path) as other:
        other.execute('BEGIN IMMEDIATE')
        waiting = asyncio.create_task(store.append('run-1', records(1, first=4), epoch=epoch))
        for _ in range(100):
            await asyncio.sleep(0)
        assert not waiting.done()
        assert await store.load('run-1') == records(3)  # readers do not wait
        other.execute('COMMIT')
        await waiting
    assert await store.load('run-1') == records(4)


async def test_waiting_too_long_for_a_lock_is_a_passing_error(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    epoch = await begin(store)
    monkeypatch.setattr(sqlite_file, 'LOCK_SECONDS', 0.05)
    with database(path) as other:
        other.execute('BEGIN IMMEDIATE')
        for asked in (
            store.append('run-1', records(1, first=4), epoch=epoch),
            store.append('run-1', records(2, first=4), epoch=epoch),
            store.claim('run-1', owner='me', seconds=1),
            store.create(RunInfo(run='run-2')),
            store.delete('run-1'),
        ):
            with pytest.raises(StoreUnavailable, match='another process has been writing') as caught:
                await asked
            assert caught.value.passing
    await store.append('run-1', records(1, first=4), epoch=epoch)
    assert await store.load('run-1') == records(4)


async def test_an_append_that_is_cancelled_while_it_waits_was_not_made(store: SqliteStore, path: Path) -> None:
    epoch = await begin(store)
    with database(path) as other:
        other.execute('BEGIN IMMEDIATE')
        waiting = asyncio.create_task(store.append('run-1', records(1, first=4), epoch=epoch))
        await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert await store.load('run-1') == records(3)
    await store.append('run-1', records(1, first=4), epoch=epoch)


def test_event_loops_in_many_threads_may_share_a_store(path: Path) -> None:
    store = SqliteStore(path)
    failures: list[BaseException] = []

    async def work(n: int) -> None:
        run = f'run-{n}'
        assert await store.create(RunInfo(run=run))
        lease = await store.claim(run, owner='me', seconds=60)
        for seq in range(1, 51):
            await store.append(run, [record(seq, n)], epoch=lease.epoch, info=RunInfo(run=run) if seq % 5 else None)
        assert [one.value for one in await store.load(run)] == [n] * 50

    def thread(n: int) -> None:
        try:
            asyncio.run(work(n))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=thread, args=(n,)) for n in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert failures == []
    asyncio.run(store.close())


FORKING = """
import asyncio, os, sys
from habilis.journal import RunInfo
from habilis.journal.stores.conformance_values import records
from habilis.journal.stores.sqlite import SqliteStore

store = SqliteStore(sys.argv[1])
there, here = os.pipe()

async def begin():
    for run in ('run-1', 'run-2'):
        await store.create(RunInfo(run=run))
        await store.claim(run, owner='me', seconds=60)
        await store.append(run, records(1), epoch=1)

async def child():
    await store.append('run-1', records(1, first=2), epoch=1)
    os.read(there, 1)  # the parent has closed the store
    await store.append('run-1', records(1, first=3), epoch=1)
    os._exit(0)

async def parent():
    await store.append('run-2', records(1, first=2), epoch=1)
    while len(await store.load('run-1')) < 2:
        await asyncio.sleep(0.001)
    await store.close()
    os.write(here, b'.')
    os.waitpid(pid, 0)
    await store.append('run-2', records(1, first=3), epoch=1)
    await store.close()

asyncio.run(begin())
pid = os.fork()
asyncio.run(parent() if pid else child())
"""


async def test_a_forked_child_has_a_connection_of_its_own(path: Path) -> None:
    done = subprocess.run([sys.executable, '-c', FORKING, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, '')
    store = SqliteStore(path)
    assert await store.load('run-1') == await store.load('run-2') == records(3)
    await store.close()
    with database(path) as other:
        assert other.execute('PRAGMA integrity_check').fetchall() == [('ok',)]


# Clocks ---------------------------------------------------------------------------------------------------------------


async def test_a_clock_that_is_set_back_does_not_make_a_lease_last_for_ever(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    epoch = await begin(store)
    monkeypatch.setattr(sqlite.time, 'time', lambda: 1000.0)
    assert (await store.claim('run-1', owner='me', seconds=60)).epoch == epoch
    monkeypatch.setattr(sqlite.time, 'time', lambda: 900.0)
    assert (await store.claim('run-1', owner='you', seconds=60)).epoch == epoch + 1
    with pytest.raises(RunBusy):
        await store.claim('run-1', owner='me', seconds=60)
