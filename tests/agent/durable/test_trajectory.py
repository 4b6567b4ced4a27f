"""What an agent did, read from records alone: turns, calls, and rows fit for training."""

import json
from typing import Any

import pytest

from habilis.agent import Agent
from habilis.agent.contract import RunLimits
from habilis.agent.durable.trajectory import as_lines, rows, step_count, stories
from habilis.core import logs
from habilis.flows import flow
from habilis.journal import Journal, MemoryStore, RunInfo
from habilis.journal.runs import read_run, score_run
from habilis.models import ScriptedModel
from habilis.models.contract import FunctionCall, Reply
from habilis.tools import Deny, GateCall, tool


def block(code: str) -> str:
    return f'```python\n{code}\n```'


@tool
def double(number: int) -> int:
    """Twice as much."""
    return 2 * number


@tool
def fail(reason: str) -> None:
    """Never works."""
    raise ValueError(reason)


@tool(side='model')
def weather(city: str) -> str:
    """For the model."""
    return f'sunny in {city}'


@tool(needs_approval=True)
def send(text: str) -> str:
    """Needs somebody."""
    return f'sent {text}'


def no_thirteen(call: GateCall) -> Deny | None:
    return Deny('an unlucky number') if call.arguments.get('number') == 13 else None


async def ran(*replies: str | Reply, functions: bool = False, steps: int = 20, **options: Any) -> MemoryStore:
    store = MemoryStore()
    model = ScriptedModel(list(replies), functions=functions)
    tools = [double, fail, weather, send]
    async with Agent(model, tools=tools, journal=store, gates=[no_thirteen], limits=RunLimits(steps=steps)) as agent:
        await agent.run('Do it', run_id='r', **options)
    return store


# Turns ----------------------------------------------------------------------------------------------------------------


async def test_a_turn_has_the_reply_its_code_and_what_came_of_it() -> None:
    store = await ran('Now.\n' + block('x = 5\nprint(x)'), block('final_answer(x)'))
    (story,) = await stories(await read_run(store, 'r'))
    first, second = story.turns
    assert (first.number, first.path, first.code) == (1, 'agent#1/ask#1', 'x = 5\nprint(x)')
    assert first.reply is not None
    assert first.reply.text.startswith('Now.')
    assert first.cells[0].cell.stdout == '5\n'
    assert (second.observation, second.error) == (None, '')
    assert story.result is not None
    assert (story.inputs.task, story.result.output) == ('Do it', 5)
    assert story.usage == story.result.usage


async def test_a_summary_is_no_step_of_its_own() -> None:
    store = MemoryStore()
    model = ScriptedModel([block('final_answer(3)'), 'I counted.'])
    async with Agent(model, journal=store, summary='default') as agent:
        await agent.run('Count', run_id='r')
    (story,) = await stories(await read_run(store, 'r'))
    assert len(story.turns) == 1
    assert story.result is not None
    assert story.result.summary == 'I counted.'


async def test_what_a_person_said_in_between_belongs_to_the_step_after_it() -> None:
    store = MemoryStore()
    model = ScriptedModel([block('x = 1'), block('final_answer(x)')])
    async with Agent(model, journal=store) as agent:
        stopped = await agent.run('Do it', run_id='r', max_steps=1)
        await agent.resume(stopped.run_id, 'Hurry up')
    (story,) = await stories(await read_run(store, 'r'))
    assert [turn.told for turn in story.turns] == [(), ('Hurry up',)]
    last = (await rows(await read_run(store, 'r')))[-1]
    messages = last['messages']
    assert isinstance(messages, list)
    assert messages[-1] == {'role': 'user', 'content': 'Hurry up'}


async def test_an_agent_inside_a_flow_is_a_story_too() -> None:
    store = MemoryStore()
    agent = Agent(ScriptedModel([block('final_answer(7)')]), name='counter', journal=store)

    @flow
    async def count() -> int:
        return (await agent.run('Count')).output

    run = await count.start(journal=store, run_id='r')
    assert await run.result() == 7
    await agent.close()
    reading = await read_run(store, 'r')
    (story,) = await stories(reading)
    assert (story.path, story.inputs.task, len(story.turns)) == ('count#1/counter#1', 'Count', 1)
    assert [row['reward'] for row in await rows(reading)] == [1.0]
    assert step_count(reading) == 1


async def test_steps_are_counted_without_reading_values() -> None:
    store = await ran(block('x = 5'), block('final_answer(x)'))
    assert step_count(await read_run(store, 'r')) == 2


async def test_records_of_nobody_knows_what_are_no_error() -> None:
    store = MemoryStore()
    journal = await Journal.create(store, RunInfo(run='r', name='agent'))
    await journal.write('opened', 'agent#1', value={'task': 'odd', 'limits': {'steps': -1}, 'history': 3})
    await journal.write('done', 'agent#1/ask#1', value={'text': [], 'usage': 'x'})
    await journal.write('failed', 'agent#1/cell#1', value=None)
    await journal.write('done', 'agent#1', value={'r': 1, 'o': 2})
    await journal.close()
    (story,) = await stories(await read_run(store, 'r'))
    assert story.inputs.task == 'odd'
    assert len(await rows(await read_run(store, 'r'))) == len(story.turns)


# Calls ----------------------------------------------------------------------------------------------------------------


async def calls(store: MemoryStore) -> list[tuple[str, object, str, bool]]:
    (story,) = await stories(await read_run(store, 'r'))
    found = [call for turn in story.turns for call in turn.calls]
    return [(call.name, dict(call.arguments or {}), call.decision, call.ok) for call in found]


@pytest.mark.parametrize('last', [block('final_answer(1)'), block('x = 1')], ids=['answered', 'stopped'])
async def test_each_call_has_its_arguments_and_decision(last: str) -> None:
    code = """double(2)
double(2)
for bad in (lambda: double(13), lambda: double('x'), lambda: fail('no')):
    try:
        bad()
    except Exception as error:
        print(error)"""
    store = await ran(block(code), last, steps=2)
    assert await calls(store) == [
        ('double', {'number': 2}, 'allowed', True),
        ('double', {'number': 2}, 'allowed', True),
        ('double', {'number': 13}, 'denied', False),
        ('double', {'number': 'x'}, 'invalid', False),
        ('fail', {'reason': 'no'}, 'allowed', False),
    ]


@pytest.mark.parametrize('steps', [1, 2], ids=['stopped', 'answered'])
async def test_calls_of_the_model_itself_have_rows_too(steps: int) -> None:
    call = FunctionCall(id='c1', name='weather', arguments='{"city": "Oslo"}')
    store = await ran(Reply(calls=(call,)), 'It is sunny.', functions=True, steps=steps)
    assert await calls(store) == [('weather', {'city': 'Oslo'}, 'allowed', True)]
    first, *_ = await rows(await read_run(store, 'r'))
    assert first['reply'] == ''
    if steps == 2:
        messages = (await rows(await read_run(store, 'r')))[-1]['messages']
        assert isinstance(messages, list)
        *_, asked, answered = messages
        assert isinstance(asked, dict)
        assert asked['tool_calls'] == [
            {'id': 'c1', 'type': 'function', 'function': {'name': 'weather', 'arguments': '{"city": "Oslo"}'}}
        ]
        assert isinstance(answered, dict)
        assert (answered['role'], answered['tool_call_id'], answered['content']) == ('tool', 'c1', 'sunny in Oslo')


async def test_a_call_of_a_cell_that_has_not_ended_is_known_by_its_own_record() -> None:
    store = await ran(block("print(double(4))\nsend('it')"), 'never said')
    assert await calls(store) == [
        ('double', {'number': 4}, 'allowed', True),
        ('send', {'text': 'it'}, 'waiting', False),
    ]


# Rows -----------------------------------------------------------------------------------------------------------------


async def test_rows_are_json_and_the_same_each_time() -> None:
    store = await ran(block('x = double(2)\nprint(x, b"a")'), block('final_answer(x)'), variables={'given': (1, 2)})
    reading = await read_run(store, 'r')
    text = as_lines(await rows(reading))
    assert text == as_lines(await rows(await read_run(store, 'r')))
    parsed = [json.loads(line) for line in text.splitlines()]
    assert [(row['step'], row['reward']) for row in parsed] == [(1, None), (2, 1.0)]
    assert parsed[0]['calls'][0]['tool'] == 'double'


async def test_a_score_is_the_reward() -> None:
    store = await ran(block('x = 1'), steps=1)
    assert [row['reward'] for row in await rows(await read_run(store, 'r'))] == [0.0]
    await score_run(store, 'r', -0.5)
    assert [row['reward'] for row in await rows(await read_run(store, 'r'))] == [-0.5]


async def test_secrets_are_nowhere_in_the_rows() -> None:
    logs.hide(['correct horse battery'])
    store = await ran(block("d = {'correct horse battery': 'sk-12345678abcdef'}\nprint(d)\nfinal_answer(d)"))
    text = as_lines(await rows(await read_run(store, 'r')))
    assert 'correct horse' not in text
    assert 'sk-12345678abcdef' not in text


async def test_a_run_without_steps_has_no_rows() -> None:
    store = MemoryStore()
    await store.create(RunInfo(run='r', name='agent'))
    assert await rows(await read_run(store, 'r')) == []
