"""A first parameter `Context` is filled by the run, and nobody else sees it."""

import asyncio
import logging
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import pytest

from habilis.core.errors import ToolArgumentsError, ToolCallError, ToolDefinitionError
from habilis.sandbox import Sandbox
from habilis.tools import Context, Toolbox, Toolset, log, tool
from habilis.tools.events import ToolEvent, ToolLogged, ToolProgress
from tests.tools.boxes import function, on_a_thread


@dataclass
class Shop:
    """Dependencies of a run."""

    prices: dict[str, int]


class HasPrices(Protocol):
    """Something that cannot be checked at run time."""

    prices: dict[str, int]


SHOP = Context(Shop({'tea': 3}), run_id='run-1')


def price(ctx: Context[Shop], article: str) -> int:
    """The price of an article."""
    return ctx.deps.prices[article]


async def price_later(ctx: Context[Shop], /, article: str, *, times: int = 1) -> int:
    return ctx.deps.prices[article] * times


class Prices:
    """Tools as methods and as a callable object."""

    @tool
    def of(self, ctx: Context[Shop], article: str) -> int:
        return ctx.deps.prices[article]

    def __call__(self, ctx: 'Context[Shop]', article: str) -> int:
        return ctx.deps.prices[article]


async def test_functions_methods_and_objects_get_the_context_sync_and_async() -> None:
    tools = [price, price_later, Toolset('prices', [Prices().of, tool(name='by_object')(Prices())])]
    box = Toolbox(tools, context=SHOP)
    for name in ('price', 'price_later', 'of', 'by_object'):
        assert await box.call(name, 'tea') == 3
    assert await box.call('price_later', article='tea', times=2) == 6


async def test_neither_stub_nor_schema_nor_record_shows_the_context() -> None:
    made = tool(side='both')(price)
    box = Toolbox([made], context=SHOP)
    assert made.signature == '(article: str) -> int'
    assert made.parameters['properties'] == {'article': {'type': 'string'}}
    assert made.positional == ('article',)
    assert 'Context' not in box.stubs()
    assert 'Shop' not in box.stubs()
    await box.call_for_model('price', {'article': 'tea'})
    [record] = box.take_records()
    assert record.arguments == {'article': 'tea'}


async def test_a_caller_cannot_pass_a_context() -> None:
    box = Toolbox([price], context=SHOP)
    with pytest.raises(ToolArgumentsError, match='ctx: there is no such parameter'):
        await box.call('price', 'tea', ctx='mine')


async def test_code_in_a_sandbox_gets_the_result_and_not_the_context() -> None:
    box = Toolbox([price], context=SHOP)
    async with await Sandbox.create() as sandbox:
        cell = await sandbox.run("print(price('tea'), price(article='tea'))", tools=box.functions())
    assert cell.stdout == '3 3\n'


async def test_a_tool_outside_of_a_run_says_what_is_missing() -> None:
    with pytest.raises(ToolCallError, match=r'price needs the context of a run: .*context=Context\(deps\)'):
        await Toolbox([price]).call('price', 'tea')
    assert price(SHOP, 'tea') == 3
    assert tool(price)(SHOP, 'tea') == 3
    assert await tool(price).invoke(['tea'], context=SHOP) == 3


async def test_dependencies_of_another_type_are_refused_by_name() -> None:
    with pytest.raises(ToolCallError, match='price needs deps of type Shop, not'):
        await Toolbox([price], context=Context('a string')).call('price', 'tea')


def test_a_type_that_cannot_be_checked_takes_everything_but_none() -> None:
    def accepts(hint: Any, value: object) -> bool:
        def one(ctx: Any) -> None: ...

        one.__annotations__['ctx'] = hint
        context = tool(one).context
        assert context is not None
        return context.accepts(value)

    assert accepts(Context, None)
    assert accepts(Context[Any], 1)
    assert accepts(Context[HasPrices], Shop({}))
    assert not accepts(Context[HasPrices], None)
    assert not accepts(Context[Shop], None)
    assert accepts(Context[None], None)
    assert not accepts(Context[None], 1)
    assert accepts(Context[Shop | None], None)
    assert accepts(Context[Shop | None], Shop({}))
    assert accepts(Context[dict[str, int]], {})
    assert not accepts(Context[dict[str, int]], [])
    assert accepts(Annotated[Context[Shop], 'of the run'], Shop({}))


def test_only_the_first_parameter_can_be_the_context() -> None:
    def second(article: str, ctx: Context[Shop]) -> None: ...
    def by_name(*, ctx: Context[Shop]) -> None: ...

    for wrong in (second, by_name):
        with pytest.raises(ToolDefinitionError, match='ctx: Context must be the first parameter'):
            Toolbox([wrong])


async def test_log_and_progress_reach_the_record_and_the_hooks() -> None:
    events: list[ToolEvent] = []

    def work(ctx: Context[Shop]) -> str:
        log('one')
        ctx.log('two')
        for number in range(1000):
            ctx.progress(number + 1, 1000, 'counting')
        return ctx.run_id

    box = Toolbox([work], context=SHOP, emit=events.append)
    assert await box.call('work') == 'run-1'
    await asyncio.sleep(0)
    [record] = box.take_records()
    assert record.log == ('one', 'two')
    assert [event.line for event in events if isinstance(event, ToolLogged)] == ['one', 'two']
    progress = [event for event in events if isinstance(event, ToolProgress)]
    assert progress[0].text == '1 of 1000: counting'
    assert progress[-1].text == '1000 of 1000: counting'
    assert len(progress) < 1000


def test_a_context_made_by_hand_logs_to_the_logger(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, 'habilis.tools'):
        Context(None).log('hello')
    Context(None).progress(1)
    assert 'hello' in caplog.text
    assert repr(Context(Shop({'secret': 1}))) == '<context of no run>'


async def test_a_preview_may_take_the_context_too() -> None:
    asked: list[str] = []

    def show(ctx: Context[Shop], article: str) -> str:
        return f'-{ctx.deps.prices[article]}\n'

    @tool(needs_approval=True, preview=show)
    def remove(ctx: Context[Shop], article: str) -> int:
        return ctx.deps.prices.pop(article)

    box = Toolbox(
        [remove], context=Context(Shop({'tea': 3})), approve=lambda request: asked.append(request.diff) or True
    )
    assert await on_a_thread(function(box, 'remove').call, 'tea') == 3
    assert asked == ['-3\n']
