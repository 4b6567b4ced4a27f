"""J3: an output validator sends the model back with its message; what it decided is recorded."""

import threading
from dataclasses import dataclass
from typing import Any

import pytest

from habilis import Agent, Context, ModelRetry, ScriptedModel
from habilis.agent.durable.trajectory import read_trajectories
from habilis.agent.events import AnswerRefused
from habilis.agent.loop.turns import MAX_REPAIRS
from habilis.core.errors import AgentError
from habilis.journal import MemoryStore
from habilis.journal.runs import read_run
from habilis.models import FunctionCall, Reply
from tests.agent.durable.cutting import Effects, Scenario, check_all_cuts
from tests.agent.hooks.watching import Seen
from tests.agent.scripts import block, sent

LONDON, ULM = 'final_answer({"name": "London"})', 'final_answer({"name": "Ulm"})'
JOURNALS = pytest.mark.parametrize('journal', ['off', None])


@dataclass
class City:
    """A city."""

    name: str


def not_london(city: City) -> City:
    if city.name == 'London':
        msg = 'choose a smaller city'
        raise ModelRetry(msg)
    return city


@JOURNALS
async def test_a_refused_answer_sends_the_model_back_once_with_the_message(journal: str | None) -> None:
    seen = Seen()
    model = ScriptedModel([block(f'print("hm")\n{LONDON}'), block(ULM)])
    async with Agent(model, output_type=City, output_validators=[not_london], journal=journal) as agent:
        result = await agent.run('Name a city', hooks=[seen])
    assert (result.ended, result.output) == ('answer', City('Ulm'))
    told = 'hm\nThe answer was not accepted: choose a smaller city\nCorrect it, and give the answer again.'
    assert told in sent(model, 1)
    assert told in (result.steps[0].observation or '')
    assert len(model.requests) == 2
    assert [(event.answer, event.reason) for event in seen.of(AnswerRefused)] == [
        (City('London'), 'choose a smaller city')
    ]


@JOURNALS
async def test_an_answer_in_words_is_validated_too_and_may_be_changed(journal: str | None) -> None:
    async with Agent(ScriptedModel(['no', 'yes']), python=False, output_type=str, journal=journal) as agent:

        @agent.output_validator
        async def only_yes(ctx: Context[str], answer: str) -> str:
            if answer != 'yes':
                raise ModelRetry(f'say yes to {ctx.deps}')
            return answer.upper()

        result = await agent.run('go', deps='Ann')
    assert result.output == 'YES'
    assert only_yes.__name__ == 'only_yes'
    assert 'say yes to Ann' in (result.steps[0].observation or '')


async def test_validators_are_called_in_order_off_the_loop() -> None:
    threads: list[bool] = []

    def add_one(number: int) -> int:
        threads.append(threading.current_thread() is threading.main_thread())
        return number + 1

    def as_text(context: Any, number: int) -> str:
        return f'{number}'

    model = ScriptedModel([block('final_answer(1)')])
    async with Agent(model, output_type=int, output_validators=[add_one, as_text]) as agent:
        assert (await agent.run('go')).output == 2, 'what a validator returns is converted to the output type'
    assert threads == [False]


async def test_after_too_many_refusals_the_run_ends_as_invalid_output() -> None:
    def never(answer: object) -> object:
        raise ModelRetry

    model = ScriptedModel([block('final_answer(1)')] * (MAX_REPAIRS + 5))
    async with Agent(model, output_validators=[never]) as agent:
        result = await agent.run('go')
    assert (result.ended, result.output) == ('invalid_output', None)
    assert len(model.requests) == MAX_REPAIRS + 1
    assert 'it did not pass a check' in sent(model, 1)


async def test_the_record_of_a_run_says_why_an_answer_was_refused() -> None:
    store = MemoryStore()
    model = ScriptedModel([block(LONDON), '{"name": "London"}', block('x = 1')])
    async with Agent(model, output_type=City, output_validators=[not_london], journal=store) as agent:
        stopped = await agent.run('go', run_id='r', max_steps=3)
    [trajectory] = await read_trajectories(await read_run(store, 'r'))
    told = [turn.observation for turn in trajectory.turns]
    assert told == [step.observation for step in stopped.steps]
    assert ['choose a smaller city' in (text or '') for text in told] == [True, True, False]


async def test_an_error_of_a_validator_is_named_and_the_run_can_be_resumed() -> None:
    store = MemoryStore()
    is_broken = True

    def check(answer: int) -> int:
        if is_broken:
            raise ZeroDivisionError
        return answer

    model = ScriptedModel([block('final_answer(1)')])
    async with Agent(model, output_validators=[check], journal=store) as agent:
        with pytest.raises(AgentError, match='the output validator check failed: ZeroDivisionError'):
            await agent.run('go', run_id='r')
        is_broken = False
        assert (await agent.resume('r')).output == 1
    assert len(model.requests) == 1


async def test_a_validator_that_forgets_to_return_is_named() -> None:
    def forgets(answer: object) -> None: ...

    for kind, said in ((None, 'returned None: return the answer'), (int, 'returned NoneType, not int')):
        async with Agent(
            ScriptedModel([block('final_answer(1)')]), output_type=kind, output_validators=[forgets]
        ) as agent:
            with pytest.raises(AgentError, match=f'the output validator forgets {said}'):
                await agent.run('go')
    with pytest.raises(TypeError, match='output_validators must be a list of functions'):
        Agent(ScriptedModel([]), output_validators=[1])  # pyright: ignore[reportArgumentType]


@JOURNALS
async def test_every_solution_is_validated_before_the_answers_are_compared(journal: str | None) -> None:
    answers: list[int] = []

    def even(answer: int) -> int:
        answers.append(answer)
        if answer % 2:
            raise ModelRetry('an even number')
        return answer * 10

    replies = [block(f'final_answer({number})') for number in (1, 2, 3, 2)]
    async with Agent(ScriptedModel(replies), output_validators=[even], agree=2, journal=journal) as agent:
        result = await agent.run('go')
    assert answers == [1, 2, 3, 2]
    assert result.output == 20
    assert result.agreement is not None
    assert result.agreement.outputs == (20, 20)


@pytest.mark.one_protocol
async def test_a_refused_answer_among_several_calls_lets_the_next_one_run() -> None:
    sources = [LONDON, ULM, 'final_answer({"name": "Bonn"})']
    calls = [FunctionCall(id=f'c{n}', name='python', arguments=source) for n, source in enumerate(sources)]
    model = ScriptedModel([Reply(calls=tuple(calls), finish='calls')], functions=True)
    async with Agent(model, output_type=City, output_validators=[not_london]) as agent:
        result = await agent.run('go')
    assert result.output == City('Ulm')
    told = [message.text for message in result.messages if message.role == 'tool']
    assert 'choose a smaller city' in told[0]
    assert told[1:] == ['The answer was taken.', 'Not done: the answer was given before.']


def validated(effects: Effects) -> dict[str, Any]:
    def check(ctx: Context[None], city: City) -> City:
        effects.append(f'check {city.name}')
        not_london(city)
        return City(city.name.upper())

    return dict[str, Any](output_validators=[check])


async def test_a_run_truncated_after_any_record_calls_no_validator_again() -> None:
    scenario = Scenario(
        replies=[
            block(LONDON),
            '{"name": "London"}',
            block(ULM),
        ],
        options=validated,
        output_type=City,
    )
    await check_all_cuts(scenario, MemoryStore())
