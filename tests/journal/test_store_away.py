"""A store that is away in the middle of an append: nothing is lost, and nothing is written twice."""

import asyncio

import pytest

from habilis.core.errors import (
    StoreUnavailable,
)
from habilis.journal import MemoryStore
from habilis.journal import journal as journal_module
from tests.journal.faults import RUN, Faulty, Work, again, away, lines_of, new
from tests.waiting import until


@pytest.fixture
async def faulty() -> Faulty:
    """A store that fails as it is told."""
    return Faulty(MemoryStore())


@pytest.fixture
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, 'RETRY_SECONDS', 0.2)


async def test_an_append_is_tried_again_while_the_store_is_away(faulty: Faulty) -> None:
    async with new(faulty) as scope:
        faulty.before = [away(), away()]
        assert await scope.step('a', Work().gives('a')) == 'a'
        assert faulty.appends == 3
    assert await lines_of(faulty) == [('done', 'a#1')]


async def test_an_append_whose_answer_got_lost_is_not_made_twice(faulty: Faulty) -> None:
    async with new(faulty) as scope:
        faulty.after = [away(), away()]
        await scope.step('a', Work().gives('a'))
        await scope.step('b', Work().gives('b'))
    assert await lines_of(faulty) == [('done', 'a#1'), ('done', 'b#1')]


@pytest.mark.parametrize('made', [False, True])
async def test_a_store_that_is_full_is_reported_and_the_journal_continues_when_it_is_not(
    faulty: Faulty, made: bool
) -> None:
    async with new(faulty) as scope:
        await scope.step('a', Work().gives('a'))
        (faulty.after if made else faulty.before).append(away(passing=False))
        faulty.loads = [away()]
        with pytest.raises(StoreUnavailable):
            await scope.journal.set_status('waiting')
        await scope.step('b', Work().gives('b'))
        assert scope.journal.info == await faulty.info(RUN)
    noted = [('noted', '')] if made else []
    assert await lines_of(faulty) == [('done', 'a#1'), *noted, ('done', 'b#1')]


@pytest.mark.usefixtures('_hasty')
async def test_patience_has_an_end(faulty: Faulty) -> None:
    async with new(faulty) as scope:
        faulty.before = [away() for _ in range(1000)]
        with pytest.raises(StoreUnavailable):
            await scope.step('a', Work().gives('a'))
        faulty.before = []
        await scope.step('b', Work().gives('b'))
    assert await lines_of(faulty) == [('done', 'b#1')]


@pytest.mark.parametrize('made', [False, True])
async def test_after_a_cancelled_append_nothing_is_lost_or_written_twice(faulty: Faulty, made: bool) -> None:
    async with new(faulty) as scope:
        await scope.step('a', Work().gives('a'))
        held = asyncio.Event()
        if made:
            faulty.hold_answer = held
        else:
            faulty.hold = held
        task = asyncio.create_task(scope.step('cut', Work().gives('x')))
        await until(lambda: faulty.appends == 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        faulty.hold = faulty.hold_answer = None
        await scope.step('b', Work().gives('b'))
    cut = [('done', '~1/cut#1')] if made else []
    assert await lines_of(faulty) == [('done', 'a#1'), *cut, ('done', 'b#1')]


@pytest.mark.parametrize('made', [False, True])
async def test_what_opening_a_failed_run_writes_is_written_once(faulty: Faulty, made: bool) -> None:
    async with new(faulty) as scope:
        with pytest.raises(ValueError, match='a'):
            await scope.step('a', Work().gives(ValueError('a')))
        await scope.journal.end('failed', failed=['a#1'])
    async with again(faulty) as scope:
        (faulty.after if made else faulty.before).append(away(passing=False))
        with pytest.raises(StoreUnavailable):
            await scope.step('a', Work().gives('a'))
        scope.journal.reset_scope('')
        assert await scope.step('a', Work().gives('a')) == 'a'
    kinds = [kind for kind, _ in await lines_of(faulty)]
    assert kinds == ['failed', 'ended', 'voided', 'noted', 'done']


async def test_many_tasks_write_at_once_in_one_order() -> None:
    store = MemoryStore()
    async with new(store) as scope:
        await asyncio.gather(*(scope.journal.write('noted', '', value=number) for number in range(50)))
    records = await store.load(RUN)
    assert sorted(record.value for record in records if isinstance(record.value, int)) == list(range(50))
    assert [record.seq for record in records] == list(range(1, 51))
