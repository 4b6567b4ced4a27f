"""Steps: answered from the record where there is one, done and recorded where there is none."""

import asyncio
import enum
from dataclasses import dataclass
from typing import cast

import pytest
from pydantic import BaseModel

from habilis.core.errors import NotDurable
from habilis.journal import Codec, MemoryStore, current_scope
from tests.journal.faults import RUN, Work, again, here, lines_of, new, stopped_after


@dataclass(frozen=True)
class Point:
    """A value with a type."""

    x: int
    tags: tuple[str, ...] = ()


class Page(BaseModel):
    """Another."""

    title: str
    points: list[Point] = []


class Colour(enum.Enum):
    """And one more."""

    RED = 'r'


# Replay ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'value', [None, True, 0, 1.5, '', 'ä', [], {}, (1, [2]), {1: {'$': 'x'}}, {1, 2}, b'\0', 10**400, float('inf')]
)
async def test_a_recorded_value_comes_back_exactly_and_its_work_is_not_done_again(value: object) -> None:
    store, work = MemoryStore(), Work()
    async with new(store) as scope:
        first = await scope.step('a', work.gives(value, 'a'))
    async with again(store) as scope:
        second = await scope.step('a', work.gives('something else', 'a'))
    assert first == second == value
    assert type(first) is type(second) is type(value)
    assert work.done == ['a']


@pytest.mark.parametrize(
    ('kind', 'value'),
    [
        (Point, Point(1, ('a',))),
        (Page, Page(title='x', points=[Point(2)])),
        (Colour, Colour.RED),
        (list[Point], [Point(3)]),
        (Point | None, None),
        (dict[str, Page], {'x': Page(title='y')}),
    ],
)
async def test_a_value_with_a_type_comes_back_as_that_type(kind: object, value: object) -> None:
    store, work, codec = MemoryStore(), Work(), Codec[object](kind)
    for opened in (new, again):
        async with opened(store) as scope:
            got = await scope.step('a', work.gives(value, 'a'), codec=codec)
            assert got == value
            assert type(got) is type(value)
    assert work.done == ['a']


async def test_code_sees_the_same_type_the_first_time_as_on_replay() -> None:
    class Name(str):
        __slots__ = ()

    store, work = MemoryStore(), Work()
    for opened in (new, again):
        async with opened(store) as scope:
            assert type(await scope.step('a', work.gives([Name('x')]))) is list
            got = cast('list[str]', await scope.step('b', work.gives([Name('x')])))
            assert type(got[0]) is str


async def test_steps_inside_steps_are_not_done_again_at_any_depth() -> None:
    store, work = MemoryStore(), Work()

    async def nested(depth: int) -> object:
        await here().step('before', work.gives(f'before {depth}'))
        if depth < 4:
            await here().step('deeper', lambda: nested(depth + 1))
        return await here().step('after', work.gives(f'after {depth}'))

    async with new(store) as scope:
        await scope.step('deeper', lambda: nested(0))
    total = len(await store.load(RUN))
    for count in range(total + 1):
        rest, rerun = await stopped_after(store, count), len(work.done)
        async with again(rest) as scope:
            assert await scope.step('deeper', lambda: nested(0)) == 'after 0'
        kept = sum(path.endswith(('before#1', 'after#1')) for _, path in (await lines_of(store))[:count])
        assert len(work.done) - rerun in {10 - kept, 0 if count == total else 10 - kept}


async def test_a_step_that_failed_fails_again_without_its_work() -> None:
    store, work = MemoryStore(), Work()
    for opened in (new, again):
        async with opened(store) as scope:
            with pytest.raises(ZeroDivisionError, match='by zero'):
                await scope.step('a', work.gives(ZeroDivisionError('by zero'), 'a'))
            assert await scope.step('b', work.gives('b')) == 'b'
    assert work.done == ['a', 'b']


async def test_cancelled_work_is_not_recorded() -> None:
    store, work = MemoryStore(), Work()
    async with new(store) as scope:
        with pytest.raises(asyncio.CancelledError):
            await scope.step('a', work.gives(asyncio.CancelledError(), 'a'))
        assert scope.journal.running_steps == 0
    assert await lines_of(store) == []


async def test_a_value_that_cannot_be_saved_says_so_the_first_time() -> None:
    store = MemoryStore()
    async with new(store) as scope:
        with pytest.raises(NotDurable, match='return plain data'):
            await scope.step('a', Work().gives(object()))
        with pytest.raises(NotDurable, match='valid integer'):
            await scope.step('b', Work().gives('many'), codec=Codec[object](int))
    assert await lines_of(store) == []


async def test_code_outside_a_journal_is_in_no_scope() -> None:
    async with new(MemoryStore()) as scope:
        assert current_scope() is scope
        with scope.outside():
            assert current_scope() is None
        assert current_scope() is scope
    assert current_scope() is None


@pytest.mark.parametrize('name', ['', 'a/b', '~1', 'f(x)', 'a#1', 'a\nb', '\ud800', 'käse', '/' * 100])
async def test_any_name_makes_a_path_that_is_found_again(name: str) -> None:
    store, work = MemoryStore(), Work()
    for opened in (new, again):
        async with opened(store) as scope:
            assert await scope.step(name, work.gives(1)) == 1
            assert await scope.step('other', work.gives(2)) == 2
            assert await scope.call(name, work.gives(3), key=name) == 3
            with scope.below(name).entered() as inside:
                assert await inside.step(name, work.gives(4)) == 4
            await scope.finish()
    assert work.done == ['1', '2', '3', '4']


async def test_calls_are_found_by_what_they_were_given_in_any_order() -> None:
    store, work = MemoryStore(), Work()
    async with new(store) as scope:
        for key in ('1', '2', '1'):
            await scope.call('get', work.gives(f'{key} {len(work.done)}'), key=key)
    async with again(store) as scope:
        keys = ('2', '1', '1', '3')
        got = await asyncio.gather(*(scope.call('get', work.gives('new'), key=key) for key in keys))
        await scope.finish()
    assert got == ['2 1', '1 0', '1 2', 'new']


async def test_what_went_in_is_kept_for_readers_once() -> None:
    store, work = MemoryStore(), Work()

    async def fails() -> object:
        await here().step('inner', work.gives('inner'))
        raise asyncio.CancelledError

    for opened in (new, again):
        async with opened(store) as scope:
            with pytest.raises(asyncio.CancelledError):
                await scope.step('a', fails, key='k', opening={'in': 1})
    assert await lines_of(store) == [('opened', 'a#1'), ('done', 'a#1/inner#1')]
    assert (await store.load(RUN))[0].value == {'in': 1}


# Groups ---------------------------------------------------------------------------------------------------------------


async def test_the_steps_of_a_group_are_asked_for_again_on_replay() -> None:
    store, work = MemoryStore(), Work()
    for opened in (new, again):
        async with opened(store) as scope:
            async with scope.group('g', key='k') as inside:
                assert await inside.step('a', work.gives('a')) == 'a'
            assert await scope.step('b', work.gives('b')) == 'b'
            await scope.finish()
    assert work.done == ['a', 'b']
    assert await lines_of(store) == [('opened', 'g#1'), ('done', 'g#1/a#1'), ('done', 'g#1'), ('done', 'b#1')]


async def test_a_group_that_failed_fails_again() -> None:
    store, work = MemoryStore(), Work()
    for opened in (new, again):
        async with opened(store) as scope:
            with pytest.raises(KeyError):
                async with scope.group('g'):
                    await here().step('a', work.gives(KeyError('x'), 'a'))
    assert work.done == ['a']
