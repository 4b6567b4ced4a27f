"""What a person must decide, and what must not be done twice."""

import asyncio
from dataclasses import dataclass
from typing import cast

import pytest

from habilis.core.codec import Json
from habilis.journal import Codec, MemoryStore, Paused, Scope
from habilis.journal.journal import Journal
from tests.journal.faults import RUN, Work, again, here, lines_of, new

# People ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    """A value with a type."""

    x: int


async def _answer(store: MemoryStore, path: str, answer: Json) -> None:
    journal = await Journal.open(store, RUN)
    await journal.write('answered', path, value=answer)
    await journal.close()


async def test_a_question_pauses_the_run_until_there_is_an_answer() -> None:
    store, work = MemoryStore(), Work()

    async def play(scope: Scope) -> object:
        await scope.step('a', work.gives('a'))
        got = await scope.ask('may I', {'what': 'this'}, question='May I?', key='k')
        return got, await scope.step('b', work.gives('b'))

    async with new(store) as scope:
        with pytest.raises(Paused, match=r'May I\?') as paused:
            await play(scope)
        assert scope.journal.waiting == {'may I#1': {'what': 'this'}}
    assert paused.value.path == 'may I#1'
    for _ in range(3):
        async with again(store) as scope:
            with pytest.raises(Paused):
                await play(scope)
    assert await lines_of(store) == [('done', 'a#1'), ('asked', 'may I#1')]
    await _answer(store, 'may I#1', {'ok': True})
    for _ in range(3):
        async with again(store) as scope:
            assert await play(scope) == ({'ok': True}, 'b')
            await scope.finish()
    assert work.done == ['a', 'b']


async def test_an_answer_that_is_changed_by_who_got_it_stays_as_it_was() -> None:
    store = MemoryStore()
    async with new(store) as scope:
        with pytest.raises(Paused):
            await scope.ask('q', None, question='?')
    await _answer(store, 'q#1', {'list': [1]})
    async with again(store) as scope:
        for path in ('q#1', 'q#1'):
            scope.journal.reset_scope('')
            answer = cast('dict[str, list[int]]', await scope.ask('q', None, question=path))
            assert answer == {'list': [1]}
            answer['list'].append(2)


def test_a_pause_is_no_exception_that_a_flow_could_catch() -> None:
    assert not issubclass(Paused, Exception)


async def test_a_pause_inside_steps_and_groups_of_tasks_is_no_failure() -> None:
    store, work = MemoryStore(), Work()

    async def inside() -> object:
        async with asyncio.TaskGroup() as group:
            group.create_task(here().step('a', work.gives('a')))
            group.create_task(here().step('q', lambda: here().ask('q', None, question='?')))
        return None

    async with new(store) as scope:
        with pytest.raises(BaseExceptionGroup) as raised:
            await scope.step('outer', inside)
        assert raised.group_contains(Paused)
    assert [kind for kind, _ in await lines_of(store) if kind == 'failed'] == []


async def agrees() -> Json:
    return {'ok': True}


async def disagrees() -> Json:
    return {'ok': False}


async def test_an_answer_at_once_is_recorded_like_one_that_came_later() -> None:
    store = MemoryStore()
    async with new(store) as scope:
        assert await scope.decide('q', {'what': 1}, question='?', key='1', person=agrees) == {'ok': True}
        await scope.step('b', Work().gives('b'))
    for person in (None, disagrees):  # nobody is there now, or somebody who thinks otherwise
        async with again(store) as scope:
            assert await scope.decide('q', {'what': 1}, question='?', key='1', person=person) == {'ok': True}
            await scope.step('b', Work().gives('b'))
            await scope.finish()
    assert await lines_of(store) == [('asked', 'q(1)#1'), ('answered', 'q(1)#1'), ('done', 'b#1')]


# What must not be done twice ------------------------------------------------------------------------------------------


async def _dies(store: MemoryStore, work: Work) -> None:
    """The process dies while a payment is under way."""
    async with new(store) as scope:
        with pytest.raises(asyncio.CancelledError):
            await scope.step('pay', work.gives(asyncio.CancelledError(), 'pay'), key='5', once=True, opening={'eur': 5})


async def test_what_must_not_be_done_twice_is_marked_before_it_begins() -> None:
    store, work = MemoryStore(), Work()
    async with new(store) as scope:
        assert await scope.step('pay', work.gives('paid', 'pay'), key='5', once=True, opening={'eur': 5}) == 'paid'
    assert await lines_of(store) == [('started', 'pay#1'), ('done', 'pay#1')]
    assert (await store.load(RUN))[0].value == {'eur': 5}
    async with again(store) as scope:
        assert await scope.step('pay', work.gives('paid', 'pay'), key='5', once=True) == 'paid'
    assert work.done == ['pay']


async def test_what_was_under_way_when_the_process_died_is_asked_about_once_and_not_repeated() -> None:
    store, work = MemoryStore(), Work()
    await _dies(store, work)
    for _ in range(3):
        async with again(store) as scope:
            with pytest.raises(Paused, match=r'pay was running .* Did it take effect\?'):
                await scope.step('pay', work.gives('paid', 'pay'), key='5', once=True)
            (request,) = scope.journal.waiting.values()
            assert cast('dict[str, Json]', request)['kind'] == 'uncertain'
    assert work.done == ['pay']
    assert await lines_of(store) == [('started', 'pay#1'), ('asked', 'pay#1')]


async def test_a_person_can_have_it_done_again_and_is_asked_anew_if_that_dies_too() -> None:
    store, work = MemoryStore(), Work()
    await _dies(store, work)
    for tries in (1, 2):
        async with again(store) as scope:
            with pytest.raises(Paused):
                await scope.step('pay', work.gives('paid', 'pay'), key='5', once=True)
        assert len(work.done) == tries
        await _answer(store, 'pay#1', {'again': True})
        async with again(store) as scope:
            with pytest.raises(asyncio.CancelledError):
                await scope.step('pay', work.gives(asyncio.CancelledError(), 'pay'), key='5', once=True)
    async with again(store) as scope:
        with pytest.raises(Paused):
            await scope.step('pay', work.gives('paid', 'pay'), key='5', once=True)
    await _answer(store, 'pay#1', {'again': True})
    for _ in range(2):
        async with again(store) as scope:
            assert await scope.step('pay', work.gives('paid', 'pay'), key='5', once=True) == 'paid'
    assert work.done == ['pay'] * 4


async def test_a_person_can_supply_the_result_of_an_interrupted_step() -> None:
    store, work = MemoryStore(), Work()
    await _dies(store, work)
    async with again(store) as scope:
        with pytest.raises(Paused):
            await scope.step('pay', work.gives('paid', 'pay'), key='5', once=True)
    await _answer(store, 'pay#1', {'value': {'x': 7}})
    for _ in range(2):
        async with again(store) as scope:
            got = await scope.step('pay', work.gives('paid', 'pay'), key='5', once=True, codec=Codec[object](Point))
            assert got == Point(7)
    assert work.done == ['pay']


@pytest.mark.parametrize(
    'answer', [None, True, 'yes', [], {}, {'again': 'no'}, {'again': False}, {'value': 'no point'}]
)
async def test_an_answer_that_says_nothing_is_asked_again(answer: Json) -> None:
    store, work, codec = MemoryStore(), Work(), Codec[object](Point)
    await _dies(store, work)
    async with again(store) as scope:
        with pytest.raises(Paused):
            await scope.step('pay', work.gives('paid'), key='5', once=True, codec=codec)
    await _answer(store, 'pay#1', answer)
    for _ in range(2):
        async with again(store) as scope:
            with pytest.raises(Paused):
                await scope.step('pay', work.gives('paid'), key='5', once=True, codec=codec)
    assert [kind for kind, _ in await lines_of(store)] == ['started', 'asked', 'answered', 'asked']
    await _answer(store, 'pay#1', {'value': {'x': 1}})
    async with again(store) as scope:
        assert await scope.step('pay', work.gives('paid'), key='5', once=True, codec=codec) == Point(1)
    assert work.done == ['pay']


async def test_a_call_that_is_made_with_other_arguments_after_the_crash_is_asked_about() -> None:
    store, work = MemoryStore(), Work()
    async with new(store) as scope:
        await scope.call('pay', work.gives('paid 1'), key='1', once=True)
        await scope.call('look', work.gives('seen 1'), key='1')
    for _ in range(2):
        async with again(store) as scope:
            assert await scope.call('look', work.gives('seen 2'), key='2') == 'seen 2'
            with pytest.raises(Paused, match='with different arguments'):
                await scope.call('pay', work.gives('paid 2'), key='2', once=True)
    assert work.done == ['paid 1', 'seen 1', 'seen 2']
    await _answer(store, 'pay(2)#1', {'again': True})
    async with again(store) as scope:
        assert await scope.call('pay', work.gives('paid 2'), key='2', once=True) == 'paid 2'
    assert work.done == ['paid 1', 'seen 1', 'seen 2', 'paid 2']


async def test_calls_that_are_all_made_again_are_not_asked_about() -> None:
    store, work = MemoryStore(), Work()
    async with new(store) as scope:
        await scope.call('pay', work.gives('paid 1'), key='1', once=True)
    async with again(store) as scope:
        assert await scope.call('pay', work.gives('?'), key='1', once=True) == 'paid 1'
        assert await scope.call('pay', work.gives('paid 2'), key='2', once=True) == 'paid 2'


async def test_a_failure_that_is_tried_again_is_asked_about_too() -> None:
    store, work = MemoryStore(), Work()
    async with new(store) as scope:
        with pytest.raises(OSError, match='lost'):
            await scope.step('pay', work.gives(OSError('connection lost'), 'pay'), once=True)
        await scope.journal.end('failed', failed=['pay#1'])
    async with again(store) as scope:
        with pytest.raises(Paused, match='pay failed, and must not run twice'):
            await scope.step('pay', work.gives('paid', 'pay'), once=True)
    assert work.done == ['pay']
