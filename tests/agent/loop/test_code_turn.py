"""Variables that are given to the code and come back, and the names under which things are kept for it."""

import logging
import time
from collections.abc import Mapping
from typing import Any

import pytest

from habilis.agent import Agent, Bounds
from habilis.agent.loop.final_answer import NAME as FINAL_ANSWER
from habilis.core.errors import AgentError
from habilis.core.limits import Limits
from habilis.models import FunctionCall, Reply, ScriptedModel
from habilis.sandbox.options import SandboxSettings


def block(code: str) -> str:
    return f'```python\n{code}\n```'


def price() -> int:
    """The price."""
    return 3


@pytest.mark.parametrize(
    'name', ['price', FINAL_ANSWER, 'artifacts', 'print', 'class', '__builtins__', 'two words', '', 1, 'ﬁle']
)
async def test_a_variable_that_the_code_could_not_find_or_that_hides_what_it_needs_is_refused(name: Any) -> None:
    async with Agent(ScriptedModel([block('final_answer(1)')]), tools=[price]) as agent:
        with pytest.raises(AgentError, match=r'cannot be the name of a variable.*choose another'):
            await agent.run('go', variables={name: 7})


async def test_a_variable_may_hide_what_only_its_user_needs() -> None:
    given: Mapping[str, object] = {'id': 1, 'input': 2, '_x': 3, 'match': 4}
    async with Agent(ScriptedModel([block('final_answer(id + input + _x + match)')])) as agent:
        result = await agent.run('go', variables=given)
    assert (result.output, result.variables) == (10, given)


@pytest.mark.one_protocol
async def test_an_answer_is_not_lost_because_a_variable_cannot_come_back(caplog: pytest.LogCaptureFixture) -> None:
    code = 'text = "y" * 90_000_000\nmany = [0] * 1_100_000\nsmall += 1\ndel gone\nfinal_answer("A")'
    given: Mapping[str, object] = {'text': 'abc', 'many': [], 'small': 1, 'gone': 0}
    with caplog.at_level(logging.WARNING, 'habilis.agent'):
        async with Agent(ScriptedModel([block(code)])) as agent:
            result = await agent.run('go', variables=given)
    assert (result.output, result.variables) == ('A', {'small': 2})
    assert 'the variable text is not in the result' in caplog.text
    assert 'the variable many is not in the result' in caplog.text
    assert 'gone' not in caplog.text


async def test_large_variables_of_the_code_do_not_keep_those_of_the_user_from_coming_back() -> None:
    async with Agent(ScriptedModel([block('junk = "y" * 90_000_000\nsmall += 1\nfinal_answer("A")')])) as agent:
        result = await agent.run('go', variables={'small': 1})
    assert (result.output, result.variables) == ('A', {'small': 2})


async def test_a_call_that_outlasts_its_cell_is_in_the_record_of_its_step() -> None:
    def hang() -> None:
        """Take long."""
        time.sleep(2.5)

    model = ScriptedModel([block('hang()'), block('final_answer(1)')])
    settings = SandboxSettings(limits=Limits(seconds=0.5))
    async with Agent(model, tools=[hang], sandbox_settings=settings) as agent:
        result = await agent.run('go')
    assert result.output == 1
    assert [[call.tool for call in step.calls] for step in result.steps] == [['hang'], []]
    assert not result.steps[0].calls[0].ok


async def test_what_is_kept_of_a_long_output_overwrites_nothing() -> None:
    one, two = (
        FunctionCall(id=str(number), name='python', arguments=f'{{"code": "print(\'{text}\' * 9000)"}}')
        for number, text in enumerate(('ab ', 'cd '))
    )
    model = ScriptedModel(
        [
            Reply(calls=(one, two), finish='calls'),
            block('output_3 = "mine"\nprint("ef " * 9000)'),
            block('output_3 = "mine"\nprint("ef " * 9000)\nx = 1'),
            block('final_answer([output_1[:2], output_1_2[:2], output_3, output_3_2[:2]])'),
        ],
        functions=True,
    )
    async with Agent(model, observations=Bounds(tokens=50)) as agent:
        result = await agent.run('go')
    assert result.output == ['ab', 'cd', 'mine', 'ef']
    assert 'the whole is in the variable output_3_2' in (result.steps[2].observation or '')
