"""The builder: a flow made of parts, checked when it is built."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from habilis.flows import FlowDefinitionError, FlowError, StepStatus, Workflow, flow, step
from habilis.journal import MemoryStore

calls: list[str] = []
broken: set[str] = set()


@pytest.fixture(autouse=True)
def afresh() -> None:
    calls.clear()
    broken.clear()


def noted(name: str) -> None:
    calls.append(name)
    if name in broken:
        raise ValueError(name)


@dataclass(frozen=True)
class Plan:
    topics: list[str]


def plan(input: str) -> Plan:
    noted('plan')
    return Plan([f'{input} {number}' for number in range(3)])


async def fetch(topic: str, plan: Plan) -> str:
    noted(f'fetch {topic}')
    return f'{topic} of {len(plan.topics)}'


def count(fetch: list[str]) -> int:
    noted('count')
    return len(fetch)


async def title(plan: Plan) -> str:
    noted('title')
    return plan.topics[0].upper()


def improve(title: str, improve: str | None = None) -> str:
    noted('improve')
    return f'{improve or title}!'


def praise(count: int) -> str:
    noted('praise')
    return f'{count} is good'


def complain() -> str:
    noted('complain')
    return 'not enough'


def whole(input: str, plan: Plan, improve: str, improve_rounds: list[str], verdict: str) -> list[object]:
    noted('whole')
    return [input, plan.topics[-1], improve, len(improve_rounds), verdict]


def everything() -> Workflow:
    return (
        Workflow('everything', input_type=str)
        .step(plan)
        .each(fetch, over=lambda outputs: outputs['plan'].topics, limit=2)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownLambdaType]
        .parallel(count, title)
        .loop(while_=lambda outputs: len(str(outputs.get('improve', ''))) < 8, body=improve)
        .when(lambda outputs: outputs['count'] == 3, praise, complain, name='verdict')
        .step(whole)
    )


async def run(workflow: Workflow, *given: object) -> object:
    return await (await workflow.flow.start(*given, journal=MemoryStore())).result()


async def test_steps_are_given_the_outputs_that_they_name() -> None:
    """G1, G2."""
    assert await run(everything(), 'cats') == ['cats', 'cats 2', 'CATS 0!!', 2, '3 is good']
    assert calls.count('improve') == 2


@pytest.mark.parametrize('failing', ['plan', 'fetch cats 1', 'count', 'title', 'improve', 'praise', 'whole'])
async def test_wherever_it_fails_it_continues_there(failing: str) -> None:
    workflow, store = everything(), MemoryStore()
    broken.add(failing)
    started = await workflow.flow.start('cats', journal=store)
    with pytest.raises(ValueError, match=failing):
        await started.result()
    before = list(calls)
    broken.clear()
    assert await workflow.flow.resume(started.id, journal=store) == ['cats', 'cats 2', 'CATS 0!!', 2, '3 is good']
    again = [name for name in calls[len(before) :] if name in before and name != 'improve']
    assert again == ([failing] if failing != 'improve' else [])


async def test_steps_that_were_not_reached_are_not_run() -> None:
    """G4."""
    workflow, store = everything(), MemoryStore()
    broken.add('count')
    started = await workflow.flow.start('cats', journal=store)
    with pytest.raises(ValueError, match='count'):
        await started.result()
    found = await workflow.status(store, started.id)
    states: dict[str, set[str]] = {}
    for each in found:
        states.setdefault(each.name, set()).add(each.state)
    assert states == {
        'plan': {'done'},
        'fetch': {'done'},
        'parallel': {'done', 'failed'},
        'count': {'failed'},
        'title': {'done'},
        'improve': {'not run'},
        'praise': {'not run'},
        'complain': {'not run'},
        'whole': {'not run'},
    }
    assert found[-1] == StepStatus(path='everything#1/whole#1', name='whole', state='not run')


async def test_a_workflow_may_be_a_step_an_item_a_round_or_a_choice_of_another() -> None:
    """G3."""

    def twice(input: str) -> str:
        return input * 2

    def letters(input: str) -> list[str]:
        return list(input)

    def size(inner: str) -> int:
        return len(inner)

    inner = Workflow('inner', input_type=str).step(twice)
    assert await run(Workflow('outer', input_type=str).step(inner).step(size), 'ab') == 4
    assert await run(Workflow('outer').step(letters).each(inner, over='letters'), 'ab') == ['aa', 'bb']
    assert await run(Workflow('outer').when(lambda outputs: outputs['input'] == 'ab', inner), 'ab') == 'abab'
    assert await run(Workflow('outer').when(lambda outputs: outputs['input'] == 'ab', inner), 'x') is None
    looping = Workflow('outer').loop(
        while_=lambda outputs: len(str(outputs.get('inner', ''))) < 8,
        body=inner,
        input=lambda outputs: outputs.get('inner', outputs['input']),
    )
    assert await run(looping, 'ab') == ['abab', 'abababab']
    assert await run(Workflow('outer').step(letters).step(inner, input=lambda outputs: 'xy'), 'ab') == 'xyxy'


async def test_steps_and_flows_of_the_other_kind_are_parts_too() -> None:
    @step(retries=1, retry_delay=0)
    async def flaky(input: int) -> int:
        noted('flaky')
        if calls.count('flaky') == 1:
            raise ValueError
        return input + 1

    @flow
    async def doubled(flaky: int) -> int:
        return 2 * flaky

    def last(more: int) -> int:
        return more + 1

    mixed = Workflow('mixed').step(flaky).step(doubled, name='more').step(last)
    assert await run(mixed, 3) == 9


async def test_options_of_a_step_hold() -> None:
    async def slow(input: object) -> None:
        await asyncio.sleep(60)

    with pytest.raises(TimeoutError, match='step slow#1'):
        await run(Workflow('impatient').step(slow, timeout=0.01))
    calls_before = len(calls)

    def flaky() -> str:
        noted('flaky')
        if len(calls) == calls_before + 1:
            raise ValueError
        return 'x'

    assert await run(Workflow('patient').step(flaky, retries=1, retry_delay=0.0)) == 'x'


async def test_a_loop_that_does_not_end_is_stopped_at_its_limit() -> None:
    workflow = Workflow('endless').loop(while_=lambda outputs: True, body=complain, limit=3)
    with pytest.raises(FlowError, match='complain_rounds reached its limit of 3 rounds'):
        await run(workflow)
    assert calls == ['complain'] * 3


async def test_a_loop_without_a_round_gives_nothing() -> None:
    workflow = Workflow('never').loop(while_=lambda outputs: False, body=complain)
    assert await run(workflow) == []


async def test_going_over_something_else_than_items_is_named() -> None:
    with pytest.raises(FlowError, match='needs a list of items, not str'):
        await run(Workflow('odd').each(complain_of, over='input'), 'text')


def complain_of(item: str) -> str:
    return item


async def test_typed_results_come_back_typed() -> None:
    workflow, store = Workflow('typed', input_type=str).step(plan), MemoryStore()
    started = await workflow.flow.start('cats', journal=store)
    assert await started.result() == await workflow.flow.resume(started.id, journal=store)
    both = Workflow('both', input_type=str).step(plan).parallel(title, again)
    assert await run(both, 'x') == {'title': 'X 0', 'again': Plan(['x 0', 'x 1', 'x 2'])}


async def again(plan: Plan) -> Plan:
    return plan


def one(input: object) -> int:
    return 1


def wants_plann(plann: int) -> int:
    return plann


def wants_itself(wants_itself: int) -> int:
    return wants_itself


def takes_all(*args: int) -> int:
    return len(args)


def by_position(one: int, /) -> int:
    return one


def nothing() -> int:
    return 0


WRONG: list[tuple[Callable[[], object], str]] = [
    (
        lambda: Workflow('w').step(plan).step(wants_plann),
        "takes 'plann', which is not the output of an earlier step; did you mean 'plan'",
    ),
    (lambda: Workflow('w').step(count), "count takes 'fetch', which is not the output of an earlier step"),
    (lambda: Workflow('w').step(one).step(one), "two outputs are named 'one'"),
    (lambda: Workflow('w').parallel(one, one), "two outputs are named 'one'"),
    (lambda: Workflow('w').parallel(one), 'two steps or more'),
    (lambda: Workflow('w').step(one, name='input'), "two outputs are named 'input'"),
    (lambda: Workflow('w').loop(while_=lambda outputs: True, body=wants_itself), 'give it a default'),
    (lambda: Workflow('w').loop(while_=lambda outputs: True, body=one, limit=0), 'limit=0'),
    (
        lambda: Workflow('w').each(one, over='things'),
        "one iterates over 'things', which is not the output of an earlier step",
    ),
    (lambda: Workflow('w').each(one, over=3), 'give the name of an output'),  # pyright: ignore[reportArgumentType]
    (lambda: Workflow('w').each(one, over='input', limit=0), 'limit=0'),
    (lambda: Workflow('w').each(nothing, over='input'), 'its first parameter must be the item'),
    (lambda: Workflow('w').step(takes_all), r'takes \*args'),
    (lambda: Workflow('w').step(one).step(by_position), 'by position only'),
    (lambda: Workflow('w').step(lambda: 1), 'give it one with name='),
    (lambda: Workflow('w').step(3), 'cannot be a step'),  # pyright: ignore[reportArgumentType]
    (lambda: Workflow('w').step(Workflow('v')), 'v has no steps yet'),
    (lambda: Workflow('w').step(Workflow('v').step(one), input='things'), "v takes as its input 'things'"),
    (lambda: Workflow('w').step(Workflow('v').step(one), retries=1), 'leave out retries'),
    (lambda: Workflow('w').step(one, retries=-1), 'retries=-1'),
    (lambda: Workflow('w').flow, 'no steps yet'),
    (lambda: Workflow('a/b').step(one).flow, 'is not a valid name'),
]


@pytest.mark.parametrize(('make', 'problem'), WRONG, ids=[problem for _, problem in WRONG])
def test_what_does_not_fit_together_is_said_when_it_is_built(make: Callable[[], object], problem: str) -> None:
    with pytest.raises(FlowDefinitionError, match=problem):
        make()


def test_a_part_that_was_refused_leaves_the_workflow_as_it_was() -> None:
    workflow = Workflow('w').step(one)
    with pytest.raises(FlowDefinitionError):
        workflow.parallel(nothing, one)
    assert [node.name for node in workflow.step(nothing).nodes] == ['one', 'nothing']


async def test_a_workflow_that_is_extended_later_does_not_change_the_flows_made_of_it() -> None:
    workflow = Workflow('w').step(one)
    before, outer = workflow.flow, Workflow('outer').step(workflow)
    workflow.step(nothing).step(outer)
    assert await run(outer) == 1
    assert await (await before.start(journal=MemoryStore())).result() == 1
    assert 'nothing' not in outer.mermaid()
