"""Imports that a policy offers to code: declared in the prompt, recorded, and at the head of an export."""

from collections.abc import Sequence
from typing import Any

from habilis import CodeRules
from habilis.agent import Agent, Result
from habilis.agent.durable.training_rows import training_rows
from habilis.agent.policies.imports import Declared
from habilis.agent.policies.small.policy import IMPORTS
from habilis.journal import MemoryStore
from habilis.journal.runs import read_run
from habilis.models import ScriptedModel

CODE = 'found = Counter("aab")["a"] + math.floor(2.5)'


def block(code: str) -> str:
    return f'```python\n{code}\n```'


async def run(codes: Sequence[str], **options: Any) -> tuple[Result[Any], list[Any]]:
    """The result of a run, and its exported rows."""
    store = MemoryStore()
    async with Agent(ScriptedModel([block(code) for code in codes]), journal=store, **options) as agent:
        result = await agent.run('go')
    return result, await training_rows(await read_run(store, result.run_id))


def system(rows: Sequence[Any]) -> str:
    return rows[0]['messages'][0]['content']


async def test_the_general_policy_imports_nothing() -> None:
    result, rows = await run(['math.sqrt(4)', 'import math\nfinal_answer(math.sqrt(4))'], policy='general')
    assert "NameError: name 'math' is not defined" in str(result.steps[0].observation)
    assert result.output == 2
    assert 'Already imported' not in system(rows)


async def test_the_small_policy_declares_what_it_imports() -> None:
    result, rows = await run([CODE, 'final_answer(found)'], policy='small')
    assert result.output == 4
    assert f'Already imported: {", ".join(IMPORTS)}.' in system(rows)
    assert 'New variables: found = 4\n' in str(result.steps[0].observation)


async def test_the_export_runs_elsewhere() -> None:
    _, rows = await run([CODE, 'final_answer(found)'], policy='small')
    names: dict[str, Any] = {}
    exec('\n'.join([*rows[0]['imports'], rows[0]['code']]), names)
    assert names['found'] == 4


async def test_variables_and_tools_keep_their_names() -> None:
    def gcd() -> str:
        """A tool."""
        return 'tool'

    model = ScriptedModel([block('date = "today"'), block('final_answer([string, gcd(), date])')])
    async with Agent(model, tools=[gcd], policy='small') as agent:
        result = await agent.run('go', variables={'string': 'mine'})
    assert result.output == ['mine', 'tool', 'today']


async def test_a_variable_of_an_earlier_turn_is_not_overwritten() -> None:
    model = ScriptedModel([block('date = 5\nfinal_answer(date)'), block('final_answer(date + len(Counter("ab")))')])
    async with Agent(model, policy='small') as agent, agent.conversation() as chat:
        await chat.run('one')
        assert (await chat.run('two')).output == 7


async def test_imports_that_code_rules_refuse_are_not_offered() -> None:
    rules = CodeRules(imports=('math',))
    result, rows = await run(['final_answer(math.floor(2.5))'], policy='small', code_rules=rules)
    assert result.output == 2
    assert 'Already imported: math, ceil, floor, gcd, sqrt.' in system(rows)


def test_every_import_of_the_small_policy_exists() -> None:
    names: dict[str, object] = {}
    exec('\n'.join(Declared(imports=IMPORTS).statements()), names)
    assert set(IMPORTS) <= set(names)


def test_names_that_are_taken_are_left_out() -> None:
    assert Declared.permitted({'math': 'math', 'date': 'datetime'}, None, taken={'date'}).imports == {'math': 'math'}
