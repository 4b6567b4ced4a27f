"""Turns and tool calls of an agent, read from records alone."""

import pytest

from habilis.agent import Agent
from habilis.agent.durable.training_rows import training_rows
from habilis.agent.durable.trajectory import read_trajectories, step_count
from habilis.flows import flow
from habilis.journal import Journal, MemoryStore, RunInfo
from habilis.journal.runs import read_run
from habilis.models import ScriptedModel
from habilis.models.contract import FunctionCall, Reply
from tests.agent.durable.recorded import block, record_run

# Turns ----------------------------------------------------------------------------------------------------------------


async def test_a_turn_has_the_reply_its_code_and_its_output() -> None:
    store = await record_run('Now.\n' + block('x = 5\nprint(x)'), block('final_answer(x)'))
    (trajectory,) = await read_trajectories(await read_run(store, 'r'))
    first, second = trajectory.turns
    assert (first.number, first.path, first.code) == (1, 'agent#1/ask#1', 'x = 5\nprint(x)')
    assert first.reply is not None
    assert first.reply.text.startswith('Now.')
    assert first.cells[0].cell.stdout == '5\n'
    assert (second.observation, second.error) == (None, '')
    assert trajectory.result is not None
    assert (trajectory.inputs.task, trajectory.result.output) == ('Do it', 5)
    assert trajectory.usage == trajectory.result.usage


async def test_a_summary_is_not_a_step() -> None:
    store = MemoryStore()
    model = ScriptedModel([block('final_answer(3)'), 'I counted.'])
    async with Agent(model, journal=store, summary='default') as agent:
        await agent.run('Count', run_id='r')
    (trajectory,) = await read_trajectories(await read_run(store, 'r'))
    assert len(trajectory.turns) == 1
    assert trajectory.result is not None
    assert trajectory.result.summary == 'I counted.'


async def test_a_message_of_the_user_belongs_to_the_step_after_it() -> None:
    store = MemoryStore()
    model = ScriptedModel([block('x = 1'), block('final_answer(x)')])
    async with Agent(model, journal=store) as agent:
        stopped = await agent.run('Do it', run_id='r', max_steps=1)
        await agent.resume(stopped.run_id, 'Hurry up')
    (trajectory,) = await read_trajectories(await read_run(store, 'r'))
    assert [turn.user_messages for turn in trajectory.turns] == [(), ('Hurry up',)]
    last = (await training_rows(await read_run(store, 'r')))[-1]
    messages = last['messages']
    assert isinstance(messages, list)
    assert messages[-1] == {'role': 'user', 'content': 'Hurry up'}


async def test_an_agent_in_a_flow_has_a_trajectory() -> None:
    store = MemoryStore()
    agent = Agent(ScriptedModel([block('final_answer(7)')]), name='counter', journal=store)

    @flow
    async def count() -> int:
        return (await agent.run('Count')).unwrap()

    run = await count.start(journal=store, run_id='r')
    assert await run.result() == 7
    await agent.close()
    reading = await read_run(store, 'r')
    (trajectory,) = await read_trajectories(reading)
    assert (trajectory.path, trajectory.inputs.task, len(trajectory.turns)) == ('count#1/counter#1', 'Count', 1)
    assert [row['reward'] for row in await training_rows(reading)] == [1.0]
    assert step_count(reading) == 1


async def test_steps_are_counted_without_reading_values() -> None:
    store = await record_run(block('x = 5'), block('final_answer(x)'))
    assert step_count(await read_run(store, 'r')) == 2


async def test_damaged_values_are_not_an_error() -> None:
    store = MemoryStore()
    journal = await Journal.create(store, RunInfo(run='r', name='agent'))
    await journal.write('opened', 'agent#1', value={'task': 'odd', 'limits': {'steps': -1}, 'history': 3})
    await journal.write('done', 'agent#1/ask#1', value={'text': [], 'usage': 'x'})
    await journal.write('failed', 'agent#1/cell#1', value=None)
    await journal.write('done', 'agent#1', value={'r': 1, 'o': 2})
    await journal.close()
    (trajectory,) = await read_trajectories(await read_run(store, 'r'))
    assert trajectory.inputs.task == 'odd'
    assert len(await training_rows(await read_run(store, 'r'))) == len(trajectory.turns)


# Calls ----------------------------------------------------------------------------------------------------------------


async def calls(store: MemoryStore) -> list[tuple[str, object, str, bool]]:
    (trajectory,) = await read_trajectories(await read_run(store, 'r'))
    found = [call for turn in trajectory.turns for call in turn.calls]
    return [(call.tool, dict(call.arguments or {}), call.decision, call.ok) for call in found]


@pytest.mark.parametrize('last', [block('final_answer(1)'), block('x = 1')], ids=['answered', 'stopped'])
async def test_each_call_has_its_arguments_and_decision(last: str) -> None:
    code = """double(2)
double(2)
for bad in (lambda: double(13), lambda: double('x'), lambda: fail('no')):
    try:
        bad()
    except Exception as error:
        print(error)"""
    store = await record_run(block(code), last, steps=2)
    assert await calls(store) == [
        ('double', {'number': 2}, 'allowed', True),
        ('double', {'number': 2}, 'allowed', True),
        ('double', {'number': 13}, 'denied', False),
        ('double', {'number': 'x'}, 'invalid', False),
        ('fail', {'reason': 'no'}, 'allowed', False),
    ]


@pytest.mark.parametrize('steps', [1, 2], ids=['stopped', 'answered'])
async def test_calls_of_the_model_itself_are_in_the_rows(steps: int) -> None:
    call = FunctionCall(id='c1', name='weather', arguments='{"city": "Oslo"}')
    store = await record_run(Reply(calls=(call,)), 'It is sunny.', functions=True, steps=steps)
    assert await calls(store) == [('weather', {'city': 'Oslo'}, 'allowed', True)]
    first, *_ = await training_rows(await read_run(store, 'r'))
    assert first['reply'] == ''
    if steps == 2:
        messages = (await training_rows(await read_run(store, 'r')))[-1]['messages']
        assert isinstance(messages, list)
        *_, asked, answered = messages
        assert isinstance(asked, dict)
        assert asked['tool_calls'] == [
            {'id': 'c1', 'type': 'function', 'function': {'name': 'weather', 'arguments': '{"city": "Oslo"}'}}
        ]
        assert isinstance(answered, dict)
        assert (answered['role'], answered['tool_call_id'], answered['content']) == ('tool', 'c1', 'sunny in Oslo')


async def test_a_call_of_an_unfinished_cell_is_read_from_its_own_record() -> None:
    store = await record_run(block("print(double(4))\nsend('it')"), 'never said')
    assert await calls(store) == [
        ('double', {'number': 4}, 'allowed', True),
        ('send', {'text': 'it'}, 'waiting', False),
    ]


async def test_calls_of_an_agent_inside_are_its_own_and_not_those_of_the_agent_that_asked_it() -> None:
    store = MemoryStore()

    def price(product: str) -> int:
        return 3

    inner = Agent(ScriptedModel([block("x = price('tea')"), block('final_answer(x)')]), tools=[price], name='inner')

    async def ask(task: str) -> int:
        return (await inner.run(task, output_type=int)).unwrap()

    outer = ScriptedModel([block("y = await ask('How much?')"), block('final_answer(y)')])
    async with Agent(outer, tools=[ask], journal=store) as agent, inner:
        await agent.run('Ask', run_id='r')
    above, below = await read_trajectories(await read_run(store, 'r'))
    assert [call.tool for turn in above.turns for call in turn.calls] == ['ask']
    assert [call.tool for turn in below.turns for call in turn.calls] == ['price']
    assert below.path.startswith(f'{above.turns[0].cell_paths[0]}/ask(')
