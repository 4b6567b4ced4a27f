"""A mistake in what an agent or a run is given is named at once, and nothing is begun."""

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import habilis
from habilis.agent import Agent, Bounds, Result, RunLimits
from habilis.agent.run_spec import RUN_OPTIONS
from habilis.agent.team import plan_and_implement
from habilis.core.wrong_names import WRONG_NAMES
from habilis.models import ScriptedModel
from habilis.tools import Toolset
from tests.agent.scripts import block
from tests.cases import each_case

Call = Callable[[Agent[Any], dict[str, Any]], Coroutine[Any, Any, object]]


async def _streamed(agent: Agent[Any], options: dict[str, Any]) -> object:
    return [event async for event in agent.stream('go', **options)]


async def _sync(agent: Agent[Any], options: dict[str, Any]) -> object:
    return agent.run_sync('go', **options)


WAYS: dict[str, Call] = {
    'run': lambda agent, options: agent.run('go', **options),
    'start': lambda agent, options: agent.start('go', **options),
    'stream': _streamed,
    'run_sync': _sync,
}


@pytest.mark.parametrize('way', WAYS)
@pytest.mark.parametrize(
    ('option', 'message'),
    [
        ('max_turns', r"a run has no option 'max_turns': pass max_steps=… to run\(…\)"),
        ('max_step', "did you mean 'max_steps'?"),
        ('variable', "did you mean 'variables'?"),
        ('workspace', r"no option 'workspace': it is an option of Agent\(…\)"),
        ('temperature', r"pass Agent\(model_settings=\{'temperature': …\}\)"),
        ('images', r"run\(\['…', Image\('a.png'\)\]\)"),
        ('message_history', 'pass history=…'),
        ('tokens', r'pass limits=RunLimits\(tokens=…\)'),
        ('max_seconds', r'pass limits=RunLimits\(seconds=…\)'),
        ('xyz', 'it has output_type, tools, deps, limits, max_steps, hooks, variables'),
    ],
)
async def test_an_option_that_a_run_does_not_have_is_refused(way: str, option: str, message: str) -> None:
    model = ScriptedModel([block('final_answer(1)')])
    async with Agent(model) as agent:
        with pytest.raises(TypeError, match=message):
            await WAYS[way](agent, {option: 1})
    assert not model.requests


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ({'artifacts': {'a.txt': 5}}, 'a run: artifacts must be a dict of texts by name, not'),
        ({'artifacts': {'a.txt': b'x'}}, 'artifacts must be'),
        ({'artifacts': 'x'}, 'artifacts must be'),
        ({'limits': {'steps': 1}}, r"limits must be `RunLimits\(…\)`, not \{'steps': 1\} \(dict\)"),
        ({'history': 'x'}, 'history must be a list of messages'),
        ({'history': ['hello']}, 'history must be a list of messages'),
        ({'variables': [1]}, 'variables must be a dict'),
        ({'hooks': print}, 'hooks must be a list of functions'),
        ({'user': 7}, 'user must be text, not 7'),
        ({'tools': ['search']}, 'tools must be a list of functions, toolsets and agents, not'),
        ({'hooks': [1]}, 'hooks must be a list of functions'),
        ({'resume': True}, 'resume=True needs the name of the run'),
    ],
)
async def test_an_option_of_another_kind_is_refused(options: dict[str, Any], message: str) -> None:
    async with Agent(ScriptedModel([block('final_answer(1)')])) as agent:
        with pytest.raises(TypeError, match=message):
            await agent.run('go', **options)


async def test_options_that_are_none_are_as_if_they_were_not_given() -> None:
    names = [name for name in RUN_OPTIONS if name != 'resume']
    nothing: dict[str, Any] = dict.fromkeys(names)
    async with Agent(ScriptedModel([block('final_answer("ok")')] * 2)) as agent:
        assert (await agent.run('go', **nothing)).output == 'ok'
        assert [event async for event in agent.stream('go', **nothing)][-1].kind == 'run_finished'


@pytest.mark.parametrize('task', [None, 5, b'go'])
async def test_a_task_is_text(task: Any) -> None:
    async with Agent(ScriptedModel(['x'])) as agent:
        with pytest.raises(TypeError, match='the task must be text, not'):
            await agent.run(task)
        with pytest.raises(TypeError, match='the task must be text, not'):
            await plan_and_implement(agent, agent, task)


@each_case(
    ('model', 'options', 'message'),
    [
        (5, {}, 'Agent: model must be a name such as `provider:model`'),
        (None, {'max_steps': 3}, r"Agent has no option 'max_steps': pass limits=RunLimits\(steps=…\)"),
        (None, {'variables': {}}, r'it is an option of run\(…\)'),
        (None, {'tool': []}, "did you mean 'tools'?"),
        (None, {'tools': Toolset}, 'tools must be a list of functions'),
        (None, {'tools': [1]}, r'tools must be a list of functions, toolsets and agents, not \[1\]'),
        (None, {'tools': ['search']}, 'tools must be a list of functions'),
        (None, {'tools': 'search'}, 'tools must be a list of functions'),
        (None, {'hooks': [1]}, 'hooks must be a list of functions'),
        (None, {'gates': ['ask']}, 'gates must be a list of functions'),
        (None, {'system_prompt': 'x'}, "Agent has no option 'system_prompt': pass instructions=…"),
        (None, {'temperature': 0.1}, r"pass Agent\(model_settings=\{'temperature': …\}\)"),
        (None, {'base_url': 'http://x'}, r"pass Agent\(model_settings=\{'base_url': …\}\)"),
        (None, {'handoffs': []}, r'pass the other agents in tools=\[…\]'),
        (None, {'model_settings': {'warmth': 1}}, 'model_settings must be a dict with some of temperature, max_tokens'),
        (None, {'code_rules': 'small'}, 'for `small` pass policy'),
        (None, {'limits': {'steps': 1}}, 'limits must be'),
        (None, {'sandbox': 5}, 'sandbox must be'),
    ],
)
def test_what_an_agent_cannot_be_made_of_is_refused(model: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Agent(model, **options)


OWNERS: dict[str, object] = {
    'habilis': habilis,
    'Agent': Agent(ScriptedModel([])),
    'Result': Result[Any](output=1, ended='answer', run_id='r'),
}


@each_case(
    ('owner', 'name', 'hint'),
    [
        *((owner, name, hint) for owner, names in WRONG_NAMES.items() for name, hint in names.items()),
        ('Agent', 'limits', 'pass Agent(limits=…)'),
        ('Agent', 'run_synk', "did you mean 'run_sync'?"),
        ('Agent', 'instruction', 'did you mean Agent(instructions=…)?'),
        ('Result', 'mesages', "did you mean 'messages'?"),
        ('habilis', 'Agents', "did you mean 'Agent'?"),
        ('Agent', 'zzz', "Agent has no attribute 'zzz'"),
    ],
)
def test_a_name_of_another_library_is_answered_with_ours_and_not_listed(owner: str, name: str, hint: str) -> None:
    thing = OWNERS[owner]
    with pytest.raises(AttributeError) as caught:
        getattr(thing, name)
    assert str(caught.value).endswith(hint)
    assert name not in dir(thing)
    assert not hasattr(thing, name)


def test_an_import_of_a_name_of_another_library_is_answered_with_ours() -> None:
    with pytest.raises(ImportError, match=r"cannot import name 'CodeAgent' from 'habilis': use `habilis\.Agent`"):
        exec('from habilis import CodeAgent')


@each_case('name', ['user_prompt', 'input', 'prompt'])
def test_the_task_has_no_name(name: str) -> None:
    options: dict[str, Any] = {name: 'go'}
    with pytest.raises(TypeError, match=f"a run has no option '{name}': the task comes first, without a name"):
        Agent(ScriptedModel([])).run_sync(**options)


def test_an_agent_is_not_called_and_its_tool_is_named_like_any_other() -> None:
    agent: Any = Agent(ScriptedModel([]))
    with pytest.raises(TypeError, match=r'agent\.run_sync'):
        agent('go')
    with pytest.raises(TypeError, match=r"as_tool has no option 'tool_name': pass name=…"):
        agent.as_tool(tool_name='other')
    with pytest.raises(TypeError, match='gates must be a list of functions'):
        Agent(ScriptedModel([]), gates=[agent])


def test_an_attribute_that_an_agent_does_not_have_is_not_set() -> None:
    agent: Any = Agent(ScriptedModel([]))
    with pytest.raises(AttributeError, match=r"no attribute 'instruction'; did you mean Agent\(instructions=…\)"):
        agent.instruction = 'x'
    with pytest.raises(AttributeError, match='no setter'):
        agent.model = ScriptedModel([])


@each_case('kind', [{'a': int}, {'type': 'object', 'properties': {}}, [int], 5, 'int', lambda: 1])
def test_an_output_type_that_is_no_type_is_refused_before_anything_starts(kind: Any) -> None:
    with pytest.raises(TypeError, match='Agent: output_type must be a type such as'):
        Agent(ScriptedModel([]), output_type=kind)
    with pytest.raises(TypeError, match='a run: output_type must be a type'):
        Agent(ScriptedModel([])).run_sync('go', output_type=kind)


async def test_how_much_the_model_is_shown_can_change_between_steps_and_runs() -> None:
    model = ScriptedModel([block('print("a" * 300 + " end")')] * 2 + [block('final_answer(1)')] * 2)
    async with Agent(model, observations=Bounds(lines=5)) as agent:
        run = await agent.start('go')
        await run.step()
        agent.observations = Bounds(tokens=20)
        await run.step()
        await run.step()
        assert [len(step.observation or '') > 300 for step in run.steps] == [True, False, False]
        assert agent.observations == Bounds(tokens=20)
        wrong: Any = 20
        with pytest.raises(TypeError, match='observations must be'):
            agent.observations = wrong


async def test_limits_of_another_kind_are_refused_by_resume_too() -> None:
    async with Agent(ScriptedModel([block('x = 1')])) as agent:
        stopped = await agent.run('go', max_steps=1)
        limits: Any = {'steps': 1}
        with pytest.raises(TypeError, match='resume: limits must be'):
            await agent.resume(stopped.run_id, limits=limits)


async def test_documents_for_a_step_by_hand_are_texts() -> None:
    async with Agent(ScriptedModel([block('x = 1')])) as agent:
        run = await agent.start('go')
        documents: Any = {'a': 5}
        with pytest.raises(TypeError, match='artifacts must be a dict of texts by name'):
            await run.step(artifacts=documents)


@each_case('value', [True, 1.5, '3', 0, -1, float('inf')])
def test_a_limit_that_counts_is_a_whole_number(value: Any) -> None:
    with pytest.raises(ValueError, match=r'RunLimits\.steps must be a whole number more than zero, or None'):
        RunLimits(steps=value)


@pytest.mark.parametrize('value', [True, '3', 0, float('nan')])
def test_a_limit_that_measures_is_a_number(value: Any) -> None:
    with pytest.raises(ValueError, match=r'RunLimits\.seconds must be a number more than zero, or None'):
        RunLimits(seconds=value)
