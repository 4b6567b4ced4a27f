"""How a policy is chosen, what it may do, and that its verdicts are recorded."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from habilis.agent import Agent
from habilis.agent.policies import GeneralPolicy, History, Policy, SeenCell, SeenReply, Verdict, load_policy
from habilis.agent.policies.small import SmallPolicy
from habilis.core.errors import AgentError
from habilis.journal import MemoryStore
from habilis.models import ModelConfig, ScriptedModel
from habilis.models.contract import Traits
from habilis.models.fallback import FallbackModel
from habilis.models.files import File
from habilis.models.loader import load_model
from habilis.tools import people_toolset, tool
from tests.agent.scripts import block, sent


def policy_of(model: Any) -> type:
    return type(load_policy(None, model.traits))


@pytest.mark.parametrize('name', ['ollama:qwen3', 'vllm:any', 'openai:gpt-5', 'openai-compatible:tiny-1b'])
def test_a_server_is_not_small_unless_it_is_declared_so(name: str) -> None:
    config = ModelConfig(model=name, base_url='http://127.0.0.1:9/v1', api_key='x')
    assert policy_of(load_model(config)) is GeneralPolicy
    assert policy_of(load_model(replace(config, small=True))) is SmallPolicy


def test_a_fallback_is_small_only_if_all_of_it_is() -> None:
    large, little = ScriptedModel([], functions=True), ScriptedModel([], small=True)
    assert policy_of(FallbackModel([large, large])) is GeneralPolicy
    assert policy_of(FallbackModel([little, large])) is GeneralPolicy
    assert policy_of(FallbackModel([little, little])) is SmallPolicy


def test_the_protocol_does_not_decide() -> None:
    assert policy_of(ScriptedModel([], functions=False)) is GeneralPolicy
    assert policy_of(ScriptedModel([], functions=True, small=True)) is SmallPolicy


async def test_a_policy_is_chosen_by_name_or_given() -> None:
    assert type(load_policy('small', Traits())) is SmallPolicy
    assert type(load_policy('general', Traits(small=True))) is GeneralPolicy
    own = GeneralPolicy()
    assert load_policy(own, Traits(small=True)) is own
    with pytest.raises(AgentError, match="no policy 'tiny'; choose one of general, small"):
        load_policy('tiny', Traits())
    with pytest.raises(TypeError, match='policy must be'):
        Agent(ScriptedModel([]), policy=5)  # pyright: ignore[reportArgumentType]


class Stubborn(GeneralPolicy):
    """Refuses every answer, and wants everything forgotten."""

    def after_reply(self, reply: SeenReply, history: History) -> Verdict:
        return Verdict(note='No.', refuse=True, forget='steps')

    def after_cell(self, cell: SeenCell, history: History) -> Verdict:
        return Verdict(note='No.', refuse=True, forget='steps')


async def test_no_policy_can_refuse_an_answer_once_a_tool_was_called() -> None:
    made: list[str] = []

    @tool(idempotent=False)
    def send(text: str) -> None:
        """Send a mail."""
        made.append(text)

    model = ScriptedModel([block('x = 1'), block('send("a")'), block('final_answer([])')])
    async with Agent(model, tools=[send], policy=Stubborn()) as agent:
        result = await agent.run('go')
    assert (result.output, made) == ([], ['a'])
    assert 'send("a")' in sent(model, 2), 'nor have it forgotten'


@pytest.mark.parametrize('given', ['workspace', 'tools', 'variables', 'files'])
async def test_words_before_any_code_are_questioned_once_where_there_is_something_to_work_on(given: str) -> None:
    options: dict[str, Any] = {'workspace': {'workspace': True}, 'tools': {'tools': [tool(name='length')(len)]}}
    task = ['Add it up.', File(b'1,2', name='a.csv')] if given == 'files' else 'Add it up.'
    variables = {'rows': [1, 2]} if given == 'variables' else None
    announced = "I'll start by inspecting the data."
    model = ScriptedModel([announced, block('final_answer(3)')])
    async with Agent(model, **options.get(given, {})) as agent:
        result = await agent.run(task, variables=variables)
    assert (result.output, len(result.steps)) == (3, 2)
    assert 'No code was run' in (result.steps[0].observation or '')
    stubborn = ScriptedModel([announced, 'It is 3.'])
    async with Agent(stubborn, **options.get(given, {})) as agent:
        assert (await agent.run(task, variables=variables)).output == 'It is 3.'


async def test_words_right_after_code_that_failed_are_questioned_once() -> None:
    fails, announced = block('1 / 0'), "I'll try another way."
    model = ScriptedModel([fails, announced, block('final_answer(3)')])
    async with Agent(model, workspace=True) as agent:
        result = await agent.run('Add it up.')
    assert (result.output, len(result.steps)) == (3, 3)
    assert 'The last code failed' in (result.steps[1].observation or '')
    for replies in ([fails, 'It cannot be done.', 'It cannot be done.'], [fails, block('print(3)'), 'It is 3.']):
        async with Agent(ScriptedModel(replies), workspace=True) as agent:
            result = await agent.run('Add it up.')
        assert (result.output, len(result.steps)) == (replies[-1], 3)
    async with Agent(ScriptedModel([fails, announced]), talk=True, workspace=True) as agent:
        assert (await agent.run('Add it up.')).output == announced


async def test_words_are_not_questioned_in_a_talk_nor_after_code_nor_where_there_is_nothing_to_work_on() -> None:
    async with Agent(ScriptedModel(['Paris.']), tools=[people_toolset()]) as agent:
        assert len((await agent.run('The capital of France?')).steps) == 1
    async with Agent(ScriptedModel(['Hello.']), talk=True, workspace=True) as agent:
        assert len((await agent.run('Hello')).steps) == 1
    chatting = ScriptedModel([block('final_answer(1)'), 'You are welcome.'])
    async with Agent(chatting, workspace=True) as agent, agent.conversation() as chat:
        await chat.run('Set it up.')
        assert len((await chat.run('Thanks.')).steps) == 1
    async with Agent(ScriptedModel([block('print(1)'), 'It is 1.']), workspace=True) as agent:
        assert len((await agent.run('Print it.')).steps) == 2


async def test_a_run_that_was_questioned_takes_the_same_way_when_it_is_resumed() -> None:
    journal, replies = MemoryStore(), ["I'll look.", 'It is 3.']
    async with Agent(ScriptedModel(replies), workspace=True, journal=journal) as agent:
        stopped = await agent.run('Add.', max_steps=1)
    again = ScriptedModel(replies)
    again.skip(1)
    async with Agent(again, workspace=True, journal=journal) as agent:
        assert (await agent.resume(stopped.run_id)).output == 'It is 3.'
    assert len(again.requests) == 1


async def test_verdicts_are_recorded_and_replayed_whatever_the_policy_is_then() -> None:
    """A run under one policy is resumed under another, and takes the same way as far as its record goes."""
    replies = ['It is 3.', block('final_answer(4)'), block('final_answer(5)'), block('final_answer(6)')]

    class Twice(GeneralPolicy):
        """Refuses the first two answers."""

        def after_reply(self, reply: SeenReply, history: History) -> Verdict:
            return self._refuse(history)

        def after_cell(self, cell: SeenCell, history: History) -> Verdict:
            return self._refuse(history)

        def _refuse(self, history: History) -> Verdict:
            return Verdict(note='Again.', refuse=len(history.turns) < 2)

    journal, model = MemoryStore(), ScriptedModel(replies)
    async with Agent(model, policy=Twice(), journal=journal) as agent:
        stopped = await agent.run('go', max_steps=2)
        assert stopped.ended == 'max_steps'
    other = ScriptedModel(replies)
    other.skip(2)
    async with Agent(other, policy='general', journal=journal) as agent:
        resumed = await agent.resume(stopped.run_id)
    assert (resumed.output, len(resumed.steps)) == (5, 3)
    assert [step.observation for step in resumed.steps[:2]] == [step.observation for step in stopped.steps]
    assert 'Again.' in sent(other, 0)


async def test_a_policy_never_gets_the_words_of_the_task() -> None:
    seen: list[object] = []

    class Spy:
        """Keeps everything it is given."""

        def text(self, name: str) -> str:
            seen.append(name)
            return name

        def imports(self) -> Mapping[str, str]:
            return {}

        def task_note(self, history: History, *, can_stop: bool) -> str:
            seen.append(repr(history))
            return ''

        def temperature(self, history: History) -> float | None:
            seen.append(repr(history))
            return None

        def may_ask_people(self) -> bool:
            return True

        def memory_tokens(self) -> int:
            return 0

        def after_reply(self, reply: SeenReply, history: History) -> Verdict:
            seen.append((reply, repr(history)))
            return Verdict(note='Go on.')

        def after_cell(self, cell: SeenCell, history: History) -> Verdict:
            seen.append((cell, repr(history)))
            return Verdict()

    assert isinstance(Spy(), Policy)
    model = ScriptedModel(['', block('x = 1\nprint(x)'), block('final_answer(x)')])
    async with Agent(model, policy=Spy()) as agent:
        assert (await agent.run('Count the zebras.')).output == 1
    assert len(seen) > 5
    assert 'zebra' not in repr(seen)


def test_the_loop_works_without_the_folder_of_the_small_policy(tmp_path: Path) -> None:
    """House rule: the small policy is an addition. The tests of the loop pass in a copy that has no such folder."""
    import shutil

    import habilis

    source = Path(habilis.__file__).parents[1]
    shutil.copytree(source, tmp_path / 'src', ignore=shutil.ignore_patterns('__pycache__'))
    shutil.rmtree(tmp_path / 'src/habilis/agent/policies/small')
    root = Path(__file__).parents[3]
    for name in ('tests', 'pyproject.toml'):
        (tmp_path / name).symlink_to(root / name)
    tests = ['tests/agent/loop/test_run.py', 'tests/agent/policies/test_hints.py']
    code = (
        'import sys, pytest, habilis\n'
        f'assert habilis.__file__.startswith({str(tmp_path)!r}), habilis.__file__\n'
        f'sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-k", "not call", *{tests!r}]))\n'
    )
    done = subprocess.run(
        [sys.executable, '-c', code],
        cwd=tmp_path,
        env={**_environment(), 'PYTHONPATH': str(tmp_path / 'src')},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]


def _environment() -> dict[str, str]:
    import os

    return dict(os.environ)
