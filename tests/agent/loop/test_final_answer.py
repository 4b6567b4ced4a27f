"""The check of an answer does not block the event loop, whatever the answer is."""

import asyncio
import threading
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, cast

import pytest
from pydantic import AfterValidator, BaseModel

from habilis.agent import Agent, RunLimits
from habilis.journal import MemoryStore
from habilis.models import Reply, ScriptedModel
from habilis.tools import tool
from tests.agent.loop.test_tool_calls import block, calling


class Account(BaseModel):
    balance: int


class Ledger(BaseModel):
    accounts: list[Account] = []
    rate: Decimal = Decimal(1)


def slowly(value: int) -> int:
    """A validator of the user that may take its time: it refuses to run in the thread of the event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return value
    msg = 'this blocks the event loop'
    raise ValueError(msg)


Slow = Annotated[int, AfterValidator(slowly)]
SLOW_INT = cast('type[int]', Slow)


@pytest.mark.one_protocol
@pytest.mark.parametrize(
    ('kind', 'given'),
    [
        (int, "Decimal('1E+20000000')"),
        (int, "Decimal('1E-20000000')"),
        (list[int], "[1, Decimal('-1E+20000000')]"),
        (dict[str, int], "{'a': Decimal('1E+20000000')}"),
        (dict[int, str], "{Decimal('1E+20000000'): 'a'}"),
        (list[list[int]], "[[Decimal('1E+9999')]] * 3000"),
        (Fraction, "Decimal('1E+20000000')"),
        (Account, "{'balance': Decimal('1E+20000000')}"),
        (list[Account], "[{'balance': Decimal('1E+20000000')}]"),
        (Ledger, "{'accounts': [{'balance': Decimal('1E+20000000')}]}"),
        (Ledger, "{'rate': 1 << 3_000_000}"),
        (Decimal, '1 << 3_000_000'),
        (set[Any], '[1 << 3_000_000, Decimal(2 ** (3_000_000 % 61))]'),
    ],
)
async def test_an_answer_whose_conversion_would_take_minutes_is_refused_at_once(kind: Any, given: str) -> None:
    model = ScriptedModel([block(f'from decimal import Decimal\nfinal_answer({given})'), block('stop()')])
    async with Agent(model, output_type=kind, limits=RunLimits(steps=1)) as agent:
        result = await agent.run('go')
    assert result.ended == 'max_steps'
    assert 'a number has more than 10,000 digits' in (result.steps[0].observation or '')


@pytest.mark.parametrize(
    ('kind', 'given', 'expected'),
    [
        (int, "Decimal('1E+6000')", lambda: 10**6000),
        (Decimal, "Decimal('1E+6000')", lambda: Decimal('1E+6000')),
        (Decimal, '10 ** 6000', lambda: Decimal(10**6000)),
        (Account, "{'balance': 10 ** 100000}", lambda: Account(balance=10**100000)),
        (list[int], "[10 ** 100000, '7']", lambda: [10**100000, 7]),
    ],
)
async def test_large_numbers_that_are_converted_quickly_are_taken(
    kind: Any, given: str, expected: Callable[[], object]
) -> None:
    model = ScriptedModel([block(f'from decimal import Decimal\nfinal_answer({given})')])
    async with Agent(model, output_type=kind, limits=RunLimits(steps=1)) as agent:
        result = await agent.run('go')
    assert result.output == expected()


@pytest.mark.one_protocol
async def test_an_answer_with_a_million_errors_is_refused_without_listing_them() -> None:
    model = ScriptedModel([block("final_answer(['x'] * 900_000)")])
    async with Agent(model, output_type=list[int], limits=RunLimits(steps=1)) as agent:
        result = await agent.run('go')
    assert 'It has 900,000 errors.' in (result.steps[0].observation or '')


@pytest.mark.one_protocol
@pytest.mark.parametrize('reply', [block('final_answer(3)'), '3'])
async def test_a_slow_validator_of_the_output_type_does_not_block_the_event_loop(reply: str) -> None:
    async with Agent(ScriptedModel([reply]), output_type=SLOW_INT) as agent:
        result = await agent.run('go')
    assert result.output == 3


@pytest.mark.one_protocol
async def test_a_slow_validator_does_not_block_the_event_loop_when_the_answer_comes_from_the_record() -> None:
    store = MemoryStore()
    first = Agent(ScriptedModel([block('x = 1'), block('final_answer(3)')]), output_type=SLOW_INT, journal=store)
    async with first:
        run = await first.start('go', run_id='r')
        await run.step()
        # The step is recorded, the result of the run is not.
        await run._turns.take(2, True, {}, '')  # pyright: ignore[reportPrivateUsage]
        await run.close()
    async with Agent(ScriptedModel([]), output_type=SLOW_INT, journal=store) as agent:
        result = await agent.resume('r')
    assert result.output == 3


@pytest.mark.one_protocol
@pytest.mark.parametrize('by', ['code', 'async code', 'model'])
async def test_a_slow_validator_of_a_tool_does_not_block_the_event_loop(by: str) -> None:
    got: list[int] = []

    @tool(side='both')
    def take(number: Slow) -> None:
        got.append(number)

    @tool
    async def fetch(number: Slow) -> None:
        got.append(number)

    replies: dict[str, str | Reply] = {
        'code': block('take(3)'),
        'async code': block('await fetch(3)'),
        'model': calling(('take', {'number': 3})),
    }
    model = ScriptedModel([replies[by], 'done'], functions=by == 'model')
    async with Agent(model, tools=[take, fetch]) as agent:
        await agent.run('go')
    assert got == [3]


async def test_an_answer_whose_check_ends_after_its_cell_was_stopped_is_not_taken() -> None:
    stopped, checked = threading.Event(), threading.Event()

    def check(value: int) -> int:
        if value == 3:
            stopped.wait(60)
            checked.set()
        return value

    model = ScriptedModel([block('final_answer(3)'), block('final_answer(4)')])
    kind = cast('type[int]', Annotated[int, AfterValidator(check)])
    async with Agent(model, output_type=kind, limits=RunLimits(seconds=1), journal='off') as agent:
        run = await agent.start('go')
        first = await run.step()
        stopped.set()
        assert await asyncio.to_thread(checked.wait, 60)
        run.extend(RunLimits(seconds=60))
        second = await run.step()
    assert first is not None
    assert (first.ended, first.output) == ('max_seconds', None)
    assert second is not None
    assert second.output == 4
