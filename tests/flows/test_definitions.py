"""Steps and flows as they are written: plain functions with a record behind them."""

import asyncio
import inspect
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest
from pydantic import BaseModel

from habilis.core.errors import NotDurable, RunChanged
from habilis.flows import (
    FlowArgumentsError,
    FlowDefinitionError,
    FlowError,
    StepTimeout,
    current_flow,
    flow,
    step,
)
from habilis.journal import MemoryStore
from habilis.tools import Context
from tests.cases import each_case


@dataclass(frozen=True)
class Page:
    url: str
    words: int


class Report(BaseModel):
    title: str
    pages: list[Page]
    on: date


@step
async def fetch(url: str) -> Page:
    """Fetch a page."""
    await asyncio.sleep(0)
    return Page(url, len(url))


@step
def shout(text: str) -> str:
    return text.upper()


@flow
async def report(topic: str, pages: int = 2, *, on: date = date(2026, 1, 2)) -> Report:
    """Write a report."""
    found = [await fetch(f'{topic}/{number}') for number in range(pages)]
    return Report(title=await shout(topic), pages=found, on=on)


EXPECTED = Report(title='CATS', pages=[Page('cats/0', 6), Page('cats/1', 6)], on=date(2026, 1, 2))


async def test_a_flow_is_called_like_the_function_it_is() -> None:
    store = MemoryStore()
    run = await report.start('cats', journal=store)
    assert await run.result() == EXPECTED
    assert run.status == 'done'
    assert (await store.info(run.id)).title == "topic='cats'"


async def test_at_top_level_a_run_is_kept_in_the_default_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('HABILIS_DATA', str(tmp_path))
    assert await report('cats') == EXPECTED
    assert list(tmp_path.rglob('runs.db'))


def test_without_await_a_flow_works_in_scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('HABILIS_DATA', str(tmp_path))
    assert report.run_sync('cats') == EXPECTED


async def test_without_await_a_flow_works_inside_a_running_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('HABILIS_DATA', str(tmp_path))
    assert report.run_sync('cats') == EXPECTED


async def test_without_await_inside_a_flow_is_refused_before_it_waits_for_itself() -> None:
    @flow
    async def outer() -> None:
        report.run_sync('cats')

    with pytest.raises(FlowError, match='await the flow instead'):
        await (await outer.start(journal=MemoryStore())).result()


async def test_a_plain_step_may_call_a_flow_without_await_as_a_part_of_itself() -> None:
    calls: list[str] = []

    @step
    async def inner_step(text: str) -> str:
        calls.append(text)
        return text * 2

    @flow
    async def inner(text: str) -> str:
        return await inner_step(text)

    @step
    def outer_step(text: str) -> str:
        return inner.run_sync(text) + inner.run_sync('y')

    @flow
    async def outer() -> str:
        return await outer_step('x')

    store = MemoryStore()
    run = await outer.start(journal=store)
    assert await run.result() == 'xxyy'
    paths = [record.path for record in await store.load(run.id) if record.kind == 'done']
    assert paths == [
        'outer#1/outer_step#1/inner#1/inner_step#1',
        'outer#1/outer_step#1/inner#1',
        'outer#1/outer_step#1/inner#2/inner_step#1',
        'outer#1/outer_step#1/inner#2',
        'outer#1/outer_step#1',
        'outer#1',
    ]


async def test_a_step_outside_of_a_flow_is_just_the_function() -> None:
    assert await fetch('a') == Page('a', 1)
    assert await shout('a') == 'A'
    assert shout.function('a') == 'A'


async def test_steps_may_be_methods() -> None:
    class Shop:
        def __init__(self, price: int) -> None:
            self.price = price

        @step
        async def total(self, count: int) -> int:
            return self.price * count

    @flow
    async def buy() -> int:
        return await Shop(3).total(2) + await Shop(4).total(1)

    assert await (await buy.start(journal=MemoryStore())).result() == 10
    assert await Shop(5).total(2) == 10


def test_a_flow_looks_like_its_function() -> None:
    assert report.__name__ == 'report'
    assert report.__doc__ == 'Write a report.'
    assert str(inspect.signature(report)).startswith('(topic: str, pages: int = 2')
    assert report.target == f'{__name__}:report'


async def test_wrong_arguments_are_said_before_anything_is_recorded() -> None:
    store = MemoryStore()
    with pytest.raises(FlowArgumentsError, match=r"pages: expected int, got 'two'"):
        await report.start('cats', 'two', journal=store)
    with pytest.raises(FlowArgumentsError, match=r"pagse: there is no such parameter; did you mean 'pages'"):
        await report.start('cats', pagse=2, journal=store)
    with pytest.raises(FlowArgumentsError, match='topic: missing'):
        await report.start(journal=store)
    assert await store.runs() == []


async def test_what_could_not_be_brought_back_is_refused_before_anything_is_recorded() -> None:
    @flow
    async def odd(thing: object) -> None:
        del thing

    store = MemoryStore()
    with pytest.raises(FlowArgumentsError, match='arguments cannot be recorded'):
        await odd.start(object(), journal=store)
    assert await store.runs() == []


async def test_a_step_may_be_given_what_is_no_data() -> None:
    class Client:
        def ask(self) -> int:
            return 7

    @step
    async def use(client: Client) -> int:
        return client.ask()

    @flow
    async def work() -> int:
        return await use(Client())

    assert await (await work.start(journal=MemoryStore())).result() == 7


async def test_a_result_that_cannot_be_saved_fails_the_run_and_says_what_to_do() -> None:
    @step
    async def bad() -> object:
        return object()

    @flow
    async def work() -> None:
        await bad()

    run = await work.start(journal=MemoryStore())
    with pytest.raises(NotDurable, match='with a return type hint'):
        await run.result()
    assert run.status == 'failed'


async def test_wrong_arguments_of_a_step_fail_the_flow_with_the_problem() -> None:
    @flow
    async def work() -> Page:
        return await fetch(3)  # pyright: ignore[reportArgumentType]

    with pytest.raises(FlowArgumentsError, match='url: expected str, got 3'):
        await (await work.start(journal=MemoryStore())).result()


@each_case(
    ('options', 'problem'),
    [
        ({'retries': -1}, 'retries=-1'),
        ({'retries': True}, 'retries=True'),
        ({'timeout': 0}, 'timeout=0'),
        ({'retry_delay': -1.0}, 'retry_delay'),
        ({'retries': 1, 'idempotent': False}, 'give only one of them'),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, int], problem: str) -> None:
    with pytest.raises(FlowDefinitionError, match=problem):
        step(**options)  # pyright: ignore[reportCallIssue, reportArgumentType, reportUnknownVariableType]


@each_case('name', ['a/b', 'a#1', '~1', 'f(x)', 'a\nb', ''])
def test_a_name_that_would_be_a_path_is_refused(name: str) -> None:
    with pytest.raises(FlowDefinitionError):
        step(name=name)(lambda: None)  # pyright: ignore[reportUnknownLambdaType]


def test_functions_that_cannot_be_flows_or_steps_are_refused() -> None:
    def plain() -> None: ...

    async def numbers() -> object:
        yield 1

    with pytest.raises(FlowDefinitionError, match='async def'):
        flow(plain)  # pyright: ignore[reportArgumentType, reportCallIssue]
    with pytest.raises(FlowDefinitionError, match='return a list'):
        step(numbers)
    with pytest.raises(FlowDefinitionError, match='give it one with name='):
        step(lambda: 1)


async def test_a_context_is_for_tools_only() -> None:
    async def look(ctx: Context[str], number: int) -> int:
        return number

    with pytest.raises(FlowDefinitionError, match='look cannot be a step: a Context is for tools of an agent'):
        await flow(look).start(Context('a'), 3, journal=MemoryStore())


async def test_hints_that_cannot_be_read_are_named() -> None:
    async def odd(thing: int) -> None: ...

    odd.__annotations__['thing'] = 'Missing'
    with pytest.raises(FlowDefinitionError, match='type hints cannot be read'):
        await flow(odd).start(3, journal=MemoryStore())


async def test_a_step_that_takes_too_long_is_named() -> None:
    @step(timeout=0.01)
    async def slow() -> None:
        await asyncio.sleep(60)

    @flow
    async def work() -> None:
        await slow()

    with pytest.raises(StepTimeout, match=r'step slow#1 took longer than 0\.01 s') as caught:
        await (await work.start(journal=MemoryStore())).result()
    assert isinstance(caught.value, TimeoutError)


async def test_a_flow_that_takes_too_long_is_named_and_can_be_resumed() -> None:
    ended: list[str] = []

    @step
    async def first() -> None:
        ended.append('first')

    @step
    async def slow() -> None:
        if ended.count('slow') == 0:
            ended.append('slow')
            await asyncio.sleep(60)

    @flow(timeout=0.05)
    async def work() -> str:
        await first()
        await asyncio.gather(slow(), asyncio.sleep(0))
        return 'done'

    store = MemoryStore()
    run = await work.start(journal=store)
    with pytest.raises(StepTimeout, match='flow work took longer'):
        await run.result()
    assert await work.resume(run.id, journal=store) == 'done'
    assert ended == ['first', 'slow']


async def test_a_timeout_of_its_own_is_not_taken_for_that_of_the_step() -> None:
    @step(timeout=60)
    async def impatient() -> None:
        raise TimeoutError('mine')

    @flow
    async def work() -> None:
        await impatient()

    with pytest.raises(TimeoutError, match='mine') as caught:
        await (await work.start(journal=MemoryStore())).result()
    assert not isinstance(caught.value, StepTimeout)


async def test_a_step_is_tried_again_as_often_as_it_says() -> None:
    tries: list[int] = []

    @step(retries=2, retry_delay=0)
    async def flaky(need: int) -> int:
        tries.append(need)
        if len(tries) < need:
            msg = f'try {len(tries)}'
            raise ValueError(msg)
        return len(tries)

    @flow
    async def work(need: int) -> int:
        return await flaky(need)

    store = MemoryStore()
    run = await work.start(3, journal=store)
    assert await run.result() == 3
    kinds = [record.kind for record in await store.load(run.id) if record.path.endswith('flaky#1')]
    assert kinds == ['done']
    tries.clear()
    with pytest.raises(ValueError, match='try 3'):
        await (await work.start(9, journal=store)).result()


async def test_a_second_attempt_does_not_repeat_what_was_done_inside_the_step() -> None:
    calls: list[str] = []

    @step
    async def inner(name: str) -> str:
        calls.append(name)
        if name == 'bad' and calls.count('bad') == 1:
            raise ValueError(name)
        return name

    @step(retries=1, retry_delay=0)
    async def outer() -> list[str]:
        return [await inner('good'), *await asyncio.gather(inner('left'), inner('bad'), inner('right'))]

    @flow
    async def work() -> list[str]:
        return await outer()

    store = MemoryStore()
    run = await work.start(journal=store)
    assert await run.result() == ['good', 'left', 'bad', 'right']
    assert sorted(calls) == ['bad', 'bad', 'good', 'left', 'right']


async def test_the_code_sees_the_outputs_of_earlier_steps() -> None:
    """G1."""

    @step
    async def number(value: int) -> int:
        return value

    @step
    def third() -> object:
        return [current_flow().outputs['number#1'], current_flow().outputs['number']]

    @flow
    async def work() -> object:
        await number(1)
        await number(2)
        assert current_flow().name == 'work'
        return await third()

    run = await work.start(journal=MemoryStore())
    assert await run.result() == [1, 2]


def test_outside_of_a_flow_there_is_no_current_one() -> None:
    with pytest.raises(FlowError, match='no flow is running: call this'):
        current_flow()


async def test_a_run_of_another_flow_is_not_taken_for_ones_own() -> None:
    @flow
    async def other() -> None: ...

    store = MemoryStore()
    run = await report.start('cats', journal=store)
    await run.result()
    with pytest.raises(RunChanged, match='resume it with the flow that created it'):
        await other.resume(run.id, journal=store)
