"""What type checkers know about an agent's output, its result and its events. `make check` checks this file."""

from dataclasses import dataclass
from typing import Any, assert_type

from habilis import Agent, Result, ScriptedModel
from habilis.agent.events import AgentEvent, AnswerEvent, CodeEvent, RunFinished, StreamEvent, TextEvent
from habilis.models.contract import Delta
from tests.agent.scripts import block


@dataclass
class City:
    """An output type."""

    name: str
    inhabitants: int


PARIS = City(name='Paris', inhabitants=2_100_000)
REPLY = block("final_answer({'name': 'Paris', 'inhabitants': 2_100_000})")


def city_agent() -> Agent[City]:
    """An agent whose answer is a city."""
    return Agent(ScriptedModel([REPLY]), output_type=City, journal='off')


async def test_the_output_may_be_none_and_unwrap_has_the_type() -> None:
    async with city_agent() as agent:
        assert_type(agent, Agent[City])
        result = await agent.run('The largest city of France?')
    assert_type(result, Result[City])
    assert_type(result.output, City | None)
    assert_type(result.unwrap(), City)
    assert result.unwrap() == PARIS


def test_without_an_output_type_anything_may_be_the_answer() -> None:
    with Agent(ScriptedModel([REPLY]), journal='off') as agent:
        result = agent.run_sync('The largest city of France?')
    assert_type(result.unwrap(), Any)
    assert result.unwrap()['name'] == 'Paris'


async def test_a_stream_has_events_with_typed_fields_and_ends_with_the_typed_result() -> None:
    cities: list[City] = []
    async with city_agent() as agent:
        async for event in agent.stream('The largest city of France?'):
            assert_type(event, StreamEvent[City])
            match event:
                case TextEvent():
                    assert_type(event.delta, Delta)
                case AnswerEvent():
                    cities.append(assert_type(event.answer, City))
                case RunFinished(result=result):
                    assert_type(result, Result[City])
                    cities.append(result.unwrap())
                case _:
                    pass
    assert cities == [PARIS, PARIS]


async def test_the_kind_of_an_event_names_its_class() -> None:
    seen: list[str] = []
    async with city_agent() as agent:
        async for event in agent.stream('The largest city of France?'):
            if event.kind == 'text':
                assert_type(event, TextEvent)
            elif event.kind == 'run_finished':
                assert_type(event, RunFinished[City])
                seen.append(event.result.unwrap().name)
            match event.kind:
                case 'code':
                    assert_type(event, CodeEvent)
                    seen.append(event.code)
                case _:
                    pass
    assert seen == ["final_answer({'name': 'Paris', 'inhabitants': 2_100_000})", 'Paris']


async def test_events_of_a_typed_stream_can_be_given_to_any_hook() -> None:
    seen: list[str] = []

    def hook(event: AgentEvent) -> None:
        seen.append(event.kind)

    async with city_agent() as agent:
        async for event in agent.stream('The largest city of France?'):
            hook(event)
    assert (seen[0], seen[-1]) == ('run_started', 'run_finished')


def test_a_result_of_a_city_is_a_result_of_an_object() -> None:
    def show(result: Result[object]) -> str:
        return repr(result.output)

    assert show(Result(output=PARIS, ended='answer', run_id='r')) == repr(PARIS)


def test_a_result_read_from_json_has_the_type_that_was_given() -> None:
    text = Result(output=PARIS, ended='answer', run_id='r').to_json()
    assert_type(Result.from_json(text, output_type=City), Result[City])
    assert_type(Result.from_json(text), Result[Any])
    assert Result.from_json(text, output_type=City).unwrap() == PARIS
