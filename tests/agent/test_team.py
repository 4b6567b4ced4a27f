"""A planner and an implementer on one task."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from habilis.agent.agent import Agent
from habilis.agent.contract import RunLimits
from habilis.agent.team import plan_and_implement
from habilis.core.errors import AgentError, ModelUnavailable
from habilis.models.scripted import ScriptedModel
from habilis.sandbox import Sandbox

PLAN = '1. Multiply 6 by 7.\n2. Give the product.'
TASK = 'What is 6 times 7?'


def code(text: str) -> str:
    """A reply with code."""
    return f'```python\n{text}\n```'


@pytest.fixture
async def shared() -> AsyncGenerator[Sandbox]:
    async with await Sandbox.create(workspace=True) as sandbox:
        yield sandbox


async def test_the_implementer_gets_the_plan_of_the_planner() -> None:
    thinking, working = ScriptedModel([PLAN]), ScriptedModel([code('final_answer(6 * 7)')])
    async with Agent[Any](thinking, python=False) as planner, Agent[int](working, output_type=int) as implementer:
        team = await plan_and_implement(planner, implementer, TASK)
    assert (team.plan, team.output, team.ended) == (PLAN, 42, 'answer')
    told = working.requests[0].messages[-1].text
    assert TASK in told
    assert PLAN in told


async def test_the_code_comes_from_the_plan() -> None:
    def follow(messages: Any) -> str:
        number = messages[-1].text.rpartition('the number ')[2].partition('.')[0]
        return code(f'final_answer({number} * 2)')

    planning, working = ScriptedModel(['1. Take the number 321.\n2. Double it.']), ScriptedModel(follow)
    async with Agent[Any](planning, python=False) as planner, Agent[Any](working) as implementer:
        team = await plan_and_implement(planner, implementer, 'Double the number you like best')
    assert team.implemented is not None
    assert team.implemented.steps[0].code == 'final_answer(321 * 2)'
    assert team.output == 642


async def test_the_planner_is_asked_for_a_plan_and_not_for_the_answer() -> None:
    planning, working = ScriptedModel([PLAN]), ScriptedModel([code('final_answer(6 * 7)')])
    async with Agent[Any](planning, python=False) as planner, Agent[Any](working) as implementer:
        await plan_and_implement(planner, implementer, TASK)
    asked = planning.requests[0].messages[-1].text
    assert 'plan' in asked
    assert TASK in asked
    assert 'final_answer' not in planning.requests[0].messages[0].text


async def test_the_implementer_finds_the_files_and_variables_that_the_planner_left(shared: Sandbox) -> None:
    planning = ScriptedModel(
        [code("open('numbers.txt', 'w').write('3 4 5')\nfactor = 10\nfinal_answer('Sum the numbers; use factor.')")]
    )
    working = ScriptedModel([code("final_answer(factor * sum(map(int, open('numbers.txt').read().split())))")])
    async with Agent[Any](planning, sandbox=shared) as planner, Agent[Any](working, sandbox=shared) as implementer:
        team = await plan_and_implement(planner, implementer, 'Sum what your colleague has left')
    assert (team.plan, team.output) == ('Sum the numbers; use factor.', 120)
    assert await shared.download('numbers.txt') == b'3 4 5'


async def test_usage_and_time_are_those_of_both() -> None:
    planning, working = ScriptedModel([PLAN]), ScriptedModel([code('print(42)'), '42'])
    async with Agent[Any](planning, python=False) as planner, Agent[Any](working) as implementer:
        team = await plan_and_implement(planner, implementer, TASK)
    assert team.implemented is not None
    assert team.usage.requests == 3
    assert team.usage == team.planned.usage + team.implemented.usage
    assert team.seconds == team.planned.seconds + team.implemented.seconds
    assert team.scripted


async def test_a_plan_given_as_a_list_becomes_numbered_lines() -> None:
    planning, working = ScriptedModel([code("final_answer(['read it', 'sum it'])")]), ScriptedModel(['done'])
    async with Agent[Any](planning) as planner, Agent[Any](working) as implementer:
        team = await plan_and_implement(planner, implementer, TASK)
    assert team.plan == '1. read it\n2. sum it'
    assert '1. read it\n2. sum it' in working.requests[0].messages[-1].text


async def test_without_a_plan_nothing_is_implemented() -> None:
    planning, working = ScriptedModel([code('1')] * 5), ScriptedModel(['42'])
    limits = RunLimits(steps=1)
    async with Agent[Any](planning, limits=limits) as planner, Agent[Any](working) as implementer:
        team = await plan_and_implement(planner, implementer, TASK)
    assert (team.ended, team.plan, team.output, team.implemented) == ('max_steps', None, None, None)
    assert team.usage == team.planned.usage
    assert working.requests == []


async def test_an_implementer_that_stops_at_a_limit_says_so() -> None:
    planning, working = ScriptedModel([PLAN]), ScriptedModel([code('x = 1')] * 3)
    limits = RunLimits(steps=2)
    async with Agent[Any](planning, python=False) as planner, Agent[Any](working, limits=limits) as implementer:
        team = await plan_and_implement(planner, implementer, TASK)
    assert (team.ended, team.plan, team.output) == ('max_steps', PLAN, None)


async def test_braces_in_the_task_and_the_plan_stay_as_they_are() -> None:
    planning, working = ScriptedModel(['Replace {task} by {plan} in {x}.']), ScriptedModel(['done'])
    async with Agent[Any](planning, python=False) as planner, Agent[Any](working) as implementer:
        await plan_and_implement(planner, implementer, 'What does f"{plan}{" mean?')
    told = working.requests[0].messages[-1].text
    assert 'What does f"{plan}{" mean?' in told
    assert 'Replace {task} by {plan} in {x}.' in told


async def test_an_error_of_a_model_is_not_swallowed() -> None:
    planning, working = ScriptedModel([PLAN]), ScriptedModel([ModelUnavailable('gone')])
    async with Agent[Any](planning, python=False) as planner, Agent[Any](working) as implementer:
        with pytest.raises(ModelUnavailable, match='gone'):
            await plan_and_implement(planner, implementer, TASK)


@pytest.mark.parametrize('task', ['', ' \n'])
async def test_an_empty_task_is_refused(task: str) -> None:
    planning = ScriptedModel([PLAN])
    async with Agent[Any](planning, python=False) as planner, Agent[Any](ScriptedModel(['x'])) as implementer:
        with pytest.raises(AgentError, match='the task is empty'):
            await plan_and_implement(planner, implementer, task)
    assert planning.requests == []
