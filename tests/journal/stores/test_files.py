"""What is special about runs in plain files."""

import asyncio
import fcntl
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.core.errors import CorruptRecord, LeaseLost, RunBusy, RunNotFound, StoreUnavailable
from habilis.journal import Journal, Scope
from habilis.journal.contract import RunInfo
from habilis.journal.encoding import decode_record, digest_of
from habilis.journal.runs import fork, list_runs
from habilis.journal.stores import files
from habilis.journal.stores.conformance_values import record, records
from habilis.journal.stores.files import FileStore
from habilis.journal.stores.run_folder import safe_name

DIGEST = digest_of(b'x')


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    """A store without runs, whose folder is not there yet."""
    return FileStore(tmp_path / 'a folder' / 'journal')


@pytest.fixture
def folder(store: FileStore) -> Path:
    """Of the run."""
    return store.folder / 'run-1'


async def begin(store: FileStore, count: int = 3) -> int:
    """Have a run with records and a blob. Gives its epoch."""
    await store.create(RunInfo(run='run-1'))
    lease = await store.claim('run-1', owner='me', seconds=60)
    await store.append('run-1', records(count), epoch=lease.epoch, blobs={DIGEST: b'x'})
    return lease.epoch


# The files ------------------------------------------------------------------------------------------------------------


async def test_every_run_is_a_folder_that_people_can_read(store: FileStore, folder: Path) -> None:
    await begin(store)
    names = {str(path.relative_to(folder)) for path in folder.rglob('*')}
    assert names == {'info.json', 'records.jsonl', 'lease.json', 'lock', 'blobs', f'blobs/{DIGEST}'}
    lines = (folder / 'records.jsonl').read_text('ascii').splitlines()
    assert [decode_record(line, run='run-1', seq=seq) for seq, line in enumerate(lines, 1)] == records(3)
    assert (folder / 'blobs' / DIGEST).read_bytes() == b'x'


async def test_only_its_owner_can_read_it(store: FileStore) -> None:
    await begin(store)
    for path in (store.folder, *store.folder.rglob('*')):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


async def test_nothing_is_made_before_there_is_a_run(store: FileStore, tmp_path: Path) -> None:
    assert await store.runs() == []
    with pytest.raises(RunNotFound):
        await store.load('run-1')
    assert list(tmp_path.iterdir()) == []


async def test_other_files_in_the_folder_are_no_runs(store: FileStore) -> None:
    await begin(store)
    (store.folder / 'notes.txt').touch()
    (store.folder / 'empty').mkdir()
    assert [info.run for info in await store.runs()] == ['run-1']
    with pytest.raises(RunNotFound):
        await store.load('empty')


async def test_a_store_of_full_durability_works_like_the_other(tmp_path: Path) -> None:
    store = FileStore(tmp_path, durability='full')
    epoch = await begin(store)
    await store.append('run-1', records(1, first=4), epoch=epoch, info=RunInfo(run='run-1', title='new'))
    assert await store.load('run-1') == records(4)
    assert (await store.info('run-1')).title == 'new'


async def test_a_file_is_no_folder_for_runs(tmp_path: Path) -> None:
    (tmp_path / 'file').touch()
    for path in (tmp_path / 'file', tmp_path / 'file' / 'below'):
        store = FileStore(path)
        for asked in (store.create(RunInfo(run='run-1')), store.runs()):
            with pytest.raises(StoreUnavailable, match='give a folder') as caught:
                await asked
            assert str(path) in str(caught.value)


# Names ----------------------------------------------------------------------------------------------------------------


def test_an_ordinary_name_stays_as_it_is() -> None:
    assert safe_name('run-0123abc_x') == 'run-0123abc_x'


@given(st.text(st.characters(), max_size=300), st.text(st.characters(), max_size=300))
def test_no_two_names_share_a_folder(one: str, other: str) -> None:
    for name in (one, other, one + other, one.upper()):
        safe = safe_name(name)
        assert 0 < len(safe) <= 150
        assert set(safe) <= set('abcdefghijklmnopqrstuvwxyz0123456789-_%')
        assert (safe == safe_name(one)) == (name == one)


# Lines that were cut short --------------------------------------------------------------------------------------------


@pytest.mark.parametrize('torn', [b'0', b'0123abcd {"v":1,"n":4', b'\xff\x00', b'\x00' * 5000])
async def test_a_last_line_without_its_end_was_never_written(store: FileStore, folder: Path, torn: bytes) -> None:
    epoch = await begin(store)
    whole, size = (folder / 'records.jsonl').read_bytes(), (folder / 'lock').read_bytes()
    for other in (store, FileStore(store.folder)):
        with (folder / 'records.jsonl').open('ab') as file:
            file.write(torn)
        assert await other.load('run-1') == records(3)
        assert (folder / 'records.jsonl').read_bytes() == whole + torn
        with pytest.raises(LeaseLost):
            await other.append('run-1', [record(5)], epoch=epoch)
        await other.append('run-1', records(1, first=4), epoch=epoch)
        assert await other.load('run-1') == records(4)
        (folder / 'records.jsonl').write_bytes(whole)
        (folder / 'lock').write_bytes(size)


@pytest.mark.parametrize('old', [False, True], ids=['this_version', 'older_version'])
async def test_a_process_may_die_anywhere_in_a_line(store: FileStore, folder: Path, old: bool) -> None:
    epoch = await begin(store, count=1)
    before = b'' if old else (folder / 'lock').read_bytes()  # an older version kept no size
    await store.append('run-1', records(1, first=2), epoch=epoch)
    whole, after = (folder / 'records.jsonl').read_bytes(), (folder / 'lock').read_bytes()
    start = whole.index(b'\n') + 1
    for size in range(start, len(whole)):
        (folder / 'records.jsonl').write_bytes(whole[:size])
        (folder / 'lock').write_bytes(before)
        assert await store.load('run-1') == records(1)
        await store.append('run-1', records(1, first=2), epoch=epoch)
        assert (folder / 'records.jsonl').read_bytes() == whole
        assert (folder / 'lock').read_bytes() == after


# Records that something else has cut off ------------------------------------------------------------------------------


async def test_records_that_were_cut_off_are_named_and_those_before_are_kept(store: FileStore, folder: Path) -> None:
    epoch = await begin(store, count=3)
    path = folder / 'records.jsonl'
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        left = whole[:size].count(b'\n')
        for other in (store, FileStore(store.folder)):
            with pytest.raises(CorruptRecord, match=rf'record {left + 1} of .* cut off .* --before {left + 1}') as cut:
                await other.load('run-1')
            assert cut.value.before == records(left)
            with pytest.raises(CorruptRecord, match='cut off'):
                await other.append('run-1', records(1, first=4), epoch=epoch)
        assert path.read_bytes() == whole[:size]
    path.write_bytes(whole)
    await store.append('run-1', records(1, first=4), epoch=epoch)
    assert await store.load('run-1') == records(4)


async def test_a_run_that_was_cut_off_is_forked_before_the_cut(store: FileStore, folder: Path) -> None:
    await store.release('run-1', epoch=await begin(store, count=3))
    path = folder / 'records.jsonl'
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptRecord, match='cut off'):
        await Journal.open(store, 'run-1')
    copy = await fork(store, 'run-1', 3)
    assert (await store.load(copy.run))[:-1] == records(2)
    assert {each.info.run for each in await list_runs(store)} == {copy.run, 'run-1'}


async def test_a_step_that_must_not_be_repeated_is_not_repeated_after_a_cut(store: FileStore, folder: Path) -> None:
    done: list[int] = []

    async def pay() -> None:
        done.append(1)

    journal = await Journal.create(store, RunInfo(run='run-1'))
    await Scope(journal, '').step('pay', pay, once=True)
    await journal.close()
    (folder / 'records.jsonl').write_bytes(b'')
    with pytest.raises(CorruptRecord, match='cut off'):
        await Journal.open(store, 'run-1')
    assert done == [1]


async def test_an_append_that_was_undone_is_not_taken_for_a_cut(store: FileStore) -> None:
    epoch = await begin(store)
    replace: Callable[[str, str], None] = files.os.replace

    def fails(old: str, new: str) -> None:
        if new.endswith('info.json'):
            raise OSError(28, 'no space')
        replace(old, new)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files.os, 'replace', fails)
        with pytest.raises(StoreUnavailable):
            await store.append('run-1', records(2, first=4), epoch=epoch, info=RunInfo(run='run-1'))
    assert await store.load('run-1') == records(3)
    await store.append('run-1', records(1, first=4), epoch=epoch)
    assert await FileStore(store.folder).load('run-1') == records(4)


async def test_a_plan_for_records_that_were_cut_off_does_not_hide_the_cut(store: FileStore, folder: Path) -> None:
    epoch = await begin(store, count=1)
    plans: list[bytes] = []
    unlink: Callable[[str], None] = files.os.unlink

    def keep(path: str) -> None:
        plans.append(Path(path).read_bytes())
        unlink(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files.os, 'unlink', keep)
        await store.append('run-1', records(2, first=2), epoch=epoch)
    (folder / 'records.jsonl').write_bytes(b'')
    (folder / 'lock').write_bytes(b'')
    (folder / 'pending.json').write_bytes(plans[0])
    for _ in range(2):
        with pytest.raises(CorruptRecord, match=r'record 1 of run-1 .* cut off'):
            await store.load('run-1')


# Damage ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('seq', [1, 2, 3])
@pytest.mark.parametrize('place', [0, 8, 12, -2])
async def test_a_damaged_record_is_named(store: FileStore, folder: Path, seq: int, place: int) -> None:
    epoch = await begin(store)
    lines = (folder / 'records.jsonl').read_bytes().splitlines(keepends=True)
    damaged = bytearray(lines[seq - 1])
    damaged[place] ^= 0x80
    lines[seq - 1] = bytes(damaged)
    (folder / 'records.jsonl').write_bytes(b''.join(lines))
    for other in (store, FileStore(store.folder)):
        with pytest.raises(CorruptRecord, match=f'record {seq} of run-1 is damaged'):
            await other.load('run-1')
        assert await other.load('run-1', after=seq) == records(3 - seq, first=seq + 1)
    await store.append('run-1', records(1, first=4), epoch=epoch)
    assert await store.load('run-1', after=3) == records(1, first=4)


async def test_a_missing_record_is_named(store: FileStore, folder: Path) -> None:
    await begin(store)
    lines = (folder / 'records.jsonl').read_bytes().splitlines(keepends=True)
    (folder / 'records.jsonl').write_bytes(lines[0] + lines[2])
    with pytest.raises(CorruptRecord, match='record 2 of run-1 is damaged: its number is 3'):
        await store.load('run-1')


@pytest.mark.parametrize('data', [b'y', b'', b'xx'])
async def test_a_damaged_blob_is_named(store: FileStore, folder: Path, data: bytes) -> None:
    await begin(store)
    (folder / 'blobs' / DIGEST).write_bytes(data)
    with pytest.raises(CorruptRecord, match='damaged'):
        await store.blob('run-1', DIGEST)


@pytest.mark.parametrize('data', [b'', b'{}', b'{"epoch": "x"}', b'\xff', b'[1]', b'null'])
@pytest.mark.parametrize('name', ['info.json', 'lease.json'])
async def test_a_damaged_file_of_a_run_is_named_and_the_run_can_be_deleted(
    store: FileStore, folder: Path, name: str, data: bytes
) -> None:
    await begin(store)
    (folder / name).write_bytes(data)
    asked = store.info('run-1') if name == 'info.json' else store.lease('run-1')
    with pytest.raises(CorruptRecord, match=f'run-1/{name} is damaged'):
        await asked
    assert len(await store.runs()) == (name != 'info.json')
    await store.delete('run-1')
    assert await store.runs() == []


@pytest.mark.parametrize('name', ['info.json', 'records.jsonl'])
async def test_a_missing_file_of_a_run_is_named(store: FileStore, folder: Path, name: str) -> None:
    epoch = await begin(store)
    (folder / name).unlink()
    asked = store.info('run-1') if name == 'info.json' else store.load('run-1')
    with pytest.raises(CorruptRecord, match=f'run-1/{name} is missing'):
        await asked
    if name == 'records.jsonl':
        with pytest.raises(CorruptRecord, match='is missing'):
            await store.append('run-1', records(1, first=4), epoch=epoch)


@pytest.mark.parametrize('plan', [b'', b'0', b'00000000 {}', b'\xff\xff'])
async def test_a_plan_that_was_lost_with_the_machine_is_dropped(store: FileStore, folder: Path, plan: bytes) -> None:
    await begin(store)
    (folder / 'pending.json').write_bytes(plan)
    assert await store.load('run-1') == records(3)
    assert not (folder / 'pending.json').exists()


async def test_a_plan_that_comes_back_after_more_was_written_undoes_nothing(store: FileStore, folder: Path) -> None:
    """A machine without power may forget that a file was removed."""
    epoch = await begin(store, count=1)
    plans: list[bytes] = []
    unlink: Callable[[str], None] = files.os.unlink

    def keep(path: str) -> None:
        plans.append(Path(path).read_bytes())
        unlink(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files.os, 'unlink', keep)
        await store.append('run-1', records(2, first=2), epoch=epoch, info=RunInfo(run='run-1', title='old'))
    newest = RunInfo(run='run-1', title='new')
    await store.append('run-1', records(1, first=4), epoch=epoch, info=newest)
    (folder / 'pending.json').write_bytes(plans[0])
    assert await store.load('run-1') == records(4)
    assert await store.info('run-1') == newest


# Others at the same run -----------------------------------------------------------------------------------------------


async def test_while_another_process_works_on_the_run_the_event_loop_continues(store: FileStore, folder: Path) -> None:
    epoch = await begin(store)
    with (folder / 'lock').open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = asyncio.create_task(store.append('run-1', records(1, first=4), epoch=epoch))
        for _ in range(100):
            await asyncio.sleep(0)
        assert not waiting.done()
        assert await store.create(RunInfo(run='run-2'))  # other runs do not wait
        fcntl.flock(lock, fcntl.LOCK_UN)
        await waiting
    assert await store.load('run-1') == records(4)


async def test_waiting_too_long_for_a_lock_is_a_passing_error(
    store: FileStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    epoch = await begin(store)
    monkeypatch.setattr(files, 'LOCK_SECONDS', 0.05)
    with (folder / 'lock').open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StoreUnavailable, match='another process has locked run-1') as caught:
            await store.append('run-1', records(1, first=4), epoch=epoch)
        assert caught.value.passing
    assert await store.load('run-1') == records(3)


async def test_waiting_for_a_run_that_is_deleted_raises(store: FileStore, folder: Path) -> None:
    epoch = await begin(store)
    with (folder / 'lock').open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = asyncio.create_task(store.append('run-1', records(1, first=4), epoch=epoch))
        await asyncio.sleep(0.01)
        folder.rename(store.folder / '.old-1')
    with pytest.raises(RunNotFound):
        await waiting


async def test_a_run_that_is_deleted_just_before_it_is_locked_is_not_written(
    store: FileStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    epoch = await begin(store)
    written = (folder / 'records.jsonl').read_bytes()
    monkeypatch.setattr(files, '_lock', lambda file: folder.rename(store.folder / '.old-1'))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    with pytest.raises(RunNotFound):
        await store.append('run-1', records(1, first=4), epoch=epoch)
    assert (store.folder / '.old-1' / 'records.jsonl').read_bytes() == written


def test_event_loops_in_many_threads_may_share_a_store(store: FileStore) -> None:
    failures: list[BaseException] = []

    async def work(n: int) -> None:
        run = f'run-{n % 2}'
        await store.create(RunInfo(run=run))
        for _ in range(20):
            held = await store.lease(run)
            lease = await store.claim(run, owner=f'{n}', seconds=60, over=held.epoch)
            count = len(await store.load(run))
            await store.append(run, [record(count + 1, n)], epoch=lease.epoch)

    def thread(n: int) -> None:
        try:
            asyncio.run(work(n))
        except (LeaseLost, RunBusy):
            pass  # another thread was faster
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=thread, args=(n,)) for n in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert failures == []
    for run in ('run-0', 'run-1'):
        assert asyncio.run(store.load(run))


async def test_what_another_store_wrote_in_the_meantime_is_noticed(store: FileStore) -> None:
    epoch, other = await begin(store), FileStore(store.folder)
    await other.append('run-1', records(1, first=4), epoch=epoch)
    await store.append('run-1', records(1, first=5), epoch=epoch)
    with pytest.raises(LeaseLost):
        await other.append('run-1', [record(5, 'another')], epoch=epoch)
    assert await other.load('run-1') == records(5)


# Systems and clocks ---------------------------------------------------------------------------------------------------


def test_without_file_locks_the_error_names_an_alternative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, 'find_spec', lambda name: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    with pytest.raises(StoreUnavailable, match='use SqliteStore'):
        FileStore(tmp_path)


async def test_a_clock_that_is_set_back_does_not_make_a_lease_last_for_ever(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    epoch = await begin(store)
    monkeypatch.setattr(files.time, 'time', lambda: 1000.0)
    assert (await store.claim('run-1', owner='me', seconds=60)).epoch == epoch
    monkeypatch.setattr(files.time, 'time', lambda: 900.0)
    assert (await store.claim('run-1', owner='you', seconds=60)).epoch == epoch + 1
    with pytest.raises(RunBusy):
        await store.claim('run-1', owner='me', seconds=60)


async def test_what_one_who_died_was_writing_is_removed_by_the_next_owner(store: FileStore, folder: Path) -> None:
    epoch = await begin(store)
    halves = [folder / 'info.json.new', folder / 'blobs' / f'{digest_of(b"y")}.new']
    for half in halves:
        half.write_bytes(b'')
    await store.claim('run-1', owner='me', seconds=60)
    assert all(half.exists() for half in halves)
    await store.claim('run-1', owner='you', seconds=60, over=epoch)
    assert not any(half.exists() for half in halves)
    assert await store.blob('run-1', DIGEST) == b'x'
