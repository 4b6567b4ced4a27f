"""A result: its answer or why there is none, and what is printed of it."""

import pickle

import pytest

from habilis import Agent, HabilisError, Result, ScriptedModel
from habilis.agent.contract import Ended, Step, Waiting
from habilis.core.errors import RunStopped
from habilis.models.contract import Message, Reply, Usage
from habilis.sandbox.contract import Cell, Display, ToolCall
from tests.agent.scripts import block
from tests.cases import each_case

LONG = 'word ' * 100_000


# unwrap ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('output', [42, None, '', []])
def test_unwrap_returns_the_answer_whatever_it_is(output: object) -> None:
    assert Result(output=output, ended='answer', run_id='r').unwrap() is output


def test_unwrap_raises_the_limit_that_was_reached_and_says_how_to_resume() -> None:
    with Agent(ScriptedModel([block('1'), block('final_answer(7)')]), output_type=int) as agent:
        result = agent.run_sync('Count.', max_steps=1)
        assert result.output is None
        with pytest.raises(RunStopped) as caught:
            result.unwrap()
        stopped = caught.value
        assert (stopped.ended, stopped.run_id, stopped.question) == ('max_steps', result.run_id, None)
        assert f"agent.resume('{result.run_id}')" in str(stopped)
        assert f'`habilis runs resume {result.run_id}`' in str(stopped)
        assert agent.resume_sync(stopped.run_id).unwrap() == 7


@pytest.mark.parametrize(
    ('ended', 'call'),
    [
        ('question', "agent.resume('run-1', 'the answer') or `habilis runs resume run-1 --answer TEXT`"),
        ('approval', "agent.answer('run-1', True) or `habilis runs approve`, then agent.resume('run-1')"),
        ('max_cost', "agent.resume('run-1') or `habilis runs resume run-1`"),
    ],
)
def test_the_error_of_unwrap_says_what_to_do(ended: Ended, call: str) -> None:
    question = 'Which colour?' if ended == 'question' else None
    waiting = (Waiting(path='a', question='Send it?', tool='send'),) if ended == 'approval' else ()
    with pytest.raises(HabilisError) as caught:
        Result(output=None, ended=ended, run_id='run-1', question=question, waiting=waiting).unwrap()
    assert call in str(caught.value)
    assert isinstance(caught.value, RunStopped)
    asked = {'question': 'Which colour?', 'approval': 'Send it?'}.get(ended)
    assert caught.value.question == asked
    assert (asked or ended) in str(caught.value)


def test_the_error_of_unwrap_crosses_processes() -> None:
    with pytest.raises(RunStopped) as caught:
        Result(output=None, ended='max_steps', run_id='run-1').unwrap()
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.ended, again.run_id) == (str(caught.value), 'max_steps', 'run-1')


# repr -----------------------------------------------------------------------------------------------------------------

STEP = Step(number=1, reply=Reply(text=LONG), code=LONG, cell=Cell(stdout=LONG), observation=LONG)
MESSAGE = Message(role='user', text=LONG)


def test_a_printed_result_says_output_ending_steps_and_cost() -> None:
    usage = Usage(requests=2, cost=0.00123456)
    result = Result(output={'a': 1}, ended='answer', run_id='run-1', steps=(STEP, STEP), seconds=1.25, usage=usage)
    assert str(result) == (
        "Result(output={'a': 1}, ended='answer', steps=2, seconds=1.2, cost=0.001235, run_id='run-1')"
    )


def test_a_printed_result_without_an_answer_says_why() -> None:
    result = Result(output=None, ended='question', run_id='run-1', question='Which colour?', steps=(STEP,))
    assert repr(result) == ("Result(ended='question', question='Which colour?', steps=1, seconds=0.0, run_id='run-1')")


@each_case(
    'value',
    [
        Result(output=LONG, ended='answer', run_id='r', steps=(STEP,) * 50, messages=(MESSAGE,) * 50),
        Result(output=[{'text': LONG}] * 1000, ended='answer', run_id='r', summary=LONG, variables={'x': LONG}),
        Result(output=10**100_000, ended='answer', run_id='r'),
        STEP,
        MESSAGE,
        Reply(text=LONG, thinking=LONG),
        Cell(value=[LONG] * 1000, text=LONG, stdout=LONG, displays=(Display(mime='image/png', data=b'x' * 10**6),)),
        Display(mime='image/png', data=b'x' * 10**6),
        ToolCall(tool='f', arguments={'text': LONG}, result=LONG, log=(LONG,)),
    ],
)
def test_what_users_print_is_short(value: object) -> None:
    assert len(repr(value)) < 600
    assert '\n' not in repr(value)
    assert repr(value).startswith(f'{type(value).__name__}(')


def test_a_printed_message_has_only_what_is_set() -> None:
    assert repr(Message(role='user', text='Hello')) == "Message(role='user', text='Hello')"
    assert repr(Cell(value=3, text='3', seconds=0.123456)) == "Cell(value=3, text='3', seconds=0.1235)"


async def test_a_printed_agent_says_its_model_its_tools_and_its_output_type() -> None:
    def price(product: str) -> float:
        """Price of a product."""
        return 1.0

    async with Agent(ScriptedModel([block('1')]), tools=[price], output_type=int, name='buyer', journal='off') as agent:
        assert repr(agent) == "Agent('scripted:script', name='buyer', output_type=int, tools=[price])"
        async with await agent.start('Count.') as run:
            await run.step()
            assert repr(run) == f'Run({run.id!r}, steps=1)'
    assert repr(Agent('openai:gpt-4o', journal='off')) == "Agent('openai:gpt-4o')"
    assert repr(Agent(journal='off')) == 'Agent()'
