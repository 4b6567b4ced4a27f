"""Code that no longer does what the record says: refused, or gone on with, here or in a fork."""

import asyncio

import pytest

from habilis.core.errors import RunChanged
from habilis.journal import MemoryStore, Scope
from habilis.journal.journal import Journal
from tests.journal.faults import RUN, Work, again, here, new

# Where the code has changed -------------------------------------------------------------------------------------------


async def _record(store: MemoryStore, names: str) -> None:
    async with new(store) as scope:
        for name in names:
            await scope.step(name, Work().gives(name), key=f'of {name}')


async def _play(scope: Scope, names: str, work: Work) -> None:
    for name in names:
        key = f'of {name.lower()}' if name.islower() else 'changed'
        await scope.step(name.lower(), work.gives(name), key=key)
    await scope.finish()


CHANGES = [
    ('abc', 'axc', 'xc', 'a step has another name'),
    ('abc', 'abxc', 'xc', 'a step was put in'),
    ('abc', 'ab', '', 'the last step was removed'),
    ('abc', 'acd', 'd', 'a step in the middle was removed'),
    ('abc', 'aBc', 'Bc', 'a step is given something else'),
    ('abc', 'xabc', 'xabc', 'a step was put in at the beginning'),
    ('aab', 'ab', '', 'a round of a loop is missing'),
]


@pytest.mark.parametrize(('before', 'now', 'redone', 'change'), CHANGES)
async def test_changed_code_is_refused_and_nothing_is_written(before: str, now: str, redone: str, change: str) -> None:
    store, work = MemoryStore(), Work()
    await _record(store, before)
    records = await store.load(RUN)
    async with again(store) as scope:
        with pytest.raises(RunChanged, match="on_change='continue'"):
            await _play(scope, now, work)
    assert (await store.load(RUN), work.done) == (records, []), change


@pytest.mark.parametrize(('before', 'now', 'redone', 'change'), CHANGES)
async def test_changed_code_continues_where_it_no_longer_fits(before: str, now: str, redone: str, change: str) -> None:
    store, work = MemoryStore(), Work()
    await _record(store, before)
    async with again(store, on_change='continue') as scope:
        await _play(scope, now, work)
    assert ''.join(work.done) == redone, change
    records = await store.load(RUN)
    async with again(store) as scope:
        await _play(scope, now, work)
    assert (await store.load(RUN), ''.join(work.done)) == (records, redone)


@pytest.mark.parametrize(('before', 'now', 'redone', 'change'), CHANGES)
async def test_changed_code_continues_in_a_fork(before: str, now: str, redone: str, change: str) -> None:
    store, work = MemoryStore(), Work()
    await _record(store, before)
    records, info = await store.load(RUN), await store.info(RUN)
    async with again(store, on_change='fork') as scope:
        await _play(scope, now, work)
        fork = scope.journal.run
        assert (await store.info(fork)).status == 'running'
        assert (await store.lease(RUN)).until == 0
        async with again(store):
            pass  # the old one is free
    assert ''.join(work.done) == redone, change
    assert (await store.load(RUN), await store.info(RUN)) == (records, info)
    assert fork != RUN
    assert (await store.info(fork)).parent == RUN
    async with again(store, fork) as scope:
        await _play(scope, now, work)
    assert ''.join(work.done) == redone


@pytest.mark.parametrize('status', ['waiting', 'stopped', 'failed', 'done'])
async def test_a_fork_leaves_a_run_as_it_was_in_whatever_state(status: str) -> None:
    store, work = MemoryStore(), Work()
    await _record(store, 'ab')
    journal = await Journal.open(store, RUN)
    await journal.end(status, failed=['b#1'], error='why')  # pyright: ignore[reportArgumentType]
    await journal.close()
    records, info = await store.load(RUN), await store.info(RUN)
    async with again(store, on_change='fork') as scope:
        await _play(scope, 'ax', work)
        fork = scope.journal.run
    assert (await store.load(RUN), await store.info(RUN)) == (records, info)
    assert (await store.info(fork)).status == 'running'
    assert work.done == ['x']


async def test_a_run_that_did_not_have_to_be_forked_continues_as_it_is() -> None:
    store = MemoryStore()
    await _record(store, 'a')
    async with again(store, on_change='fork') as scope:
        await _play(scope, 'ab', Work())
        assert scope.journal.run == RUN
    assert len(await store.runs()) == 1


async def test_branches_that_no_longer_fit_at_once_make_one_fork() -> None:
    store, work = MemoryStore(), Work()

    async def one(scope: Scope, name: str, second: str) -> None:
        await scope.step(name, work.gives(name))
        await scope.step(second, work.gives(second))

    async with new(store) as scope:
        await asyncio.gather(*(one(scope, name, 'then') for name in 'abc'))
    async with again(store, on_change='fork') as scope:
        await asyncio.gather(*(one(scope, name, 'else') for name in 'abc'))
        fork = scope.journal.run
    assert {info.run for info in await store.runs()} == {RUN, fork}
    assert sorted(work.done) == ['a', 'b', 'c', 'else', 'else', 'else', 'then', 'then', 'then']
    async with again(store, fork) as scope:
        await asyncio.gather(*(one(scope, name, 'else') for name in 'abc'))
        await scope.finish()
    assert len(work.done) == 9


async def test_a_changed_branch_leaves_the_others_their_records() -> None:
    store, work = MemoryStore(), Work()

    async def one(scope: Scope, names: str) -> None:
        for name in names:
            await scope.step(name, work.gives(name))

    async with new(store) as scope:
        await asyncio.gather(one(scope, 'abc'), one(scope, 'def'))
    del work.done[:]
    async with again(store, on_change='continue') as scope:
        await asyncio.gather(one(scope, 'axc'), one(scope, 'def'))
        await scope.finish()
    assert work.done == ['x', 'c']


async def test_a_branch_that_is_gone_is_noticed_at_the_end_of_its_scope() -> None:
    store, work = MemoryStore(), Work()

    async def outer(names: str) -> None:
        await asyncio.gather(*(here().step(name, work.gives(name)) for name in names))
        raise_here()

    def raise_here() -> None:
        if not finish:
            raise asyncio.CancelledError

    finish: list[bool] = []
    async with new(store) as scope:
        with pytest.raises(asyncio.CancelledError):
            await scope.step('outer', lambda: outer('ab'))
    finish.append(True)
    async with again(store) as scope:
        with pytest.raises(RunChanged, match=r'outer#1 ends without the recorded outer#1/~2'):
            await scope.step('outer', lambda: outer('a'))
    for _ in range(2):
        async with again(store, on_change='continue') as scope:
            await scope.step('outer', lambda: outer('a'))
            await scope.finish()
    assert work.done == ['a', 'b']


async def test_no_new_step_starts_where_a_recorded_branch_has_no_task() -> None:
    store, work = MemoryStore(), Work()

    async def together(scope: Scope, names: str) -> None:
        await asyncio.gather(*(scope.step(name, work.gives(name)) for name in names))

    async with new(store) as scope:
        await together(scope, 'ab')
    async with again(store) as scope:
        await together(scope, 'a')
        with pytest.raises(RunChanged, match=r'c#1 starts where ~2 was recorded'):
            await scope.step('c', work.gives('c'))
    assert work.done == ['a', 'b']
    async with again(store, on_change='continue') as scope:
        await together(scope, 'a')
        await scope.step('c', work.gives('c'))
        await scope.finish()
    assert work.done == ['a', 'b', 'c']


async def test_a_new_step_may_start_while_a_late_task_has_not_replayed_its_branch() -> None:
    store, work = MemoryStore(), Work()

    async def late(scope: Scope, may_start: asyncio.Event) -> None:
        await may_start.wait()
        await scope.step('late', work.gives('late'))

    async with new(store) as scope:
        may_start = asyncio.Event()
        may_start.set()
        await asyncio.create_task(late(scope, may_start))
    async with again(store) as scope:
        may_start = asyncio.Event()
        task = asyncio.create_task(late(scope, may_start))
        await scope.step('new', work.gives('new'))
        may_start.set()
        await task
        await scope.finish()
    assert work.done == ['late', 'new']


async def test_a_step_that_is_put_in_inside_a_scope_without_a_record_is_noticed() -> None:
    store, work = MemoryStore(), Work()
    await _record(store, 'ab')
    async with again(store) as scope:
        await scope.step('a', work.gives('a'), key='of a')
        with scope.below('new').entered() as inside, pytest.raises(RunChanged, match='where b#1 was recorded'):
            await inside.step('x', work.gives('x'))
    assert work.done == []


async def test_a_parallel_task_may_begin_something_new_while_the_first_one_still_replays() -> None:
    store, work = MemoryStore(), Work()

    async def beside(scope: Scope, names: str) -> None:
        with scope.below('beside').entered() as inside:
            for name in names:
                await inside.step(name, work.gives(name))

    async with new(store) as scope:
        task = asyncio.create_task(beside(scope, 'x'))
        await scope.step('a', work.gives('a'))
        await task
    async with again(store) as scope:
        await asyncio.create_task(beside(scope, 'xy'))
        await scope.step('a', work.gives('a'))
        await scope.finish()
    assert sorted(work.done) == ['a', 'x', 'y']


async def test_code_that_catches_everything_cannot_write_after_it_was_refused() -> None:
    store, work = MemoryStore(), Work()
    await _record(store, 'ab')
    records = await store.load(RUN)
    async with again(store) as scope:
        await scope.step('a', work.gives('a'), key='of a')
        with pytest.raises(RunChanged):
            await scope.step('x', work.gives('x'))
        await scope.step('b', work.gives('b'), key='of b')
        with pytest.raises(RunChanged):
            await scope.step('c', work.gives('c'))
        with pytest.raises(RunChanged):
            await scope.journal.end('done')
    assert await store.load(RUN) == records
    assert (await store.lease(RUN)).until == 0


async def test_a_step_under_way_that_is_given_something_else_does_not_take_what_was_done_inside() -> None:
    store, work = MemoryStore(), Work()

    async def outer(scope: Scope, given: str, *, dies: bool) -> object:
        async def inside() -> object:
            got = await here().step('fetch', work.gives(given))
            if dies:
                raise asyncio.CancelledError
            return got

        return await scope.step('outer', inside, key=given)

    async with new(store) as scope:
        with pytest.raises(asyncio.CancelledError):
            await outer(scope, 'x', dies=True)
    async with again(store) as scope:
        with pytest.raises(RunChanged, match='outer#1 was recorded with different arguments'):
            await outer(scope, 'y', dies=False)
    async with again(store, on_change='continue') as scope:
        assert await outer(scope, 'y', dies=False) == 'y'


async def test_very_many_steps_that_no_longer_fit_can_be_dropped() -> None:
    store, work = MemoryStore(), Work()
    name = 'a step with a rather long name ' * 4
    async with new(store) as scope:
        for _ in range(1000):
            await scope.step(name, work.gives(1))
    for mode in ('continue', 'fail'):
        async with again(store, on_change=mode) as scope:
            assert await scope.step('other', work.gives('other')) == 'other'
            await scope.finish()
    assert work.done.count('other') == 1
