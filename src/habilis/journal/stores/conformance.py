"""Conformance tests for stores. Subclass in your own test suite, implement `connect`, and run pytest:

    class TestMine(StoreConformance):
        async def connect(self, place: Path) -> Store:
            return MyStore(place / 'journal')

It needs `pytest-asyncio`. A store conforms if all tests pass.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from habilis.core.codec import Json
from habilis.core.errors import CorruptRecord, JournalError, LeaseLost, RunBusy, RunNotFound
from habilis.journal.contract import Lease, Record, RunCount, RunInfo, Store
from habilis.journal.encoding import digest_of
from habilis.journal.journal import Journal
from habilis.journal.stores.conformance_values import Connect, ValuesConformance, record, records


class StoreConformance(ValuesConformance):
    """Tests of the behaviour of a store."""

    # Runs -------------------------------------------------------------------------------------------------------------

    async def test_it_is_a_store(self, store: Store) -> None:
        assert isinstance(store, Store)

    async def test_a_new_run_has_its_info_no_records_and_no_owner(self, store: Store) -> None:
        info = RunInfo(
            run='run-1',
            status='waiting',
            kind='flow',
            name='shop:order',
            title='a title',
            user='ada',
            session='s',
            parent='run-0',
            error='no',
            created=12.5,
            updated=13.25,
        )
        assert await store.create(info) is True
        assert await store.info('run-1') == info
        assert await store.load('run-1') == []
        assert await store.lease('run-1') == Lease(epoch=0)

    async def test_a_run_that_is_there_is_not_made_again(self, store: Store, again: Connect) -> None:
        lease = await self.begin(store, title='first')
        await store.append('run-1', records(2), epoch=lease.epoch)
        for other in (store, await again()):
            assert await other.create(RunInfo(run='run-1', title='second')) is False
        assert (await store.info('run-1')).title == 'first'
        assert await store.load('run-1') == records(2)
        assert await store.lease('run-1') == lease

    async def test_of_many_who_make_the_same_run_one_does(self, store: Store, again: Connect) -> None:
        stores = [store, await again()] * 4
        made = await asyncio.gather(*(each.create(RunInfo(run='run-1', title=str(n))) for n, each in enumerate(stores)))
        assert sorted(made) == [False] * 7 + [True]
        assert (await store.info('run-1')).title == str(made.index(True))

    async def test_a_run_is_made_together_with_its_first_records(self, store: Store, again: Connect) -> None:
        info, data = RunInfo(run='run-1', status='running', user='ada'), b'x' * 100_000
        assert await store.create(info, records(3), blobs={digest_of(data): data}) is True
        for each in (store, await again()):
            assert await each.info('run-1') == info
            assert await each.load('run-1') == records(3)
            assert await each.blob('run-1', digest_of(data)) == data
            assert await each.lease('run-1') == Lease(epoch=0)
        lease = await store.claim('run-1', owner='me', seconds=60)
        await store.append('run-1', records(2, first=3), epoch=lease.epoch)
        assert await store.load('run-1') == records(4)

    async def test_of_many_who_make_the_same_run_only_the_records_of_one_are_kept(
        self, store: Store, again: Connect
    ) -> None:
        stores, blobs = [store, await again()] * 4, [b'%d' % n for n in range(8)]
        made = await asyncio.gather(
            *(
                each.create(RunInfo(run='run-1'), [record(1, n), record(2, n)], blobs={digest_of(blobs[n]): blobs[n]})
                for n, each in enumerate(stores)
            )
        )
        assert sorted(made) == [False] * 7 + [True]
        assert [one.value for one in await store.load('run-1')] == [made.index(True)] * 2
        for n, data in enumerate(blobs):
            if made[n]:
                assert await store.blob('run-1', digest_of(data)) == data
            else:
                with pytest.raises(CorruptRecord):
                    await store.blob('run-1', digest_of(data))

    @pytest.mark.parametrize('wrong', [records(1, first=2), records(1, first=0), [*records(1), *records(1)]])
    async def test_a_run_whose_first_records_are_not_numbered_from_1_is_not_made(
        self, store: Store, wrong: list[Record]
    ) -> None:
        with pytest.raises(JournalError):
            await store.create(RunInfo(run='run-1'), wrong)
        assert await store.runs() == []

    async def test_an_unknown_run_is_not_found_whatever_is_asked_of_it(self, store: Store) -> None:
        await self.begin(store, 'run-10')
        for run in ('run-1', '', '..', 'run-10/', 'RUN-10', 'x\x00', '\udcff', 'x' * 5000):
            for asked in (
                store.claim(run, owner='me', seconds=1),
                store.release(run, epoch=0),
                store.append(run, records(1), epoch=0),
                store.append(run, [], epoch=0, info=RunInfo(run='run-10')),
                store.load(run),
                store.blob(run, digest_of(b'')),
                store.info(run),
                store.lease(run),
                store.delete(run),
            ):
                with pytest.raises(RunNotFound):
                    await asked
        assert [info.run for info in await store.runs()] == ['run-10']

    async def test_runs_are_listed_newest_first(self, store: Store) -> None:
        assert await store.runs() == []
        infos = [RunInfo(run=run, created=at) for run, at in (('b', 2.0), ('d', 3.5), ('a', 1.0), ('c', 3.5))]
        for info in infos:
            await store.create(info)
        assert await store.runs() == [infos[1], infos[3], infos[0], infos[2]]

    async def test_runs_are_found_by_user_session_and_status(self, store: Store) -> None:
        await store.create(RunInfo(run='1', user='ada', session='s', status='done'))
        await store.create(RunInfo(run='2', user='ada', session='t', status='failed'))
        await store.create(RunInfo(run='3', user='bob', session='s', status='done'))
        await store.create(RunInfo(run='4', status='done'))

        async def found(**wanted: Any) -> set[str]:
            return {info.run for info in await store.runs(**wanted)}

        assert await found() == {'1', '2', '3', '4'}
        assert await found(user='ada') == {'1', '2'}
        assert await found(user='Ada') == await found(user='ad%') == await found(user='eve') == set()
        assert await found(user='') == await found(session='') == {'4'}
        assert await found(session='s') == {'1', '3'}
        assert await found(status='done') == {'1', '3', '4'}
        assert await found(status='running') == set()
        assert await found(user='ada', session='s', status='done') == {'1'}
        assert await found(user='bob', session='t') == set()

    async def test_runs_are_counted_by_status_end_and_time(self, store: Store) -> None:
        for info in (
            RunInfo(run='1', user='ada', status='done', ended='answer', cost=0.5, seconds=3.0, updated=101.0),
            RunInfo(run='2', user='ada', status='done', ended='answer', cost=0.25, seconds=9.5, updated=109.0),
            RunInfo(run='3', user='ada', status='failed', ended='ModelError', title='\x00"cost":9', updated=112.0),
            RunInfo(run='4', user='ada', status='done', ended='answer', cost=7.0, seconds=70.0, updated=99.0),
            RunInfo(run='5', user='ada', status='queued', updated=20.0),
            RunInfo(run='6', user='bob', status='done', cost=1e-7, updated=100.0),
        ):
            await store.create(info)
        found = await store.figures(user='ada', since=100.0, interval=10.0, slowest=2)
        assert found.counts == (
            RunCount(status='done', ended='answer', interval=0, runs=2, cost=0.75, seconds=12.5),
            RunCount(status='failed', ended='ModelError', interval=1, runs=1, cost=0.0, seconds=0.0),
            RunCount(status='queued', ended='', interval=0, runs=1, cost=0.0, seconds=0.0),
        )
        assert [info.run for info in found.slowest] == ['2', '1']
        everyone = await store.figures(since=100.0, interval=100.0)
        assert sum(one.runs for one in everyone.counts) == 5
        assert sum(one.cost for one in everyone.counts) == pytest.approx(0.75 + 1e-7)
        assert (await store.figures(user='eve', since=0.0, interval=1.0)).counts == ()

    async def test_a_deleted_run_leaves_nothing_behind(self, store: Store, again: Connect) -> None:
        for run in ('run-1', 'run-2'):
            lease = await self.begin(store, run, user='ada', session='s')
            await store.append(run, records(3), epoch=lease.epoch, blobs={digest_of(b'x'): b'x'})
        await store.delete('run-1')
        for other in (store, await again()):
            with pytest.raises(RunNotFound):
                await other.load('run-1')
            assert [info.run for info in await other.runs(user='ada')] == ['run-2']
            assert await other.load('run-2') == records(3)
            assert await other.blob('run-2', digest_of(b'x')) == b'x'
        assert await store.create(RunInfo(run='run-1'))
        assert await store.load('run-1') == []
        assert await store.lease('run-1') == Lease(epoch=0)
        assert await store.runs(user='ada', session='s') == [await store.info('run-2')]
        with pytest.raises(CorruptRecord):
            await store.blob('run-1', digest_of(b'x'))

    async def test_who_writes_to_a_deleted_run_is_told(self, store: Store, again: Connect) -> None:
        lease = await self.begin(store)
        await store.append('run-1', records(1), epoch=lease.epoch)
        await (await again()).delete('run-1')
        with pytest.raises(RunNotFound):
            await store.append('run-1', records(1, first=2), epoch=lease.epoch)

    # Leases -----------------------------------------------------------------------------------------------------------

    async def test_a_claim_makes_an_owner_with_a_new_epoch(self, store: Store, again: Connect) -> None:
        lease = await self.begin(store)
        assert (lease.epoch, lease.owner) == (1, 'me')
        assert lease.until > 0
        assert await store.lease('run-1') == await (await again()).lease('run-1') == lease

    async def test_an_owner_who_claims_again_keeps_the_epoch_for_longer(self, store: Store) -> None:
        first = await self.begin(store)
        second = await store.claim('run-1', owner='me', seconds=600)
        assert second.epoch == first.epoch
        assert second.until > first.until
        assert await store.lease('run-1') == second

    async def test_somebody_elses_run_is_busy(self, store: Store, again: Connect) -> None:
        lease = await self.begin(store)
        for other in (store, await again()):
            for over in (None, 0, lease.epoch + 1):
                with pytest.raises(RunBusy):
                    await other.claim('run-1', owner='you', seconds=60, over=over)
        assert await store.lease('run-1') == lease

    async def test_the_lease_of_one_known_to_be_dead_may_be_taken(self, store: Store, again: Connect) -> None:
        first = await self.begin(store)
        second = await (await again()).claim('run-1', owner='you', seconds=60, over=first.epoch)
        assert (second.epoch, second.owner) == (first.epoch + 1, 'you')
        with pytest.raises(RunBusy):  # the second claim over the same epoch is too late
            await store.claim('run-1', owner='she', seconds=60, over=first.epoch)

    async def test_a_released_run_may_be_claimed_at_once(self, store: Store) -> None:
        first = await self.begin(store)
        await store.release('run-1', epoch=first.epoch)
        released = await store.lease('run-1')
        assert (released.epoch, released.until) == (first.epoch, 0)
        second = await store.claim('run-1', owner='you', seconds=60)
        assert second.epoch == first.epoch + 1
        await store.release('run-1', epoch=first.epoch)  # no longer the latest
        assert await store.lease('run-1') == second

    async def test_who_released_a_run_and_claims_it_again_gets_a_new_epoch(self, store: Store) -> None:
        first = await self.begin(store)
        await store.release('run-1', epoch=first.epoch)
        assert (await store.claim('run-1', owner='me', seconds=60)).epoch == first.epoch + 1

    async def test_a_lease_that_has_ended_lets_its_owner_write_until_somebody_comes(self, store: Store) -> None:
        await store.create(RunInfo(run='run-1'))
        first = await store.claim('run-1', owner='me', seconds=0.02)
        await asyncio.sleep(0.1)
        await store.append('run-1', records(1), epoch=first.epoch)
        second = await store.claim('run-1', owner='you', seconds=60)
        assert second.epoch == first.epoch + 1
        with pytest.raises(LeaseLost):
            await store.append('run-1', records(1, first=2), epoch=first.epoch)

    async def test_an_owner_who_comes_late_keeps_the_epoch_if_nobody_came(self, store: Store) -> None:
        """After a laptop has slept, or a clock was changed, a writer must be able to continue."""
        await store.create(RunInfo(run='run-1'))
        first = await store.claim('run-1', owner='me', seconds=0.02)
        await asyncio.sleep(0.1)
        assert (await store.claim('run-1', owner='me', seconds=60)).epoch == first.epoch
        with pytest.raises(RunBusy):
            await store.claim('run-1', owner='you', seconds=60)

    async def test_a_lease_that_was_seen_as_free_and_is_not_the_latest_gives_no_right(self, store: Store) -> None:
        """Somebody else has claimed the run meanwhile, though that lease has expired by the clock."""
        await store.create(RunInfo(run='run-1'))
        seen = await store.lease('run-1')
        first = await store.claim('run-1', owner='me', seconds=0.02, over=seen.epoch)
        await asyncio.sleep(0.1)
        with pytest.raises(RunBusy):
            await store.claim('run-1', owner='you', seconds=60, over=seen.epoch)
        assert (await store.claim('run-1', owner='you', seconds=60, over=first.epoch)).epoch == first.epoch + 1

    async def test_the_lease_of_a_journal_is_renewed_while_its_event_loop_is_blocked(self, store: Store) -> None:
        await store.create(RunInfo(run='run-1'))
        journal = await Journal.open(store, 'run-1', seconds=0.3)
        claimed = await store.lease('run-1')
        time.sleep(1.0)  # noqa: ASYNC251 - that is what it must survive
        assert (await store.lease('run-1')).until > claimed.until + 0.3
        await journal.close()
        released = await store.lease('run-1')
        assert (released.epoch, released.until) == (claimed.epoch, 0)

    async def test_of_many_who_claim_at_once_one_wins(self, store: Store, again: Connect) -> None:
        await store.create(RunInfo(run='run-1'))
        stores = [store, await again(), await again(), await again()] * 3
        claims = (each.claim('run-1', owner=f'owner {n}', seconds=60) for n, each in enumerate(stores))
        got = await asyncio.gather(*claims, return_exceptions=True)
        won = [one for one in got if isinstance(one, Lease)]
        assert won == [await store.lease('run-1')]
        assert [type(one) for one in got if one not in won] == [RunBusy] * 11

    # Writing ----------------------------------------------------------------------------------------------------------

    async def test_records_come_back_in_order_from_every_connection(self, store: Store, again: Connect) -> None:
        lease = await self.begin(store)
        other = await again()
        await store.append('run-1', records(2), epoch=lease.epoch)
        assert await other.load('run-1') == records(2)
        await store.append('run-1', [], epoch=lease.epoch)
        for seq in range(3, 15):
            await store.append('run-1', records(1, first=seq), epoch=lease.epoch)
        for each in (store, other):
            assert await each.load('run-1') == records(14)
            assert await each.load('run-1', after=11) == records(3, first=12)
            assert await each.load('run-1', after=-3) == records(14)
            assert await each.load('run-1', after=14) == await each.load('run-1', after=99) == []

    async def test_every_field_of_a_record_comes_back(self, store: Store) -> None:
        lease = await self.begin(store)
        kinds = ('opened', 'done', 'failed', 'started', 'asked', 'answered', 'voided', 'noted', 'ended')
        value: Json = {'a': [1, -2.5, None, True, '', {}, []], '': 2**70}
        written = [record(n, value, kind=kind, key='k', attached={'s': '0' * 64}) for n, kind in enumerate(kinds, 1)]
        written.append(record(10, blob='1' * 64, at=1234567890.123456))
        written.append(Record(seq=11, path='', kind='noted'))
        await store.append('run-1', written, epoch=lease.epoch)
        assert await store.load('run-1') == written

    async def test_what_was_written_does_not_change_with_the_objects_it_was_made_from(self, store: Store) -> None:
        lease = await self.begin(store)
        value: list[Json] = [1]
        await store.append('run-1', [record(1, value)], epoch=lease.epoch)
        value.append(2)
        loaded = (await store.load('run-1'))[0].value
        assert isinstance(loaded, list)
        loaded.append(3)
        assert (await store.load('run-1'))[0].value == [1]

    async def test_an_old_epoch_is_refused_on_every_connection(self, store: Store, again: Connect) -> None:
        first, other = await self.begin(store), await again()
        await store.append('run-1', records(1), epoch=first.epoch)
        second = await other.claim('run-1', owner='you', seconds=60, over=first.epoch)
        for each in (store, other):
            for epoch in (first.epoch, 0, -1, second.epoch + 1):
                await self.refused(each, records(1, first=2), epoch=epoch)
                await self.refused(each, records(1), epoch=epoch)
        await other.append('run-1', records(1, first=2), epoch=second.epoch)
        assert await store.load('run-1') == records(2)

    async def test_an_append_may_be_made_again(self, store: Store, again: Connect) -> None:
        lease, info = await self.begin(store), RunInfo(run='run-1', title='new')
        for each in (store, await again(), store):
            await each.append('run-1', records(2), epoch=lease.epoch, info=info, blobs={digest_of(b'x'): b'x'})
        await store.append('run-1', records(3), epoch=lease.epoch)
        await store.append('run-1', records(1, first=2), epoch=lease.epoch)
        assert await store.load('run-1') == records(3)
        assert await store.info('run-1') == info

    @pytest.mark.parametrize(
        'wrong',
        [
            [record(2, {'n': 'other'})],
            [record(1, {'n': 1}), record(2, {'n': 2}, at=7.0)],
            [*records(2), record(3, {'n': 3}, key='k')],
            records(1, first=5),
            [*records(1, first=4), *records(1, first=6)],
            [*records(1, first=5), *records(1, first=4)],
            records(1, first=0),
            records(1, first=-1),
        ],
        ids='another,another_time,another_key,gap,gap_inside,wrong_order,zero,negative'.split(','),
    )
    async def test_records_that_do_not_follow_are_refused_as_a_whole(self, store: Store, wrong: list[Record]) -> None:
        lease = await self.begin(store, title='old')
        await store.append('run-1', records(3), epoch=lease.epoch)
        await self.refused(store, wrong, epoch=lease.epoch)
        assert await store.load('run-1') == records(3)
        await store.append('run-1', records(1, first=4), epoch=lease.epoch)

    async def refused(self, store: Store, wrong: Sequence[Record], *, epoch: int) -> None:
        """The append raises `LeaseLost`, and changes nothing."""
        before = await store.info('run-1'), await store.load('run-1'), await store.lease('run-1')
        data = b'never written'
        info = replace(before[0], title='never written', user='eve')
        with pytest.raises(LeaseLost):
            await store.append('run-1', wrong, epoch=epoch, info=info, blobs={digest_of(data): data})
        assert before == (await store.info('run-1'), await store.load('run-1'), await store.lease('run-1'))
        assert await store.runs(user='eve') == []
        with pytest.raises(CorruptRecord):
            await store.blob('run-1', digest_of(data))

    async def test_the_info_of_a_run_is_replaced(self, store: Store, again: Connect) -> None:
        lease = await self.begin(store, user='ada', session='s', created=5.0)
        other = await again()
        info = replace(await store.info('run-1'), status='done', title='done!', updated=6.0)
        await store.append('run-1', records(1), epoch=lease.epoch, info=info)
        assert await other.info('run-1') == info
        assert await other.runs(status='done') == await store.runs(user='ada', session='s') == [info]
        assert await other.runs(status='queued') == []
        info = replace(info, user='bob', session='t', created=7.0)
        await store.append('run-1', [], epoch=lease.epoch, info=info)
        assert await other.runs(user='bob', session='t') == [info]
        assert await other.runs(user='ada') == await other.runs(session='s') == []

    async def test_fifty_runs_are_written_at_once(self, store: Store, again: Connect) -> None:
        stores = [store, await again()]

        async def work(n: int) -> None:
            each, run = stores[n % 2], f'run-{n}'
            lease = await self.begin(each, run)
            for seq in range(1, 6):
                await each.append(run, [record(seq, n)], epoch=lease.epoch, blobs={digest_of(b'%d' % n): b'%d' % n})

        await asyncio.gather(*(work(n) for n in range(50)))
        assert len(await store.runs()) == 50
        for n in range(50):
            assert [one.value for one in await store.load(f'run-{n}')] == [n] * 5
            assert await store.blob(f'run-{n}', digest_of(b'%d' % n)) == b'%d' % n
