"""Copies of runs: forks, and runs as one file that another machine can read."""

import asyncio
import base64
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.core.errors import CorruptRecord, JournalError, RunBusy
from habilis.journal import Journal, MemoryStore, RunInfo, copies
from habilis.journal.contract import BLOB_BYTES, Record
from habilis.journal.copies import copy_run, digests_of, export_run, import_run, new_run_id
from habilis.journal.encoding import digest_of
from tests.journal.dying import dying
from tests.journal.faults import RUN, Faulty, Work, again, new


@pytest.fixture
async def store() -> MemoryStore:
    """With a run that has everything."""
    store = MemoryStore()
    async with new(store) as scope:
        await scope.step('a', Work().gives('ä\n\u2028\ud800'))
        await scope.step('long', Work().gives('x' * (BLOB_BYTES + 1)))
        await scope.journal.write('done', 'b#1', attached={'snapshot': b'\0\1', 'empty': b''})
        await scope.step('c', Work().gives('c'))
    return store


async def _content(store: MemoryStore | Faulty, run: str) -> tuple[list[Record], dict[str, bytes]]:
    records = await store.load(run)
    return records, {digest: await store.blob(run, digest) for record in records for digest in digests_of(record)}


# Files ----------------------------------------------------------------------------------------------------------------


async def test_a_run_arrives_elsewhere_as_it_was(store: MemoryStore) -> None:
    text = await export_run(store, RUN)
    other = MemoryStore()
    info = await import_run(other, text)
    assert await _content(other, RUN) == await _content(store, RUN)
    assert info == await other.info(RUN)
    assert text.isascii()
    async with again(other) as scope:
        assert await scope.step('a', Work().gives('again?')) == 'ä\n\u2028\ud800'
        assert await scope.step('long', Work().gives('again?')) == 'x' * (BLOB_BYTES + 1)


async def test_a_run_that_was_running_arrives_stopped(store: MemoryStore) -> None:
    other = MemoryStore()
    assert (await import_run(other, await export_run(store, RUN))).status == 'stopped'
    async with again(store) as scope:
        await scope.journal.end('failed', error='why')
    failed = await import_run(other, await export_run(store, RUN), run='second')
    assert (failed.status, failed.error) == ('failed', 'why')


async def test_a_run_may_get_another_name_and_user(store: MemoryStore) -> None:
    text = await export_run(store, RUN)
    info = await import_run(store, text, run='other', user='you')
    assert (info.run, info.user) == ('other', 'you')
    assert await _content(store, 'other') == await _content(store, RUN)
    assert (await store.info(RUN)).user == ''


@pytest.mark.parametrize('name', ['a\nb', '\x1b[2J', 'a\u202eb', '\ud800'])
async def test_a_name_that_cannot_be_typed_is_refused(store: MemoryStore, name: str) -> None:
    with pytest.raises(JournalError, match='is not a valid run id'):
        await import_run(store, await export_run(store, RUN), run=name)
    with pytest.raises(JournalError, match='is not a valid run id'):
        await Journal.create(store, RunInfo(run=name))
    assert [info.run for info in await store.runs()] == [RUN]


async def test_a_run_does_not_take_the_place_of_another(store: MemoryStore) -> None:
    before = await _content(store, RUN)
    with pytest.raises(RunBusy, match='give the copy another id'):
        await import_run(store, await export_run(store, RUN))
    assert await _content(store, RUN) == before


async def test_an_empty_run_can_be_sent(store: MemoryStore) -> None:
    await store.create(RunInfo(run='empty'))
    other = MemoryStore()
    await import_run(other, await export_run(store, 'empty'))
    assert await other.load('empty') == []


async def test_line_breaks_of_another_system_do_no_harm(store: MemoryStore) -> None:
    text = (await export_run(store, RUN)).replace('\n', '\r\n')
    await import_run(MemoryStore(), text)


async def test_a_truncated_file_is_refused_wherever_it_ends(store: MemoryStore) -> None:
    text, other = await export_run(store, RUN), MemoryStore()
    for end in [*range(0, len(text) - 1, 97), *range(len(text) - 200, len(text) - 1)]:
        with pytest.raises(CorruptRecord):
            await import_run(other, text[:end])
    assert await other.runs() == []


@given(st.data())
def test_a_changed_letter_anywhere_is_refused(data: st.DataObject) -> None:
    text = EXPORTED
    place = data.draw(st.integers(0, len(text) - 2))
    letter = data.draw(st.characters(max_codepoint=127).filter(lambda letter: letter != text[place]))
    with pytest.raises(CorruptRecord):
        asyncio.run(import_run(MemoryStore(), text[:place] + letter + text[place + 1 :]))


async def _small() -> str:
    store = MemoryStore()
    async with new(store) as scope:
        await scope.step('a', Work().gives('a'))
        await scope.journal.write('done', 'b#1', attached={'snapshot': b'\0\1'})
    return await export_run(store, RUN)


EXPORTED = asyncio.run(_small())


async def test_a_missing_line_in_the_middle_is_refused() -> None:
    lines = EXPORTED.splitlines(keepends=True)
    for number in range(1, len(lines) - 1):
        with pytest.raises(CorruptRecord):
            await import_run(MemoryStore(), ''.join([*lines[:number], *lines[number + 1 :]]))


@pytest.mark.parametrize('text', ['', '\n', 'hello', 'habilis run 1', 'habilis run 2\n{}\nend 0\n', '\0' * 100])
async def test_other_files_are_no_runs(text: str) -> None:
    with pytest.raises(CorruptRecord, match=r'not an exported run|its last line is missing'):
        await import_run(MemoryStore(), text)


def _with_blob(line: str) -> str:
    lines = EXPORTED.splitlines()
    return '\n'.join([*lines[:2], line, *lines[3:], ''])


@pytest.mark.parametrize(
    'line',
    [
        '{',
        '{}',
        '{"blob":3}',
        '{"blob":"x","z":3}',
        '{"blob":"x","z":"?"}',
        '{"blob":"x","z":"AAAA"}',
        '{"blob":' * 5000,
        '{"blob":"x","z":"' + base64.b64encode(zlib.compress(b'x')[:-2]).decode() + '"}',
    ],
    ids=lambda line: line[:30],
)
async def test_a_damaged_blob_is_refused(line: str) -> None:
    with pytest.raises(CorruptRecord, match='a blob of the exported run run-1 is damaged'):
        await import_run(MemoryStore(), _with_blob(line))


async def test_a_short_file_cannot_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, 'MAX_BLOB', 1000)
    data = b'x' * 1001
    line = f'{{"blob":"{digest_of(data)}","z":"{base64.b64encode(zlib.compress(data)).decode()}"}}'
    with pytest.raises(CorruptRecord, match='larger than 1,000 bytes'):
        await import_run(MemoryStore(), _with_blob(line))


async def test_a_run_whose_blob_is_not_in_the_file_is_refused(store: MemoryStore) -> None:
    lines = EXPORTED.splitlines()
    text = '\n'.join([*lines[:2], *lines[3:-1]])
    end = f'end {len(lines) - 4} {digest_of(text.encode())}'
    with pytest.raises(CorruptRecord, match=r'the blob .* is missing'):
        await import_run(store, f'{text}\n{end}\n', run='other')


# Copies ---------------------------------------------------------------------------------------------------------------


async def test_a_copy_has_the_first_records_and_says_where_it_is_from(store: MemoryStore) -> None:
    before = await store.info(RUN)
    info = await copy_run(store, before, upto=2)
    assert info == await store.info(info.run)
    assert (info.status, info.parent, info.error) == ('stopped', RUN, '')
    records, blobs = await _content(store, info.run)
    assert records == (await store.load(RUN))[:2]
    assert len(blobs) == 1
    assert await store.info(RUN) == before
    async with again(store, info.run):
        pass  # nobody holds it


async def test_a_copy_may_leave_records_out(store: MemoryStore) -> None:
    info = await copy_run(store, await store.info(RUN), keep=lambda record: record.path != 'a#1')
    records = await store.load(info.run)
    assert [(record.seq, record.path) for record in records] == [(1, 'long#1'), (2, 'b#1'), (3, 'c#1')]


async def test_a_copy_is_whole_or_not_there_whenever_its_process_dies(store: MemoryStore) -> None:
    operations, copies = 0, list[RunInfo]()
    while not copies:
        with dying(store, operations) as its_store:
            await copy_run(its_store, await store.info(RUN), note=('noted', 'copied'))
        copies = [info for info in await store.runs() if info.run != RUN]
        assert len(copies) == (not its_store.is_dead)
        operations += 1
    records, blobs = await _content(store, copies[0].run)
    before, blobs_before = await _content(store, RUN)
    assert (records[:-1], blobs) == (before, blobs_before)
    assert (records[-1].seq, records[-1].value) == (len(before) + 1, 'copied')


def test_names_of_runs_are_all_different() -> None:
    assert len({new_run_id() for _ in range(1000)}) == 1000
