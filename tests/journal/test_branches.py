"""Programs that are stopped anywhere and resumed: the same result, and no recorded work done again."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from habilis.journal import MemoryStore, Scope, current_scope, fingerprint
from tests.journal.faults import Work, again, lines_of, new, stopped_after
from tests.journal.programs import Node, Player, programs
from tests.waiting import until


@settings(max_examples=40)
@given(programs(), st.integers(0, 2**32))
def test_a_program_that_stops_after_any_record_is_resumed_to_the_same_end(program: Node, seed: int) -> None:
    asyncio.run(_stop_everywhere(program, seed))


async def _stop_everywhere(program: Node, seed: int) -> None:
    store = MemoryStore()
    async with new(store) as scope:
        expected = await Player(Random(seed)).play(program)
        await scope.finish()
    records = await store.load('run-1')
    for count in range(len(records) + 1):
        rest = await stopped_after(store, count)
        recorded = {record.key for record in records[:count] if record.kind in {'done', 'failed'}}
        await _resume(rest, program, Random(seed + count + 1), expected, recorded)
        await _resume(rest, program, Random(seed + count + 2), expected, None)
        await _stop_twice(rest, program, Random(seed + count + 3), expected)


async def _stop_twice(store: MemoryStore, program: Node, random: Random, expected: object) -> None:
    """What was resumed stops once more."""
    records = await store.load('run-1')
    count = random.randint(0, len(records))
    recorded = {record.key for record in records[:count] if record.kind in {'done', 'failed'}}
    await _resume(await stopped_after(store, count), program, random, expected, recorded)


async def _resume(
    store: MemoryStore, program: Node, random: Random, expected: object, recorded: set[str] | None
) -> None:
    """With these recorded, or, if it is None, all."""
    player = Player(random)
    before = len(await store.load('run-1'))
    async with again(store) as scope:
        assert await player.play(program) == expected
        await scope.finish()
    assert len(player.worked) == len(set(player.worked))
    if recorded is None:
        assert player.worked == []
        assert len(await store.load('run-1')) == before
    else:
        assert not recorded & set(player.worked)


# Tasks ----------------------------------------------------------------------------------------------------------------


async def test_tasks_get_branches_and_the_task_that_entered_none() -> None:
    store, work = MemoryStore(), Work()
    async with new(store) as scope:
        await scope.step('first', work.gives(1))
        await asyncio.gather(scope.step('a', work.gives(2)), scope.step('b', work.gives(3)))
        await scope.step('last', work.gives(4))
    assert [path for _, path in await lines_of(store)] == ['first#1', '~1/a#1', '~2/b#1', 'last#1']


async def test_tasks_that_begin_in_another_order_find_their_branches() -> None:
    store, work = MemoryStore(), Work()

    async def one(scope: Scope, number: int, pauses: int) -> object:
        for _ in range(pauses):
            await asyncio.sleep(0)
        got = await scope.step('get', work.gives(number), key=f'{number}')
        return got, await scope.step('use', work.gives(number * 10))

    async with new(store) as scope:
        first = await asyncio.gather(*(one(scope, number, number) for number in range(5)))
    async with again(store) as scope:
        second = await asyncio.gather(*(one(scope, number, 5 - number) for number in range(5)))
        await scope.finish()
    assert first == second == [(number, number * 10) for number in range(5)]
    assert len(work.done) == 10


async def test_a_branch_that_was_not_begun_gets_a_number_of_its_own() -> None:
    store, work = MemoryStore(), Work()
    async with new(store) as scope:
        await asyncio.gather(scope.step('a', work.gives(1)), scope.step('b', work.gives(2)))
    for _ in range(2):
        async with again(store) as scope:
            steps = (scope.step(name, work.gives(name)) for name in 'bacd')
            assert await asyncio.gather(*steps) == [2, 1, 'c', 'd']
    paths = [path for _, path in await lines_of(store)]
    assert sorted(paths) == ['~1/a#1', '~2/b#1', '~3/c#1', '~4/d#1']


async def test_a_branch_that_was_under_way_is_known_by_its_first_step_though_that_has_not_ended() -> None:
    store, work, crash = MemoryStore(), Work(), asyncio.Event()

    async def report(scope: Scope, place: str) -> object:
        async def inside() -> object:
            here = current_scope()
            assert here is not None
            found = await here.step('fetch', work.gives(f'fetched {place}'))
            if not crash.is_set():
                await asyncio.sleep(3600)
            return found

        return await scope.step('report', inside, key=fingerprint(place))

    async with new(store) as scope:
        tasks = [asyncio.create_task(report(scope, place)) for place in ('here', 'there')]
        await until(lambda: work.done == ['fetched here', 'fetched there'])
        await until(lambda: scope.journal.running_steps == 2)
        await _killed(tasks)
    crash.set()
    async with again(store) as scope:
        assert await asyncio.gather(report(scope, 'there'), report(scope, 'here')) == ['fetched there', 'fetched here']
    assert work.done == ['fetched here', 'fetched there']
    kinds = [(kind, path) for kind, path in await lines_of(store) if kind == 'opened']
    assert kinds == [('opened', '~1/report#1'), ('opened', '~2/report#1')]


async def test_tasks_that_are_gone_leave_their_branches_taken() -> None:
    store, work = MemoryStore(), Work()
    for opened in (new, again):
        async with opened(store) as scope:
            for number in range(5):
                assert await asyncio.create_task(scope.step('a', work.gives(number))) == number
                gc.collect()
    assert work.done == [str(number) for number in range(5)]
    assert [path for _, path in await lines_of(store)] == [f'~{number}/a#1' for number in range(1, 6)]


async def test_a_task_continues_in_its_own_branch() -> None:
    store, work = MemoryStore(), Work()

    async def two(scope: Scope) -> None:
        await scope.step('a', work.gives(1))
        await asyncio.sleep(0)
        await scope.step('a', work.gives(2))

    async with new(store) as scope:
        await asyncio.gather(two(scope), two(scope))
    assert sorted(path for _, path in await lines_of(store)) == ['~1/a#1', '~1/a#2', '~2/a#1', '~2/a#2']


async def test_a_dropped_branch_lends_its_number_to_no_other() -> None:
    store, work = MemoryStore(), Work()

    async def outer(names: str) -> list[object]:
        scope = current_scope()
        assert scope is not None
        return await asyncio.gather(*(scope.step(name, work.gives(name)) for name in names))

    async with new(store) as scope:
        await _unfinished(scope, lambda: outer('ab'))
    for names in ('a', 'ac', 'ac'):
        async with again(store, on_change='continue') as scope:
            await _unfinished(scope, lambda names=names: outer(names))
            await Scope(scope.journal, 'outer#1').finish()
    assert work.done == ['a', 'b', 'c']
    assert [path for kind, path in await lines_of(store) if kind == 'done'][-1] == 'outer#1/~3/c#1'


async def _unfinished(scope: Scope, work: Callable[[], Awaitable[object]]) -> None:
    """A step whose process dies before it ends."""

    async def then_dies() -> object:
        await work()
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await scope.step('outer', then_dies)


async def test_two_scopes_of_one_name_are_distinguished_by_their_keys() -> None:
    store, work = MemoryStore(), Work()

    async def agent(scope: Scope, prompt: str, pauses: int) -> object:
        for _ in range(pauses):
            await asyncio.sleep(0)
        return await scope.below('agent', key=fingerprint(prompt)).step('ask', work.gives(prompt))

    async with new(store) as scope:
        assert await asyncio.gather(agent(scope, 'x', 0), agent(scope, 'y', 1)) == ['x', 'y']
    async with again(store) as scope:
        assert await asyncio.gather(agent(scope, 'x', 1), agent(scope, 'y', 0)) == ['x', 'y']
    assert work.done == ['x', 'y']


async def test_a_scope_that_was_not_entered_belongs_to_the_task_that_created_it() -> None:
    store, work = MemoryStore(), Work()

    async def one(scope: Scope, name: str, pauses: int) -> object:
        for _ in range(pauses):
            await asyncio.sleep(0)
        return await scope.step(name, work.gives(name))

    async with new(store) as scope:
        inside = scope.below('x')
        await asyncio.gather(one(inside, 'a', 0), one(inside, 'b', 1))
    async with again(store) as scope:
        inside = scope.below('x')
        assert await asyncio.gather(one(inside, 'a', 1), one(inside, 'b', 0)) == ['a', 'b']
        await inside.finish()
    assert work.done == ['a', 'b']


async def _killed(tasks: list[asyncio.Task[object]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
