"""Failures: which steps an error went through, and what is tried again."""

import asyncio

import pytest

from habilis.core.errors import JournalError
from habilis.journal import MemoryStore, RunInfo, Scope
from habilis.journal.failures import add_path, failed_paths
from habilis.journal.journal import Journal
from tests.journal.faults import RUN, Work, again, here, lines_of, new

# Failures -------------------------------------------------------------------------------------------------------------


async def _failing(names: str, work: Work, failing: str = '') -> object:
    """Steps in a row of which some fail, inside a step."""

    async def inside() -> object:
        for name in names:
            value = ValueError(name) if name in failing else name
            await here().step(name, work.gives(value, name))
        return names

    return await here().step('outer', inside)


async def test_an_error_carries_the_steps_that_it_went_through() -> None:
    async with new(MemoryStore()):
        with pytest.raises(ValueError, match='b') as failed:
            await _failing('abc', Work(), 'b')
    assert failed_paths(failed.value) == ['outer#1/b#1', 'outer#1']


async def test_errors_of_parallel_steps_carry_all_their_steps() -> None:
    work = Work()

    async def inside() -> None:
        async with asyncio.TaskGroup() as group:
            for name in 'ab':
                group.create_task(here().step(name, work.gives(ValueError(name), name)))

    async with new(MemoryStore()) as scope:
        with pytest.raises(ExceptionGroup) as failed:
            await scope.step('outer', inside)
    assert failed_paths(failed.value) == ['outer#1/~1/a#1', 'outer#1/~2/b#1', 'outer#1']


@pytest.mark.parametrize('how', ['from', 'from none', 'inside'])
async def test_an_error_that_was_made_of_another_carries_its_steps_too(how: str) -> None:
    async def inside() -> object:
        try:
            return await here().step('a', Work().gives(ValueError('a')))
        except ValueError as error:
            if how == 'inside':
                raise KeyError('b')  # noqa: B904
            raise KeyError('b') from (error if how == 'from' else None)

    async with new(MemoryStore()) as scope:
        with pytest.raises(KeyError) as failed:
            await scope.step('outer', inside)
    assert failed_paths(failed.value) == ['outer#1/a#1', 'outer#1']


async def test_a_failure_that_was_caught_is_not_part_of_the_next_one() -> None:
    async def inside() -> object:
        try:
            return await here().step('a', Work().gives(ValueError('a')))
        except ValueError:
            return await here().step('instead', Work().gives(KeyError('b')))

    async with new(MemoryStore()) as scope:
        with pytest.raises(KeyError) as failed:
            await scope.step('outer', inside)
    assert failed_paths(failed.value) == ['outer#1/instead#1', 'outer#1']


def test_errors_that_cannot_be_marked_are_left_as_they_are() -> None:
    class Closed(Exception):
        def __setattr__(self, name: str, value: object) -> None:
            raise AttributeError(name)

    error = Closed()
    assert add_path(error, 'a#1') is error
    assert failed_paths(error) == []


def test_errors_that_go_round_in_circles_have_an_end() -> None:
    first, second = add_path(ValueError(), 'a#1'), add_path(ValueError(), 'b#1')
    first.__cause__, second.__cause__ = second, first
    assert failed_paths(first) == ['b#1', 'a#1']


async def test_the_steps_that_failed_are_tried_again_and_those_inside_that_were_done_are_not() -> None:
    store, work = MemoryStore(), Work()
    async with new(store) as scope:
        with pytest.raises(ValueError, match='b') as failed:
            await _failing('abc', work, 'b')
        await scope.journal.end('failed', failed=failed_paths(failed.value), error='b')
    async with again(store) as scope:
        assert await _failing('abc', work) == 'abc'
        await scope.finish()
    assert work.done == ['a', 'b', 'b', 'c']
    async with again(store) as scope:
        assert await _failing('abc', work) == 'abc'
    assert work.done == ['a', 'b', 'b', 'c']


async def test_a_failure_that_was_caught_before_is_not_tried_again() -> None:
    store, work = MemoryStore(), Work()

    async def play(scope: Scope, last: object) -> None:
        async def inside() -> None:
            with pytest.raises(ValueError, match='caught'):
                await here().step('caught', work.gives(ValueError('caught'), 'caught'))
            await here().step('last', work.gives(last, 'last'))

        await scope.step('outer', inside, opening='x')

    async with new(store) as scope:
        with pytest.raises(KeyError) as failed:
            await play(scope, KeyError('last'))
        await scope.journal.end('failed', failed=failed_paths(failed.value))
    async with again(store) as scope:
        await play(scope, 'fine')
    assert work.done == ['caught', 'last', 'last']


async def test_what_failed_beside_is_tried_again_too() -> None:
    store, work = MemoryStore(), Work()

    async def play(scope: Scope, *values: object) -> list[object]:
        steps = (scope.step(f'{number}', work.gives(value, f'{number}')) for number, value in enumerate(values))
        tasks = [asyncio.create_task(step) for step in steps]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            await asyncio.gather(*tasks, return_exceptions=True)

    async with new(store) as scope:
        with pytest.raises(ValueError, match='x') as failed:
            await play(scope, ValueError('x'), ValueError('y'), 2)
        await scope.journal.end('failed', failed=failed_paths(failed.value))
    async with again(store) as scope:
        assert await play(scope, 0, 1, 2) == [0, 1, 2]
    assert sorted(work.done) == ['0', '0', '1', '1', '2']


async def test_what_handled_a_failure_does_not_stand_in_the_way_of_trying_again() -> None:
    store, work = MemoryStore(), Work()

    async def play(scope: Scope, value: object) -> object:
        async def inside() -> object:
            try:
                got = await here().step('a', work.gives(value, 'a'))
            except ValueError:
                await here().step('tidy up', work.gives('tidy'))
                await asyncio.gather(here().step('tell', work.gives('tell')))
                raise
            return got, await here().step('b', work.gives('b'))

        return await scope.step('outer', inside)

    async with new(store) as scope:
        with pytest.raises(ValueError, match='x') as failed:
            await play(scope, ValueError('x'))
        await scope.journal.end('failed', failed=failed_paths(failed.value))
    for _ in range(2):
        async with again(store) as scope:
            assert await play(scope, 'fine') == ('fine', 'b')
            await scope.finish()
    assert work.done == ['a', 'tidy', 'tell', 'a', 'b']


async def test_a_run_that_fails_and_is_tried_again_and_again_continues_each_time() -> None:
    store, work = MemoryStore(), Work()
    async with new(store):
        pass
    for failing in ('a', 'b', 'b', 'c', ''):
        async with again(store) as scope:
            try:
                await _failing('abc', work, failing)
            except ValueError as error:
                await scope.journal.end('failed', failed=failed_paths(error))
            else:
                await scope.journal.end('done')
    assert ''.join(work.done) == 'aabbbcc'
    assert (await store.info(RUN)).status == 'done'


async def test_a_failure_with_a_very_long_list_of_steps_is_tried_again() -> None:
    store = MemoryStore()
    async with new(store) as scope:
        with pytest.raises(ValueError, match='a'):
            await scope.step('a', Work().gives(ValueError('a')))
        await scope.journal.end('failed', failed=['a#1', *(f'x{number:0100}#1' for number in range(2000))])
    async with again(store) as scope:
        assert await scope.step('a', Work().gives('a')) == 'a'
    async with again(store) as scope:
        assert await scope.step('a', Work().gives('again?')) == 'a'


async def test_errors_of_the_journal_are_no_failures_of_steps() -> None:
    store = MemoryStore()
    async with new(store) as scope:
        with pytest.raises(JournalError, match='other'):
            await scope.step('a', Work().gives(JournalError('other')))
    assert await lines_of(store) == []


async def test_the_repr_of_a_scope_has_its_path() -> None:
    store = MemoryStore()
    journal = await Journal.create(store, RunInfo(run='r'))
    assert repr(Scope(journal, '').below('x')) == '<scope x#1 of r>'
    assert repr(Scope(journal, '')) == '<scope / of r>'
    await journal.close()
