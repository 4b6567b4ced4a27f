"""The journal: what is written is safe, what is not sure is looked up, and one process at a time writes."""

import asyncio
import logging

import pytest

from habilis.core.background_loop import background_loop
from habilis.core.codec import Json
from habilis.core.errors import (
    CorruptRecord,
    JournalError,
    LeaseLost,
    NotDurable,
    RunBusy,
    RunNotFound,
)
from habilis.journal import Journal, MemoryStore, RunInfo, Scope, Status
from habilis.journal.contract import BLOB_BYTES
from habilis.journal.lookup import value_of
from tests.journal.dying import dying
from tests.journal.faults import RUN, Faulty, Work, again, away, lines_of, new
from tests.waiting import until


@pytest.fixture
async def faulty() -> Faulty:
    """A store that fails as it is told."""
    return Faulty(MemoryStore())


# Opening and closing --------------------------------------------------------------------------------------------------


async def test_a_run_is_created_once() -> None:
    store = MemoryStore()
    first = await Journal.create(store, RunInfo(run=RUN, title='x'))
    with pytest.raises(RunBusy, match='resume it, or choose another id'):
        await Journal.create(store, RunInfo(run=RUN))
    await first.close()
    info = await store.info(RUN)
    assert (info.status, info.title) == ('running', 'x')
    assert 0 < info.created <= info.updated


async def test_a_run_that_is_not_there_or_somebody_elses_is_not_found() -> None:
    store = MemoryStore()
    journal = await Journal.create(store, RunInfo(run=RUN, user='me'))
    await journal.close()
    with pytest.raises(RunNotFound):
        await Journal.open(store, 'another')
    with pytest.raises(RunNotFound):
        await Journal.open(store, RUN, user='you')
    await (await Journal.open(store, RUN, user='me')).close()


async def test_only_one_of_many_opens_a_run_at_once() -> None:
    store = MemoryStore()
    async with new(store):
        pass
    opened = await asyncio.gather(*(Journal.open(store, RUN) for _ in range(5)), return_exceptions=True)
    journals = [journal for journal in opened if isinstance(journal, Journal)]
    assert len(journals) == 1
    assert sum(isinstance(error, RunBusy) for error in opened) == 4
    await journals[0].close()


@pytest.mark.parametrize('status', ['waiting', 'stopped', 'failed', 'done', 'queued'])
async def test_a_run_that_is_opened_is_as_it_was_until_something_new_is_done(status: Status) -> None:
    store, work = MemoryStore(), Work()
    async with new(store) as scope:
        await scope.step('a', work.gives('a'))
        await scope.journal.set_status(status)
    records, info = await store.load(RUN), await store.info(RUN)
    async with again(store) as scope:
        await scope.step('a', work.gives('a'))
        assert (await store.load(RUN), await store.info(RUN)) == (records, info)

        async def look() -> str:
            return (await store.info(RUN)).status

        assert await scope.step('b', look) == 'running'
    assert (await store.info(RUN)).status == 'running'


async def test_a_closed_journal_lets_others_in_and_leaves_nothing_behind() -> None:
    store = MemoryStore()
    tasks = asyncio.all_tasks()
    journal = await Journal.create(store, RunInfo(run=RUN))
    await journal.close()
    await journal.close()
    assert asyncio.all_tasks() == tasks
    assert (await store.lease(RUN)).until == 0
    with pytest.raises(JournalError, match='run-1 is closed; open it again'):
        await journal.write('noted', '')
    await (await Journal.open(store, RUN)).close()


async def test_a_step_that_ends_after_the_journal_was_closed_is_not_written() -> None:
    store, go = MemoryStore(), asyncio.Event()
    async with new(store) as scope:
        task = asyncio.create_task(scope.step('a', go.wait))
        await asyncio.sleep(0)
        await scope.journal.close()
        go.set()
        with pytest.raises(JournalError, match='closed'):
            await task
    assert await lines_of(store) == []


async def test_closing_waits_for_what_is_being_appended(faulty: Faulty) -> None:
    async with new(faulty) as scope:
        faulty.hold = asyncio.Event()
        writing = asyncio.create_task(scope.journal.write('noted', '', value='x'))
        await until(lambda: faulty.appends == 1)
        closing = asyncio.create_task(scope.journal.close())
        await asyncio.sleep(0)
        faulty.hold.set()
        await asyncio.gather(writing, closing)
    assert await lines_of(faulty) == [('noted', '')]
    assert (await faulty.lease(RUN)).until == 0


async def test_closing_ends_the_tries_of_an_append(faulty: Faulty) -> None:
    async with new(faulty) as scope:
        faulty.before = [away() for _ in range(1000)]
        writing = asyncio.create_task(scope.journal.write('noted', '', value='x'))
        await until(lambda: faulty.appends == 1)
        await scope.journal.close()
        with pytest.raises(JournalError, match='closed'):
            await writing
    assert await lines_of(faulty) == []


async def test_a_damaged_run_is_named_and_left_free(faulty: Faulty) -> None:
    async with new(faulty):
        pass
    faulty.loads = [CorruptRecord('record 1 is damaged')]
    tasks = asyncio.all_tasks()
    with pytest.raises(CorruptRecord):
        await Journal.open(faulty, RUN)
    assert asyncio.all_tasks() == tasks
    await (await Journal.open(faulty, RUN)).close()


# The lease ------------------------------------------------------------------------------------------------------------


async def test_a_journal_keeps_its_lease_while_it_is_open(faulty: Faulty) -> None:
    async with new(faulty):
        pass
    journal = await Journal.open(faulty, RUN, seconds=0.06)
    until_when = (await faulty.lease(RUN)).until
    await _renewals(faulty, 3)
    with pytest.raises(RunBusy):
        await Journal.open(faulty, RUN)
    assert (await faulty.lease(RUN)).until > until_when
    await journal.write('noted', '')
    await journal.close()


async def test_a_lease_that_was_not_renewed_in_time_is_kept_if_there_is_no_other_owner(faulty: Faulty) -> None:
    async with new(faulty):
        pass
    journal = await Journal.open(faulty, RUN, seconds=0.03)
    faulty.claims = [away(), away(), away(), away()]
    await _renewals(faulty, 5)
    await journal.write('noted', '')
    await journal.close()
    assert await lines_of(faulty) == [('noted', '')]


async def test_a_lease_is_renewed_in_time_beside_one_that_is_due_much_later(faulty: Faulty) -> None:
    async with new(faulty):
        pass
    await faulty.create(RunInfo(run='long'))
    long = await Journal.open(faulty, 'long')
    short = await Journal.open(faulty, RUN, seconds=0.06)
    await _renewals(faulty, 3)
    await short.close()
    await long.close()


async def test_a_short_run_gives_the_thread_that_renews_leases_nothing_to_do() -> None:
    thread = background_loop('habilis-leases')
    journal = await Journal.create(MemoryStore(), RunInfo(run=RUN))
    for _ in range(3):  # whatever was started is there after this
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asyncio.sleep(0), thread))
    assert not [task for task in asyncio.all_tasks(thread) if 'Renewal' in repr(task)]
    await journal.close()


async def _renewals(faulty: Faulty, count: int) -> None:
    goal = faulty.claim_count + count
    await until(lambda: faulty.claim_count >= goal)


async def test_a_replaced_owner_gets_an_error_at_the_next_write_and_never_writes_again() -> None:
    store = MemoryStore()
    old = await Journal.create(store, RunInfo(run=RUN))
    await old.write('noted', '', value='old')
    new_lease = await store.claim(RUN, owner='new', seconds=60, over=(await store.lease(RUN)).epoch)
    for _ in range(3):
        with pytest.raises(LeaseLost, match='taken over'):
            await old.write('noted', '', value='late')
    await old.close()
    assert [record.value for record in await store.load(RUN)] == ['old']
    assert await store.lease(RUN) == new_lease


async def test_a_keeper_that_finds_another_owner_stops_the_journal(
    faulty: Faulty, caplog: pytest.LogCaptureFixture
) -> None:
    async with new(faulty):
        pass
    old = await Journal.open(faulty, RUN, seconds=0.03)
    lease = await faulty.claim(RUN, owner='new', seconds=60, over=(await faulty.lease(RUN)).epoch)
    with caplog.at_level(logging.WARNING):
        await until(lambda: 'taken over' in caplog.text)
    with pytest.raises(LeaseLost):
        await old.write('noted', '')
    assert faulty.appends == 0
    assert 'taken over' in caplog.text
    await old.close()
    assert await faulty.lease(RUN) == lease


async def test_a_run_that_was_deleted_meanwhile_cannot_be_written(faulty: Faulty) -> None:
    async with new(faulty):
        pass
    journal = await Journal.open(faulty, RUN, seconds=0.03)
    await faulty.delete(RUN)
    await _renewals(faulty, 1)
    with pytest.raises(RunNotFound):
        await journal.write('noted', '')
    await journal.close()


async def test_an_owner_of_another_machine_is_waited_for() -> None:
    store = MemoryStore()
    async with new(store):
        pass
    await store.claim(RUN, owner='elsewhere~boot~pid/1/2/abcd', seconds=0.05)
    with pytest.raises(RunBusy, match='process 1 on elsewhere'):
        await Journal.open(store, RUN)
    await asyncio.sleep(0.06)
    await (await Journal.open(store, RUN)).close()


# What is written ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('length', [0, BLOB_BYTES - 20, BLOB_BYTES + 1, 10 * BLOB_BYTES])
async def test_long_values_become_blobs_and_come_back(length: int) -> None:
    store, value = MemoryStore(), {'text': 'x' * length}
    for opened in (new, again):
        async with opened(store) as scope:
            assert await scope.step('a', Work().gives(value)) == value
    (record,) = await store.load(RUN)
    assert bool(record.blob) == (length > BLOB_BYTES)
    assert record.blob == '' or record.value is None


async def test_long_errors_and_answers_come_back_too() -> None:
    store, text = MemoryStore(), 'x' * (BLOB_BYTES + 1)
    for opened in (new, again):
        async with opened(store) as scope:
            with pytest.raises(ValueError, match=r'^x+$') as failed:
                await scope.step('a', Work().gives(ValueError(text), 'a'))
            assert str(failed.value) == text

            async def person() -> Json:
                return text

            assert await scope.decide('q', text, question='?', key='1', person=person) == text
            assert await scope.journal.value_of((await store.load(RUN))[2]) == text


async def test_blobs_can_be_attached() -> None:
    store = MemoryStore()
    async with new(store) as scope:
        record = await scope.journal.write('done', 'a#1', attached={'one': b'1', 'same': b'1', 'none': b''})
        blobs = {name: await store.blob(RUN, digest) for name, digest in record.attached.items()}
    assert blobs == {'one': b'1', 'same': b'1', 'none': b''}
    assert (await store.load(RUN))[0].attached == record.attached


@pytest.mark.parametrize('value', [float('nan'), [float('inf')], {'a': object()}])
async def test_what_is_no_json_is_refused_before_it_is_written(value: Json) -> None:
    store = MemoryStore()
    async with new(store) as scope:
        with pytest.raises(NotDurable, match='not JSON'):
            await scope.journal.write('noted', '', value=value)
        await scope.step('a', Work().gives('a'))
    assert await lines_of(store) == [('done', 'a#1')]


async def test_the_state_of_a_run_is_written_with_the_record_of_it() -> None:
    store = MemoryStore()
    async with new(store) as scope:
        await scope.journal.end('failed', value={'x': 1}, failed=['a#1'], error='why')
    info = await store.info(RUN)
    assert (info.status, info.error) == ('failed', 'why')
    (record,) = await store.load(RUN)
    assert record.value == {'status': 'failed', 'value': {'x': 1}, 'failed': ['a#1']}


@pytest.mark.parametrize('value', [None, 'x', [], {'failed': 3}, {'failed': [1, None]}, {}])
async def test_an_end_that_makes_no_sense_can_be_opened(value: Json) -> None:
    store = MemoryStore()
    async with new(store) as scope:
        await scope.journal.write('ended', '', value=value, status='failed')
    async with again(store) as scope:
        assert await scope.step('a', Work().gives('a')) == 'a'


async def test_steps_under_way_are_counted() -> None:
    async with new(MemoryStore()) as scope:

        async def look() -> int:
            return scope.journal.running_steps

        assert scope.journal.running_steps == 0
        assert await scope.step('a', look) == 1
        assert await asyncio.gather(scope.step('b', look), scope.step('c', look)) in ([1, 1], [1, 2], [2, 2])
        assert scope.journal.running_steps == 0


async def test_a_scope_that_is_begun_again_in_one_process_answers_from_the_record() -> None:
    store, work = MemoryStore(), Work()

    async def steps(scope: Scope, last: object) -> None:
        await asyncio.gather(scope.step('x', work.gives('x')), scope.step('y', work.gives('y')))
        await scope.step('a', work.gives('a'))
        try:
            await scope.step('b', work.gives(last, 'b'))
        except ValueError:
            await scope.step('tidy', work.gives('tidy'))
            raise

    async with new(store) as scope:
        with scope.below('s').entered() as inside:
            with pytest.raises(ValueError, match='b'):
                await steps(inside, ValueError('b'))
            await scope.journal.rewind(inside.path, ['s#1/b#1'])
        with inside.entered():
            await steps(inside, 'b')
            await inside.finish()
    assert work.done == ['x', 'y', 'a', 'b', 'tidy', 'b']
    async with again(store) as scope:
        with scope.below('s').entered() as inside:
            await steps(inside, 'b')
            await inside.finish()
    assert len(work.done) == 6


# A process that died before it wrote anything -------------------------------------------------------------------------


async def test_a_run_has_its_first_record_as_soon_as_it_exists() -> None:
    store = MemoryStore()
    with dying(store, 1) as its_store:
        await Journal.create(its_store, RunInfo(run=RUN), {'task': 'x' * 100_000})
    (record,) = await store.load(RUN)
    assert (record.kind, record.path, record.at > 0) == ('opened', '', True)
    assert await value_of(store, RUN, record) == {'task': 'x' * 100_000}
    assert (await store.info(RUN)).status == 'running'
    async with again(store) as scope:
        await scope.step('a', Work().gives('a'))
    assert await lines_of(store) == [('opened', ''), ('done', 'a#1')]


async def test_a_name_that_is_taken_is_refused() -> None:
    store = MemoryStore()
    for _ in range(2):
        async with new(store, 'other') as scope:
            await scope.step('a', Work().gives('a'))
        with pytest.raises(RunBusy, match='the run other exists already; resume it'):
            await Journal.create(store, RunInfo(run='other'))
        await store.delete('other')


async def test_choosing_the_run_id_of_another_user_does_not_reveal_that_the_run_exists() -> None:
    store = MemoryStore()
    await (await Journal.create(store, RunInfo(run=RUN, user='ann'))).close()
    for user in ('bob', ''):
        with pytest.raises(JournalError, match='choose another id') as refused:
            await Journal.create(store, RunInfo(run=RUN, user=user))
        assert not isinstance(refused.value, RunBusy)
        assert 'exists' not in str(refused.value)
    with pytest.raises(RunBusy, match='exists already; resume it'):
        await Journal.create(store, RunInfo(run=RUN, user='ann'))
