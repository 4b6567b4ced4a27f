"""The options of a run are written once for type checkers and once as data; everything else follows from these."""

import re
from collections.abc import Callable
from dataclasses import fields
from inspect import getdoc, signature
from pathlib import Path
from typing import Any

import pytest

from habilis.agent import Agent
from habilis.agent.chat import Chat
from habilis.agent.durable.records import INPUTS_CODEC, Inputs
from habilis.agent.options import AGENT_OPTIONS
from habilis.agent.run_spec import ResumptionOptions, RunOptions, RunSpec, StartOptions, TurnOptions, option_names
from habilis.models import ScriptedModel
from tests.agent.scripts import block
from tests.cases import each_case

METHODS: dict[Callable[..., Any], type] = {
    Agent.run: RunOptions,
    Agent.run_sync: RunOptions,
    Agent.stream: RunOptions,
    Agent.start: StartOptions,
    Agent.resume: ResumptionOptions,
    Agent.resume_sync: ResumptionOptions,
    Chat.run: TurnOptions,
    Chat.run_sync: TurnOptions,
    Chat.stream: TurnOptions,
}
POSITIONAL = {'self', 'task', 'run_id', 'answer'}


def _documented(method: Callable[..., Any]) -> set[str]:
    return {*re.findall(r'^    (\w+): ', (getdoc(method) or '').partition('Args:\n')[2], re.MULTILINE)}


@each_case('method', METHODS)
def test_a_signature_lists_every_option(method: Callable[..., Any]) -> None:
    shown = signature(method).parameters
    assert {*option_names(METHODS[method])} == {*shown} - POSITIONAL | ({*shown} & {*METHODS[method].__annotations__})
    assert not any(parameter.kind is parameter.VAR_KEYWORD for parameter in shown.values())


def test_the_signature_of_an_agent_lists_every_option() -> None:
    assert (*signature(Agent).parameters,) == AGENT_OPTIONS


@pytest.mark.parametrize('options', [RunOptions, StartOptions, TurnOptions, ResumptionOptions])
def test_every_option_is_a_field_of_the_specification(options: type) -> None:
    assert {*option_names(options)} <= {item.name for item in fields(RunSpec)}


def test_what_the_specification_has_beside_the_options_is_known() -> None:
    """A new option that is in the dataclass only could not be given by anybody."""
    given = {*option_names(RunOptions), *option_names(ResumptionOptions)}
    own = {item.name for item in fields(RunSpec)} - {item.name for item in fields(Inputs)} - given
    assert own == {'attached', 'answer', 'own_sandbox'}


@pytest.mark.parametrize('method', [Agent.run, Agent.run_sync, Agent.stream], ids=lambda method: method.__name__)
def test_help_explains_every_option_of_a_run(method: Callable[..., Any]) -> None:
    assert _documented(method) == {'task', *option_names(RunOptions)}


@pytest.mark.parametrize('method', [Agent.resume, Agent.resume_sync], ids=lambda method: method.__name__)
def test_help_explains_every_option_of_a_resume(method: Callable[..., Any]) -> None:
    assert _documented(method) == {'run_id', 'answer', *option_names(ResumptionOptions)}


def test_help_explains_every_option_of_an_agent() -> None:
    assert _documented(Agent.__init__) == {*AGENT_OPTIONS}


def test_defaults_are_those_of_the_specification() -> None:
    known = {item.name: item.default for item in fields(RunSpec)}
    for method in METHODS:
        shown = {name: item.default for name, item in signature(method).parameters.items() if name not in POSITIONAL}
        assert all(default is None or default == known[name] for name, default in shown.items())


def test_notebooks_complete_options() -> None:
    jedi = pytest.importorskip('jedi')  # completes in IPython and Jupyter
    names = {'agent': Agent(ScriptedModel([])), 'Agent': Agent}
    for line, option in {'agent.run_sync("go", max_': 'max_steps=', 'Agent(instr': 'instructions='}.items():
        assert [found.name for found in jedi.Interpreter(line, [names]).complete()] == [option]


def test_a_specification_is_recorded_without_what_only_this_process_has() -> None:
    spec = RunSpec(task='go', variables={'n': 1}, meta={'a': 'b'}, deps=object(), tools=[print], hooks=[print])
    written = INPUTS_CODEC.write(spec)
    assert written == {'task': 'go', 'variables': {'n': 1}, 'meta': {'a': 'b'}}
    read = INPUTS_CODEC.read(written)
    assert RunSpec(task='', run_id='a', max_steps=3).with_recorded(read, ()) == RunSpec(
        task='go', variables={'n': 1}, meta={'a': 'b'}, run_id='a', max_steps=3
    )


async def test_an_option_that_a_method_lacks_is_refused_with_the_one_that_has_it() -> None:
    options: Any = {'variables': {'n': 1}}
    resumed: Any = {'resume': True}
    async with Agent(ScriptedModel([block('final_answer(1)')])) as agent:
        with pytest.raises(TypeError, match=r"resume has no option 'variables': it is an option of run\(…\)"):
            await agent.resume('a', **options)
        with pytest.raises(TypeError, match="a run has no option 'resume'"):
            await agent.start('go', run_id='a', **resumed)


async def test_a_specification_is_run_and_resumed_as_the_options_are(tmp_path: Path) -> None:
    replies = [block('x = n'), block('final_answer(x + 1)')]
    async with Agent(ScriptedModel(replies), journal=tmp_path / 'runs.db') as agent:
        stopped = await agent.run_spec(RunSpec(task='go', variables={'n': 1}, max_steps=1, run_id='a'))
        assert stopped.ended == 'max_steps'
        assert (await agent.run_spec(RunSpec(task='', run_id='a'))).output == 2
