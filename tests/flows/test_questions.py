"""Runs that wait for a person: the process may end, and the answer may come days later."""

import asyncio

import pytest

from habilis.core.codec import Json
from habilis.flows import (
    FlowArgumentsError,
    FlowError,
    FlowPaused,
    Question,
    approval,
    ask,
    flow,
    flow_status,
    parallel,
    step,
)
from habilis.journal import MemoryStore
from habilis.journal.questions import answer_run, open_questions

calls: list[str] = []


@pytest.fixture(autouse=True)
def afresh() -> None:
    calls.clear()


@step
async def work(name: str) -> str:
    calls.append(name)
    await asyncio.sleep(0.01)
    return name


@flow
async def publish(title: str) -> str:
    text = await work(title)
    if await approval('Publish?', details={'text': text}):
        return await work('published')
    return await work('thrown away')


@pytest.mark.parametrize(
    ('answer', 'end'),
    [
        (True, 'published'),
        (False, 'thrown away'),
        ({'approved': True}, 'published'),
        ({'approved': False}, 'thrown away'),
    ],
)
async def test_a_run_waits_for_approval_and_continues_with_it(answer: Json, end: str) -> None:
    store = MemoryStore()
    run = await publish.start('news', journal=store)
    with pytest.raises(FlowPaused, match=r'publish#1/approval#1: Publish\?') as paused:
        await run.result()
    assert paused.value.run == run.id
    assert paused.value.questions == (
        Question(
            path='publish#1/approval#1',
            request={'kind': 'approval', 'question': 'Publish?', 'details': {'text': 'news'}},
        ),
    )
    assert (await store.info(run.id)).status == run.status == 'waiting'
    assert (await store.lease(run.id)).until == 0
    assert await answer_run(store, run.id, answer) == []
    assert (await store.info(run.id)).status == 'stopped'
    assert await publish.resume(run.id, journal=store) == end
    assert calls == ['news', end]


async def test_resuming_without_an_answer_asks_the_same_again() -> None:
    store = MemoryStore()
    run = await publish.start('news', journal=store)
    for attempt in (run.result(), publish.resume(run.id, journal=store), publish.resume(run.id, journal=store)):
        with pytest.raises(FlowPaused):
            await attempt
    assert len(await open_questions(store, run.id)) == 1
    assert calls == ['news']


async def test_a_question_takes_any_plain_answer() -> None:
    @flow
    async def survey() -> object:
        return await ask('Which colours?')

    store = MemoryStore()
    run = await survey.start(journal=store)
    with pytest.raises(FlowPaused):
        await run.result()
    await answer_run(store, run.id, ['red', 'blue'])
    assert await survey.resume(run.id, journal=store) == ['red', 'blue']


async def test_a_step_may_ask_and_so_may_a_flow_inside_a_flow() -> None:
    @step
    async def careful(name: str) -> str:
        await work(name)
        return name if await approval(f'{name}?') else ''

    @flow
    async def inner() -> str:
        return await careful('deep')

    @flow
    async def outer() -> str:
        return await inner() + await work('end')

    store = MemoryStore()
    run = await outer.start(journal=store)
    with pytest.raises(FlowPaused) as paused:
        await run.result()
    assert paused.value.questions[0].path == 'outer#1/inner#1/careful#1/approval#1'
    await answer_run(store, run.id, True)
    assert await outer.resume(run.id, journal=store) == 'deepend'
    assert calls == ['deep', 'end']


async def test_questions_of_parallel_branches_are_asked_together_and_what_is_under_way_ends() -> None:
    async def branch(name: str) -> str:
        if name == 'slow':
            return await work('slow') + await work('slow 2')
        return name if await approval(f'{name}?') else f'not {name}'

    @flow
    async def work_all() -> list[str]:
        return await parallel(branch, ['slow', 'a', 'b'], limit=2)

    store = MemoryStore()
    before = asyncio.all_tasks()
    run = await work_all.start(journal=store)
    with pytest.raises(FlowPaused) as paused:
        await run.result()
    assert asyncio.all_tasks() == before
    first, second = [question.path for question in paused.value.questions]
    assert calls == ['slow']  # ended, and recorded; the next one has not begun
    assert await answer_run(store, run.id, True, path=first) == [second]
    assert (await store.info(run.id)).status == 'waiting'
    assert await answer_run(store, run.id, False, path=second) == []
    assert await work_all.resume(run.id, journal=store) == ['slowslow 2', 'a', 'not b']
    assert calls == ['slow', 'slow 2']


async def test_tasks_of_the_flows_own_making_may_ask_too() -> None:
    @flow
    async def with_gather() -> list[bool]:
        return list(await asyncio.gather(approval('a?'), approval('b?')))

    @flow
    async def with_group() -> list[bool]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(approval(question)) for question in ('a?', 'b?')]
        return [task.result() for task in tasks]

    for flow_ in (with_gather, with_group):
        store = MemoryStore()
        run = await flow_.start(journal=store)
        with pytest.raises(FlowPaused) as paused:
            await run.result()
        questions = {question.text: question.path for question in paused.value.questions}
        assert set(questions) == {'a?', 'b?'}
        await answer_run(store, run.id, True, path=questions['a?'])
        await answer_run(store, run.id, False, path=questions['b?'])
        assert await flow_.resume(run.id, journal=store) == [True, False]


async def test_a_pause_is_no_failure_for_the_code_around_it() -> None:
    @flow
    async def careless() -> bool:
        try:
            return await approval('Really?')
        except Exception:
            return False

    store = MemoryStore()
    run = await careless.start(journal=store)
    with pytest.raises(FlowPaused):
        await run.result()
    await answer_run(store, run.id, True)
    assert await careless.resume(run.id, journal=store) is True


async def test_outside_of_a_flow_a_question_is_an_error() -> None:
    with pytest.raises(FlowError, match='cannot ask a person'):
        await approval('Publish?')


async def test_details_must_be_plain() -> None:
    @flow
    async def odd() -> None:
        await approval('Publish?', details={'x': object()})

    with pytest.raises(FlowArgumentsError, match='plain data'):
        await (await odd.start(journal=MemoryStore())).result()


async def test_a_step_that_must_not_be_repeated_and_was_cut_off_is_asked_about() -> None:
    reached = asyncio.Event()

    @step(idempotent=False)
    async def pay(amount: int) -> str:
        calls.append('pay')
        if not reached.is_set():
            reached.set()
            await asyncio.sleep(3600)
        return f'paid {amount}'

    @flow
    async def shop() -> str:
        return await pay(3)

    endings: list[tuple[Json, str, int]] = [
        ({'value': 'paid by hand'}, 'paid by hand', 1),
        ({'again': True}, 'paid 3', 2),
    ]
    for answer, value, paid in endings:
        calls.clear()
        reached.clear()
        store = MemoryStore()
        run = await shop.start(journal=store)
        await reached.wait()
        await run.cancel()
        with pytest.raises(FlowPaused, match=r'pay\(amount=3\) was running'):
            await shop.resume(run.id, journal=store)
        assert [(step.name, step.state) for step in await flow_status(store, run.id)] == [('pay', 'waiting')]
        assert calls == ['pay']
        await answer_run(store, run.id, answer)
        assert await shop.resume(run.id, journal=store) == value
        assert calls == ['pay'] * paid
