"""Agents remember, recall and forget, and keep tasks, across runs."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from habilis import Agent, ScriptedModel
from habilis.agent.memory_tools import memory_tools
from habilis.core.errors import RememberError
from habilis.memory import Memory


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with Memory(tmp_path / 'memory.db', user='ann') as opened:
        yield opened


def tools(memory: Memory, session: str = 'today') -> dict[str, Any]:
    return {tool.name: tool for tool in memory_tools(memory, session).tools}


async def run(memory: Memory, session: str, code: str) -> object:
    """The answer of an agent that runs this code."""
    model = ScriptedModel([f'```python\n{code}\n```'])
    agent = Agent(model, tools=[memory_tools(memory, session)], journal='off')
    return (await agent.run('Use your memory.')).unwrap()


async def test_what_one_run_remembers_another_one_recalls(memory: Memory) -> None:
    turn = await memory.add_turn('monday', 'user', 'My dog is called Quixote.')
    assert await run(memory, 'monday', "final_answer(remember('The dog is called Quixote')[:37])") == (
        'Remembered: The dog is called Quixote'
    )
    assert [fact.source for fact in await memory.facts()] == [turn.id]
    assert (
        await run(memory, 'friday', "final_answer(recall('name of the dog')[0]['text'])") == 'The dog is called Quixote'
    )
    assert await run(memory, 'friday', 'final_answer(recent_conversations())') == []
    assert await run(memory, 'friday', "final_answer(recent_conversations(all_sessions=True)[0]['text'])") == turn.text


async def test_a_task_made_in_one_run_is_listed_and_completed_in_another(memory: Memory) -> None:
    made = await run(memory, 'monday', "final_answer(create_task('Buy milk', due='2030-01-31')['number'])")
    assert made == 1
    assert await run(memory, 'friday', "final_answer(list_tasks()[0]['due'])") == '2030-01-31'
    code = f"update_task({made}, state='completed')\nfinal_answer((list_tasks(), len(list_tasks(all=True))))"
    assert await run(memory, 'friday', code) == ([], 1)


async def test_a_fact_replaces_another_one(memory: Memory) -> None:
    remember = tools(memory)['remember']
    await remember('Lives in Lisbon')
    [old] = await memory.facts()
    assert await remember('Lives in Porto', replaces=old.id)
    [new] = await memory.facts()
    assert new.text == 'Lives in Porto'
    assert await remember('lives in porto.') == f'Remembered: Lives in Porto (id {new.id})'


async def test_a_fact_that_may_replace_another_one_says_how(memory: Memory) -> None:
    remember = tools(memory)['remember']
    await remember('The boat in the harbour is blue')
    [old] = await memory.facts()
    assert f'the same call with replaces={old.id!r}' in str(await remember('The boat in the harbour is red'))
    await remember('The boat in the harbour is red', replaces=old.id)
    assert [one.text for one in await memory.facts()] == ['The boat in the harbour is red']


async def test_recall_takes_a_date_and_a_limit(memory: Memory) -> None:
    for number in range(30):
        await memory.add_turn('old', 'user', f'apple {number}', time=float(number))
    recall = tools(memory)['recall']
    assert len(await recall('apple', limit=1000)) == 20
    assert await recall('apple', since='2000-01-01') == []
    with pytest.raises(RememberError, match='not a date'):
        await recall('apple', since='yesterday')


async def test_forgetting_needs_the_approval_of_a_person(memory: Memory) -> None:
    turn = await memory.add_turn('old', 'user', 'a secret')
    forget = tools(memory)['forget']
    assert forget.options.needs_approval
    assert await forget(turn.id) == 1
    assert await memory.turns() == []
