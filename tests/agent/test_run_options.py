"""Options of a single run: its own tools and output type, and a run that is started or resumed by its name."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_type

import pytest

from habilis import Agent, CodeRules, ModelConfig, Result, ScriptedModel
from habilis.core.errors import AgentError, ModelUnavailable, PackageError
from tests.agent.scripts import block
from tests.sandbox.packages.test_installation import make_wheel


@dataclass
class City:
    """A city."""

    name: str
    people: int


def price(product: str) -> float:
    """Price of a product."""
    return {'tea': 3.0}[product]


async def test_a_run_has_its_own_output_type() -> None:
    replies = [block('final_answer({"name": "Bern", "people": 134000})'), block('final_answer("7")')] * 2
    async with Agent(ScriptedModel(replies), output_type=int) as agent:
        city = assert_type(await agent.run('Which city?', output_type=City), Result[City])
        assert city.output == City('Bern', 134000)
        number = assert_type(await agent.run('How many?'), Result[int])
        assert number.output == 7
        assert (await agent.run('Which city?', output_type=City | None)).output == City('Bern', 134000)


async def test_a_run_has_its_own_tools_beside_the_agents() -> None:
    def amount(product: str) -> int:
        """How many of a product."""
        return len(product)

    model = ScriptedModel([block('final_answer(price("tea") * amount("tea"))'), block('amount("tea")'), block('1')])
    async with Agent(model, tools=[price]) as agent:
        assert (await agent.run('go', tools=[amount])).output == 9
        await agent.run('again', max_steps=1)
    assert 'def amount' in model.requests[0].messages[0].text
    assert 'def amount' not in model.requests[1].messages[0].text


async def test_a_resume_asks_for_what_the_run_had_of_its_own(tmp_path: Path) -> None:
    journal = tmp_path / 'runs.db'
    async with Agent(ScriptedModel([block('total = price("tea")')]), journal=journal) as agent:
        stopped = await agent.run('go', tools=[price], output_type=float, max_steps=1, run_id='a')
    assert stopped.ended == 'max_steps'
    async with Agent(ScriptedModel([block('final_answer(total + price("tea"))')]), journal=journal) as agent:
        with pytest.raises(AgentError, match=r'pass them again: resume\(…, tools=\[price\]\)'):
            await agent.resume('a')
        with pytest.raises(AgentError, match=r'pass it again: resume\(…, output_type=float\)'):
            await agent.resume('a', tools=[price])
        assert (await agent.resume('a', tools=[price], output_type=float)).output == 6.0


async def test_a_run_is_started_or_resumed_by_its_name(tmp_path: Path) -> None:
    journal = tmp_path / 'runs.db'
    options: dict[str, Any] = {'run_id': 'nightly', 'resume': True}
    async with Agent(ScriptedModel([block('x = 20')]), journal=journal) as agent:
        assert (await agent.run('Add', max_steps=1, **options)).ended == 'max_steps'
    async with Agent(ScriptedModel([block('final_answer(x + 1)')]), journal=journal) as agent:
        assert (await agent.run('Add', **options)).output == 21
    async with Agent(ScriptedModel([]), journal=journal) as agent:
        assert (await agent.run('Add', **options)).output == 21
        with pytest.raises(AgentError, match="run 'nightly' was started with another task: 'Add'"):
            await agent.run('Subtract', **options)
        assert [event async for event in agent.stream('Add', **options)] == []


async def test_without_a_journal_a_named_run_is_started() -> None:
    async with Agent(ScriptedModel([block('final_answer(1)')]), journal='off') as agent:
        assert (await agent.run('go', run_id='a', resume=True)).output == 1


async def test_settings_of_the_model_reach_it() -> None:
    async with Agent('openai:gpt-5', model_settings={'base_url': 'http://127.0.0.1:1/v1', 'retries': 0}) as agent:
        with pytest.raises(ModelUnavailable, match=r'127\.0\.0\.1:1'):
            await agent.run('go')


@pytest.mark.parametrize('model', [ScriptedModel([]), ModelConfig(model='openai:gpt-5')])
def test_settings_are_refused_for_a_model_that_is_already_made(model: Any) -> None:
    with pytest.raises(AgentError, match='model_settings are for a model given by its name'):
        Agent(model, model_settings={'temperature': 0.1})


@pytest.mark.skipif(sys.platform != 'linux', reason='needs the process backend')
async def test_packages_with_native_code_choose_the_sandbox_that_runs_them(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, 'native', 'WORD = "hello"\n', more={'native_inner/fast.so': 'ELF'})
    code = block('import native\nfinal_answer(native.WORD)')
    async with Agent(ScriptedModel([code]), packages=[wheel]) as agent:
        assert (await agent.run('Do it')).output == 'hello'
    async with Agent(ScriptedModel([code]), packages=[wheel], sandbox='wasm') as agent:
        with pytest.raises(PackageError, match='process'):
            await agent.run('Do it')


async def test_code_rules_network_and_packages_reach_the_sandbox(tmp_path: Path) -> None:
    (tmp_path / 'small_module.py').write_text('value = 3')
    code = block('import small_module\nfinal_answer(small_module.value)')
    async with Agent(ScriptedModel([code]), packages=[tmp_path]) as agent:
        assert (await agent.run('go')).output == 3
    refused = block('import os')
    async with Agent(ScriptedModel([refused]), code_rules=CodeRules(imports=('math',))) as agent:
        result = await agent.run('go', max_steps=1)
    assert 'os' in (result.steps[0].observation or '')
