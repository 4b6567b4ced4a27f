"""The policy of small models: what it adds to the general one."""

from pathlib import Path
from typing import Any

import pytest

from habilis.agent import Agent, RunLimits
from habilis.agent.parsing.repetition import LINES
from habilis.agent.policies.small.policy import MAX_TEMPERATURE, RETRY_TEMPERATURE, TEMPERATURE_RISE
from habilis.core.events import Event
from habilis.models import Reply, ScriptedModel
from habilis.tools import Toolset, tool
from tests.agent.scripts import as_call, block, sent

PRICES = {'tea': 2.5, 'cake': 4.0}


@tool
def price(item: str) -> float:
    """The price of an item."""
    return PRICES[item]


def small(replies: list[Any]) -> ScriptedModel:
    return ScriptedModel(replies, small=True)


def temperatures(model: ScriptedModel) -> list[float | None]:
    assert all(request.options.temperature is None for request in model.requests), "the user's own is never overridden"
    return [request.options.fallback_temperature for request in model.requests]


async def test_the_protocol_and_the_tools_are_repeated_below_the_task() -> None:
    model = small([block('print(price("tea"))'), block('final_answer(price("tea"))')])
    async with Agent(model, tools=[price]) as agent:
        run = await agent.start('What does tea cost?')
        await run.step(can_stop=False)
        await run.step()
    first, second = (request.messages[1].text for request in model.requests)
    assert '- price(item: str) -> float' in first
    assert 'final_answer' not in first
    assert 'calls final_answer(...)' in second


async def test_a_placeholder_is_no_code_and_the_next_reply_is_less_predictable() -> None:
    model = small([block('...'), block('final_answer(sum([1, 2]))')])
    async with Agent(model) as agent:
        result = await agent.run('Add 1 and 2.')
    assert (result.output, result.steps[0].cell) == (3, None)
    assert block('...') not in sent(model, 1)
    assert temperatures(model) == [None, RETRY_TEMPERATURE]


async def test_an_answer_without_any_tool_call_is_questioned_once() -> None:
    made_up = block('final_answer(1.5)')
    model = small([made_up, made_up])
    async with Agent(model, tools=[price]) as agent:
        result = await agent.run('What do 3 teas cost?')
    assert (result.output, len(result.steps)) == (1.5, 2)
    assert 'No tool was called: price.' in sent(model, 1)


async def test_an_answer_without_the_tools_of_the_agent_itself_is_not_questioned(tmp_path: Path) -> None:
    model = small([block('final_answer(1.5)')])
    async with Agent(model, library=tmp_path / 'library', helpers=True) as agent:
        result = await agent.run('What is 3 times 0.5?')
    assert 'make_tool' in model.requests[0].messages[0].text
    assert 'make_tool' not in model.requests[0].messages[-1].text, 'a small model would define or call it'
    assert (result.output, len(result.steps)) == (1.5, 1)


async def test_a_reply_that_is_repeated_and_cannot_be_used_is_followed_by_a_fresh_start() -> None:
    copied = '```python\n1044.0\nNew variables: cost = 1044.0'
    model = small([block('cost = 1044.0\nprint(cost)'), copied, copied, block('final_answer(2.3)')])
    async with Agent(model) as agent:
        assert (await agent.run('What does it cost?')).output == 2.3
    assert copied in sent(model, 2)
    assert copied not in sent(model, 3)
    assert temperatures(model) == [None, None, None, RETRY_TEMPERATURE]


async def test_an_answer_in_words_without_any_tool_call_is_questioned_once() -> None:
    model = small(['It costs 1 euro.', block('final_answer(price("tea"))')])
    async with Agent(model, tools=[price]) as agent:
        assert (await agent.run('What does tea cost?')).output == 2.5


@pytest.mark.parametrize('value', ['0', "''", '[]', '{}', 'None', 'False'])
async def test_after_a_tool_call_no_answer_is_questioned(value: str) -> None:
    model = small([block(f'price("tea")\nfinal_answer({value})')])
    async with Agent(model, tools=[price]) as agent:
        assert len((await agent.run('Anything left?')).steps) == 1


async def test_in_a_talk_words_are_an_answer_and_nothing_is_repeated_below_the_task() -> None:
    words = ['Tea comes from China.', 'It is 2.5 euros.']
    costs = block('final_answer(f"It costs {price(\'tea\')} euros.")')
    model = small([words[0], block('price("tea")'), words[1], costs])
    async with Agent(model, tools=[price], talk=True) as agent:
        assert (await agent.run('Where does tea come from?')).unwrap() == words[0]
        assert (await agent.run('And its price?')).unwrap() == words[1]
        assert (await agent.run('What does it cost?')).unwrap() == 'It costs 2.5 euros.'
    assert model.requests[0].messages[-1].text == 'Where does tea come from?'
    assert 'reply in words alone' in model.requests[0].messages[0].text
    assert 'tell the person in words what was found or done.' in model.requests[2].messages[-1].text


async def test_what_was_imported_for_the_code_is_not_said_to_be_gone_in_the_next_turn() -> None:
    model = small(['Hello.', block('x = Counter("aa")\nfinal_answer("Done.")'), 'You are welcome.'])
    async with Agent(model, talk=True) as agent, agent.conversation() as chat:
        for text in ('Hi.', 'Count.', 'Thanks.'):
            await chat.run(text)
    assert 'gone' not in sent(model, 2)


async def test_a_tool_that_is_switched_off_is_not_asked_for() -> None:
    model = small([block('final_answer(1.5)')])
    async with Agent(model, tools=[Toolset('shop', [price], enabled=False)]) as agent:
        assert len((await agent.run('What do 3 teas cost?')).steps) == 1


async def test_the_same_code_with_the_same_result_is_named_and_ends_nothing() -> None:
    same = block('print("thinking")')
    model = small([same, same, same, block('final_answer(8)')])
    async with Agent(model, output_type=int) as agent:
        assert (await agent.run('How long?')).output == 8
    assert 'same code as before' not in sent(model, 1)
    assert 'same code as before' in sent(model, 2)
    assert temperatures(model) == [None, None, RETRY_TEMPERATURE, RETRY_TEMPERATURE]


async def test_code_that_fails_twice_is_no_longer_seen_and_then_nothing_is() -> None:
    model = small([*(block(f'1 / 0  # try {number}') for number in range(4)), block('final_answer(1)')])
    async with Agent(model) as agent:
        assert (await agent.run('Divide.')).output == 1
    assert '# try 0' in sent(model, 1)
    assert '# try 1' in sent(model, 2), 'the line that failed'
    assert 'ZeroDivisionError' in sent(model, 2)
    assert '# try 0' not in sent(model, 2)
    assert sent(model, 4) == sent(model, 0)


async def test_steps_that_called_a_tool_are_never_forgotten() -> None:
    sent_mails: list[str] = []

    @tool(idempotent=False)
    def send(text: str) -> None:
        """Send a mail."""
        sent_mails.append(text)

    model = small([block('send("hi")\n1 / 0'), block('1 / 0'), block('final_answer("sent")')])
    async with Agent(model, tools=[send]) as agent:
        assert (await agent.run('Send hi.')).output == 'sent'
    assert 'send("hi")' in sent(model, 2)
    assert sent_mails == ['hi']


async def test_what_fails_again_word_for_word_is_asked_for_with_a_rising_temperature() -> None:
    same = block('1 / 0')
    model = small([*([same] * 6), block('final_answer(1)')])
    async with Agent(model) as agent:
        assert (await agent.run('Divide.')).output == 1
    rising = [RETRY_TEMPERATURE + TEMPERATURE_RISE * more for more in range(3)]
    assert temperatures(model) == pytest.approx([None, None, *rising, MAX_TEMPERATURE, MAX_TEMPERATURE])


@pytest.mark.parametrize('functions', [False, True])
async def test_a_copy_of_what_failed_is_not_seen_again_even_where_a_tool_was_called(functions: bool) -> None:
    replies = [block('price("tea")'), *([block('1 / 0')] * 4), block('final_answer(1)')]
    model = ScriptedModel(
        [as_call(Reply(text=text), number) if functions else text for number, text in enumerate(replies)],
        small=True,
        functions=functions,
    )
    async with Agent(model, tools=[price]) as agent:
        assert (await agent.run('Divide.')).output == 1
    seen = [
        ' '.join([message.text, *(call.arguments for call in message.calls)]) for message in model.requests[-1].messages
    ]
    assert sum('1 / 0' in text and 'Error' not in text for text in seen) == 1
    assert any('price(' in text for text in seen[2:])


async def test_code_that_called_a_tool_is_seen_each_time_it_failed() -> None:
    code = 'price("tea")\n1 / 0'
    model = small([*([block(code)] * 3), block('final_answer(1)')])
    async with Agent(model, tools=[price]) as agent:
        assert (await agent.run('Divide.')).output == 1
    assert sum(message.text == block(code) for message in model.requests[-1].messages) == 3


async def test_an_unusable_reply_is_not_piled_up_after_a_tool_call() -> None:
    copied = '```python\n1044.0\nNew variables: cost = 1044.0'
    model = small([block('price("tea")'), copied, copied, copied, block('final_answer(2.5)')])
    async with Agent(model, tools=[price]) as agent:
        assert (await agent.run('What does it cost?')).output == 2.5
    assert sent(model, 4).count(copied) == 1


async def test_a_reply_in_circles_is_stopped_and_not_run() -> None:
    words = 0

    def count(event: Event) -> None:
        nonlocal words
        words += event.kind == 'text'

    circle = '```python\n' + "price('tea')\nprice('cake')\n" * 10 * LINES + '```'
    model = small([circle, block('final_answer(2)'), block('final_answer(2)')])
    async with Agent(model, tools=[price], hooks=[count], limits=RunLimits(steps=3)) as agent:
        result = await agent.run('How long is ab?')
    assert result.output == 2
    assert (result.steps[0].cell, result.steps[0].calls) == (None, ())
    assert 'again and again' in sent(model, 1)
    assert "price('tea')" not in sent(model, 1)
    assert words < 4 * LINES
