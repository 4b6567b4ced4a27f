"""Integers of any size are answers, variables, arguments and results, and are recorded, resumed and shown."""

import io
import json
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel
from rich.console import Console

from habilis.agent import Agent
from habilis.agent.durable.training_rows import to_json_lines, training_rows
from habilis.agent.hooks import TerminalView
from habilis.agent.loop.agreement import same_answer
from habilis.core.integers import integer_text
from habilis.journal import MemoryStore
from habilis.journal.runs import read_run
from habilis.models import FunctionCall, Reply, ScriptedModel
from habilis.tools import tool
from tests.agent.scripts import block, sent

LONG = 10**6000


class Model(BaseModel):
    number: int


@dataclass
class Point:
    x: int


@tool
def double(number: int) -> int:
    return 2 * number


@tool
def echo(thing: Any) -> list[Any]:
    return [thing, {thing: thing}]


@tool(side='model')
def power(exponent: int, base: int = 10) -> int:
    """Raise to a power."""
    return base**exponent


@tool
def fail(number: int) -> None:
    raise ValueError(number)


@pytest.mark.one_protocol
@pytest.mark.parametrize(
    ('kind', 'code', 'expected'),
    [
        (None, '10 ** 6000', lambda: LONG),
        (int, '-10 ** 6000', lambda: -LONG),
        (list[int], '[10 ** 6000]', lambda: [LONG]),
        (None, '[{10 ** 6000: (10 ** 6000, {10 ** 6000})}]', lambda: [{LONG: (LONG, {LONG})}]),
        (Model, "{'number': 10 ** 6000}", lambda: Model(number=LONG)),
        (Point, "{'x': 10 ** 6000}", lambda: Point(LONG)),
        (None, 'double(10 ** 6000)', lambda: 2 * LONG),
        (None, 'echo(10 ** 6000)', lambda: [LONG, {LONG: LONG}]),
        (None, 'given + 1', lambda: LONG + 1),
        (None, '10 ** 300_000', lambda: 10**300_000),
    ],
    ids=range(10),
)
async def test_a_long_integer_is_an_answer_and_is_resumed(kind: Any, code: str, expected: Any) -> None:
    store, shown = MemoryStore(), io.StringIO()
    model = ScriptedModel([block(f'x = {code}\nx'), block('final_answer(x)')])
    options: dict[str, Any] = {'output_type': kind, 'tools': [double, echo], 'journal': store}
    async with Agent(model, hooks=[TerminalView(Console(file=shown), outputs=False)], **options) as agent:
        result = await agent.run('go', run_id='r', variables={'given': LONG, 'list': [LONG]})
    assert result.output == expected()
    assert result.variables == {'given': LONG, 'list': [LONG]}
    async with Agent(ScriptedModel([]), **options) as agent:
        assert (await agent.resume('r')).output == expected()
    rows = [json.loads(line) for line in to_json_lines(await training_rows(await read_run(store, 'r'))).splitlines()]
    assert len(rows) == 2
    assert len(shown.getvalue()) < 6000


async def test_wrong_calls_and_errors_with_long_integers_are_explained() -> None:
    code = 'for call in (lambda: double([10 ** 6000]), lambda: fail(10 ** 6000)):\n    try:\n        call()\n'
    code += '    except Exception as error:\n        print(str(error)[:300])'
    model = ScriptedModel([block(code), block('final_answer(1)')])
    async with Agent(model, tools=[double, fail]) as agent:
        result = await agent.run('go')
    seen = result.steps[0].observation or ''
    assert 'double was not called: invalid arguments' in seen
    assert '10000000000000000000…' in seen
    assert 'Exceeds the limit' not in seen


async def test_an_answer_of_the_wrong_type_shows_its_digits() -> None:
    model = ScriptedModel([block('final_answer(10 ** 6000)'), block("final_answer('x')")])
    async with Agent(model, output_type=str) as agent:
        result = await agent.run('go')
    assert result.output == 'x'
    assert '(6,001 digits)' in (result.steps[0].observation or '')


@pytest.mark.one_protocol
async def test_an_answer_in_words_is_read() -> None:
    async with Agent(ScriptedModel([integer_text(7**7000)]), output_type=int) as agent:
        assert (await agent.run('go')).output == 7**7000


@pytest.mark.one_protocol
async def test_a_function_call_of_the_model_has_long_integers_as_arguments_and_as_result() -> None:
    arguments = f'{{"exponent": 1, "base": {integer_text(LONG)}}}'
    call = FunctionCall(id='1', name='power', arguments=arguments)
    model = ScriptedModel([Reply(calls=(call,), finish='calls'), 'done'], functions=True)
    async with Agent(model, tools=[power], python=False, journal=MemoryStore()) as agent:
        result = await agent.run('go')
    assert result.output == 'done'
    assert '"1000000000' in sent(model, 1)


@pytest.mark.one_protocol
def test_a_long_integer_is_compared_with_a_float() -> None:
    assert not same_answer(LONG, 1.0)
    assert same_answer([LONG], [LONG])
