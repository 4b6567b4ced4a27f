"""Tools are names like builtins, and the model is told what became of its names (row K5)."""

import pytest

from habilis.agent import Agent
from habilis.models import ScriptedModel
from habilis.tools import tool
from tests.agent.scripts import block, sent


def invoices() -> list[int]:
    """The open invoices."""
    return [3, 4, 5]


@pytest.mark.parametrize('policy', ['general', 'small'])
async def test_a_variable_with_the_name_of_a_tool_hides_it_and_the_model_is_told_once(policy: str) -> None:
    model = ScriptedModel(
        [
            block('invoices = invoices()\nprint(len(invoices))'),
            block('invoices = [n + 1 for n in invoices]\nprint(sum(tools.invoices()))'),
            block('del invoices\nfinal_answer(invoices())'),
        ]
    )
    async with Agent(model, tools=[invoices], policy=policy) as agent:
        result = await agent.run('go')
    assert result.output == [3, 4, 5]
    assert 'New variables: invoices = [3, 4, 5]\n`invoices` is now your list; the tool is `tools.invoices`.' in sent(
        model, 1
    )
    assert sent(model, 2).count('is now your') == 1
    assert 'Output:\n12' in sent(model, 2)


async def test_where_tools_is_a_variable_too_the_model_is_told_how_to_get_a_tool_back() -> None:
    model = ScriptedModel([block('tools = 1\ninvoices = invoices()'), block('final_answer(1)')])
    async with Agent(model, tools=[invoices]) as agent:
        await agent.run('go')
    assert '`invoices` is now your list; `del invoices` brings the tool back.' in sent(model, 1)


async def test_a_hiding_variable_is_restored_when_a_run_is_resumed(tmp_path: object) -> None:
    first = ScriptedModel([block('invoices = invoices()[:1]')])
    async with Agent(first, tools=[invoices], journal=f'{tmp_path}/runs.db') as agent:
        run = await agent.run('go', max_steps=1)
        second = ScriptedModel([block('final_answer((invoices, tools.invoices()))')])
    async with Agent(second, tools=[invoices], journal=f'{tmp_path}/runs.db') as agent:
        result = await agent.resume(run.run_id or '')
    assert result.output == ([3], [3, 4, 5])


async def test_the_name_of_the_answer_stays_reserved() -> None:
    model = ScriptedModel([block('final_answer = 3'), block('final_answer(4)')])
    async with Agent(model) as agent:
        result = await agent.run('go')
    assert result.output == 4
    assert "cannot assign to 'final_answer': it is a tool" in sent(model, 1)


async def test_the_import_of_a_tool_is_answered_with_the_advice_to_leave_it_out() -> None:
    model = ScriptedModel([block('from functions import invoices'), block('final_answer(1)')])
    async with Agent(model, tools=[invoices]) as agent:
        await agent.run('go')
    assert 'invoices can be used without an import: leave it out.' in sent(model, 1)


async def test_a_function_of_a_module_may_have_the_name_of_a_tool() -> None:
    @tool
    def sqrt(x: float) -> float:
        """Something else."""
        return 0.0

    model = ScriptedModel([block('from math import sqrt\nfinal_answer((sqrt(4), tools.sqrt(4)))')])
    async with Agent(model, tools=[sqrt]) as agent:
        result = await agent.run('go')
    assert result.output == (2.0, 0.0)
