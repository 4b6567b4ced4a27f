"""What the loop does for small models: they copy, invent, and go in circles."""

import pytest

from habilis.agent import Agent, RunLimits
from habilis.agent.parsing.repetition import LINES
from habilis.core.events import Event
from habilis.models import ScriptedModel
from habilis.tools import Toolset, tool
from tests.agent.loop.test_run import block, sent

PRICES = {'tea': 2.5, 'cake': 4.0}


@tool
def price(item: str) -> float:
    """The price of an item."""
    return PRICES[item]


async def test_a_placeholder_is_no_code_and_the_next_reply_is_less_predictable() -> None:
    model = ScriptedModel([block('...'), block('final_answer(sum([1, 2]))')])
    async with Agent(model) as agent:
        result = await agent.run('Add 1 and 2.')
    assert result.output == 3
    assert result.steps[0].cell is None
    assert block('...') not in sent(model, 1)
    assert [request.options.temperature is None for request in model.requests] == [True, False]


@pytest.mark.parametrize('line', ['from price import price', 'import price', 'price = lambda item: 1.0'])
async def test_a_tool_that_is_imported_or_written_over_is_called_all_the_same(line: str) -> None:
    model = ScriptedModel([block(f"{line}\nfinal_answer(price('tea'))")])
    async with Agent(model, tools=[price]) as agent:
        assert (await agent.run('What does tea cost?')).output == 2.5


async def test_a_tool_that_has_to_be_used_is_asked_for_three_times() -> None:
    made_up = block('total = 3 * 0.5\nfinal_answer(total)')
    model = ScriptedModel([made_up] * 4)
    async with Agent(model, tools=[price]) as agent:
        result = await agent.run('What do 3 teas cost? Use the tool price.')
    assert (result.output, len(result.steps)) == (1.5, 4)
    assert 'price(item: str) -> float' in sent(model, 3)


async def test_what_was_done_before_it_started_over_need_not_be_done_again() -> None:
    failing = block("price('tea')\nprice('tee')")
    model = ScriptedModel([failing, failing, block('final_answer(cost)')])
    async with Agent(model, tools=[price]) as agent:
        result = await agent.run('What does tea cost? Use the tool price.', variables={'cost': 2.5})
    assert (result.output, len(result.steps)) == (2.5, 3)


async def test_a_tool_that_is_switched_off_is_not_asked_for() -> None:
    model = ScriptedModel([block('total = 3 * 0.5\nfinal_answer(total)')])
    async with Agent(model, tools=[Toolset('shop', [price], enabled=False)]) as agent:
        assert (await agent.run('What do 3 teas cost? Use the tool price.')).output == 1.5


async def test_a_detail_is_mended_with_the_code_in_sight() -> None:
    model = ScriptedModel([block("names = ['b', 'a']\nfinal_answer(names)"), block('final_answer(sorted(names))')])
    async with Agent(model) as agent:
        result = await agent.run('Give the names in alphabetical order.')
    assert result.output == ['a', 'b']
    assert "names = ['b', 'a']" in str(model.requests[1].messages)
    assert model.requests[1].options.temperature is None


async def test_a_wrong_way_is_left_and_its_code_is_out_of_sight() -> None:
    model = ScriptedModel([block('count = 0\nfinal_answer(count)'), block('final_answer(sum([1, 2]))')])
    async with Agent(model) as agent:
        assert (await agent.run('How many are there?')).output == 3
    assert 'count = 0' not in str(model.requests[1].messages)
    assert model.requests[1].options.temperature is not None


async def test_who_repeats_what_is_no_answer_is_asked_to_be_less_predictable() -> None:
    same = block('print("thinking")')
    model = ScriptedModel([same, same, block('final_answer(len("thinking"))')])
    async with Agent(model, output_type=int) as agent:
        assert (await agent.run('How long?')).output == 8
    assert [request.options.temperature is None for request in model.requests] == [True, True, False]


async def test_what_a_tool_refuses_is_said_with_its_name_and_arguments() -> None:
    model = ScriptedModel([block("print(price('tee'))"), block("final_answer(price('tea'))")])
    async with Agent(model, tools=[price]) as agent:
        assert (await agent.run('What does tea cost?')).output == 2.5
    assert "The tool price cannot be called with 'tee': call it" in sent(model, 1)


@pytest.mark.parametrize(
    ('task', 'answer'),
    [('Which of the two is the dearer one?', 'cake'), ('Give the higher price as a string.', '4.0')],
)
async def test_a_number_in_place_of_a_name_is_doubted(task: str, answer: str) -> None:
    code = 'final_answer(max(price(item) for item in ["tea", "cake"]))'
    model = ScriptedModel(
        [
            block(code),
            block(code.replace('(max', '(str(max') + ')'),
            block("final_answer(max(['tea', 'cake'], key=price))"),
        ]
    )
    async with Agent(model, tools=[price], output_type=str) as agent:
        assert (await agent.run(task)).output == answer


async def test_who_copies_even_the_line_that_failed_starts_from_nothing() -> None:
    bad = block("price('tee')")
    model = ScriptedModel([bad, bad, bad, bad, block("final_answer(price('tea'))")])
    async with Agent(model, tools=[price]) as agent:
        assert (await agent.run('What does tea cost?')).output == 2.5
    first, *_, third, _, fifth = (request.messages for request in model.requests)
    assert "price('tee')" in str(third)
    assert [message.text for message in fifth] == [message.text for message in first]


async def test_what_is_said_of_a_refused_call_is_short_and_only_about_arguments() -> None:
    @tool
    def fail(kind: str, text: str) -> None:
        """Fail."""
        raise {'value': ValueError, 'connection': ConnectionError}[kind](kind)

    model = ScriptedModel(
        [block(f"fail('{kind}', 'x' * 100_000)") for kind in ('value', 'connection')]
        + [block('final_answer(len("ab"))')]
    )
    async with Agent(model, tools=[fail]) as agent:
        await agent.run('How long is ab?')
    assert 'The tool fail cannot' in sent(model, 1)
    assert len(sent(model, 1)) < 2000
    assert 'The tool fail cannot' not in sent(model, 2)


async def test_a_reply_in_circles_is_cut_off_and_not_run() -> None:
    words = 0

    def count(event: Event) -> None:
        nonlocal words
        words += event.kind == 'text'

    circle = '```python\n' + "price('tea')\nprice('cake')\n" * 10 * LINES + '```'
    model = ScriptedModel([circle, block('final_answer(len("ab"))')])
    async with Agent(model, tools=[price], hooks=[count], limits=RunLimits(steps=2)) as agent:
        result = await agent.run('How long is ab?')
    assert result.output == 2
    assert (result.steps[0].cell, result.steps[0].calls) == (None, ())
    assert 'again and again' in sent(model, 1)
    assert "price('tea')" not in sent(model, 1)
    assert words < 4 * LINES


TABLE = 'day,units\n' + ''.join(f'2024-02-0{day},{day}\n' for day in range(1, 8))


def typed(table: str) -> str:
    return block(f'import csv, io\ntable = """{table}"""\nfinal_answer(len(list(csv.DictReader(io.StringIO(table)))))')


async def test_a_table_that_is_in_a_variable_is_not_written_again_until_somebody_insists() -> None:
    model = ScriptedModel([typed(TABLE), block("final_answer(sum(row['units'] for row in rows))")])
    async with Agent(model) as agent:
        result = await agent.run(f'A table:\n{TABLE}\nHow many units were sold altogether?')
    assert (result.output, len(result.steps), result.steps[0].cell) == (28, 2, None)
    assert "rows (list, 7 items): each such as {'day': '2024-02-01', 'units': 1}" in sent(model, 0)
    assert 'it is already there, in the variable rows' in sent(model, 1)
    assert 'import csv' not in sent(model, 1)
    model = ScriptedModel([typed(TABLE)] * 3)
    async with Agent(model) as agent:
        result = await agent.run(f'A table:\n{TABLE}\nHow many rows are there?')
    assert (result.output, len(result.steps)) == (7, 3)


async def test_a_short_table_may_be_written_again() -> None:
    short = '\n'.join(TABLE.split('\n')[:4]) + '\n'
    model = ScriptedModel([typed(short)])
    async with Agent(model) as agent:
        result = await agent.run(f'A table:\n{short}\nHow many rows are there?')
    assert (result.output, len(result.steps)) == (3, 1)


async def test_the_variables_of_the_user_come_before_those_of_a_table() -> None:
    model = ScriptedModel([block('final_answer([rows, table])')])
    async with Agent(model) as agent:
        result = await agent.run(f'A table:\n{TABLE}\nWhat is there?', variables={'rows': 1, 'table': 2})
    assert result.output == [1, 2]
    assert '- table = 2' in sent(model, 0)
