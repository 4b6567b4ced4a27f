"""Rollouts: samples from copies of one sandbox, with rewards; exported, and played again from their seeds."""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pytest

from habilis import Agent, ScriptedModel
from habilis.agent.contract import RunLimits, Step
from habilis.agent.durable.training_rows import to_json_lines
from habilis.core.errors import AgentError
from habilis.journal import MemoryStore
from habilis.models.contract import FunctionCall, Message, Reply, ReplyToken, Usage
from habilis.rollouts import (
    CodeEnvironment,
    CodeReward,
    Rollout,
    RolloutGroup,
    Rollouts,
    RolloutTask,
    group_rows,
    message_rows,
    pass_rate,
)
from habilis.tools import tool
from tests.requirements import require_package
from tests.waiting import until

TASKS = [
    RolloutTask(task='Double it.', expected=42, prepare='secret = 21', id='double'),
    RolloutTask(task='Double it.', expected=8, variables={'number': 4}, prepare='secret = number = 4'),
]


def code(text: str) -> str:
    return f'```python\n{text}\n```'


class Seeded:
    """A script whose second reply is right or wrong by the seed of the request."""

    def __init__(self, *, functions: bool = False) -> None:
        self.model = ScriptedModel(self._reply, functions=functions)
        self._functions = functions

    def _reply(self, messages: Sequence[Message]) -> Reply:
        seed = self.model.requests[-1].options.extra['seed']
        assert isinstance(seed, int)
        first = not any(message.role == 'assistant' for message in messages)
        text = 'secret += 1\nprint(secret)' if first else f'final_answer((secret - 1) * {2 + seed % 2})'
        tokens = tuple(ReplyToken(text=word, logprob=-0.5, id=number) for number, word in enumerate(text.split()))
        if self._functions:
            call = FunctionCall(id=f'call{first}', name='python', arguments=json.dumps({'code': text}))
            return Reply(calls=(call,), tokens=tokens, usage=Usage(requests=1))
        return Reply(text=code(text), tokens=tokens, usage=Usage(requests=1))


def length(_: RolloutTask, step: Step) -> float:
    return len(step.code or '')


async def sampled(agent: Agent, **options: object) -> list[RolloutGroup]:
    async with Rollouts(agent, TASKS, **options) as rollouts:  # type: ignore[arg-type]
        return [group async for group in rollouts]


async def test_each_sample_starts_from_a_copy_of_the_prepared_sandbox_and_is_rewarded() -> None:
    async with Agent(Seeded().model, journal='off') as agent:
        groups = await sampled(agent, samples=6)
    assert [(group.number, len(group.rollouts)) for group in groups] == [(1, 6), (2, 6)]
    for group in groups:
        for one in group.rollouts:
            is_right = one.seed % 2 == 0
            assert isinstance(group.task.expected, int)
            assert one.output == (group.task.expected if is_right else group.task.expected * 3 // 2)
            assert one.reward == float(is_right)
        assert len({one.seed for one in group.rollouts}) == 6
        assert len(group.distinct) == 2  # six samples, but only a right and a wrong one
    again = pass_rate(groups, 6)
    assert (again.k, again.rate, again.tasks) == (6, 1.0, 2)
    one = pass_rate(groups)
    assert 0 <= one.low < one.rate < one.high <= 1


async def test_a_rollout_is_recorded_with_its_seed_and_played_again_from_it() -> None:
    store = MemoryStore()
    async with Agent(Seeded().model, journal=store) as agent, Rollouts(agent, TASKS, samples=3) as rollouts:
        first = [one async for group in rollouts for one in group.rollouts]
        for one in first:
            again = await rollouts.replay(one)
            assert again.run_id != one.run_id
            assert (again.seed, again.output, again.reward) == (one.seed, one.output, one.reward)
            assert (again.prompt, again.completion) == (one.prompt, one.completion)
    assert {info.run for info in await store.runs()} >= {one.run_id for one in first}
    assert len({one.seed for one in first}) == 6


def test_a_set_that_is_killed_goes_on_and_samples_nothing_twice_that_is_finished(tmp_path: Path) -> None:
    hold, file = tmp_path / 'hold', tmp_path / 'requests'
    hold.touch()
    command = [sys.executable, '-m', 'tests.rollouts.program', str(tmp_path)]
    process = subprocess.Popen(command)
    try:
        asyncio.run(
            until(lambda: process.poll() is not None or (file.exists() and len(file.read_bytes().split()) == 14))
        )
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
    before = [json.loads(line) for line in file.read_text('utf-8').splitlines()]
    hold.unlink()
    for _ in range(2):  # the second time there is nothing to do
        subprocess.run(command, check=True)
    requests = Counter(tuple(json.loads(line)) for line in file.read_text('utf-8').splitlines())
    under_way = before[-1][0]
    assert requests == {(seed, turn): 1 + (seed == under_way and turn == 0) for seed, turn in requests}
    rows = [json.loads(line) for line in (tmp_path / 'rows.jsonl').read_text('utf-8').splitlines()]
    assert {(row['seed'], turn) for row in rows for turn in (0, 1)} == set(requests)
    places = [(group, sample) for group in ('n3', 'n4') for sample in (1, 2, 3, 4)]
    assert [(row['group'], row['sample']) for row in rows] == places
    for row in rows:
        factor, number = 2 + row['seed'] % 2, int(row['group'][1:])
        assert (row['output'], row['reward']) == (str(number * factor), float(factor == 2))
        assert [message['role'] for message in row['completion']] == ['assistant', 'user', 'assistant']


async def test_a_rollout_that_was_not_finished_repeats_no_call_that_must_not_be_repeated(tmp_path: Path) -> None:
    paid: list[int] = []

    @tool(idempotent=False)
    def pay(amount: int) -> None:
        paid.append(amount)

    def fail(_: object) -> float:
        msg = 'no reward'
        raise RuntimeError(msg)

    tasks = [RolloutTask(task='Pay.')]
    for message in ('no reward', 'must not be repeated'):
        model = ScriptedModel(['```python\nfinal_answer(pay(1))\n```'])
        async with (
            Agent(model, tools=[pay], journal=tmp_path / 'runs.db') as agent,
            Rollouts(agent, tasks, samples=1, reward=fail, name='set') as rollouts,
        ):
            with pytest.raises((RuntimeError, AgentError), match=message):
                _ = [group async for group in rollouts]
    assert paid == [1]


async def test_a_finished_rollout_is_read_as_it_was(tmp_path: Path) -> None:
    store = MemoryStore()
    async with Agent(Seeded(functions=True).model, journal=store) as agent:
        first = await sampled(agent, samples=2, name='set', logprobs=True, step_reward=length)
        again = await sampled(agent, samples=3, name='set', logprobs=True, step_reward=length)
    assert [group.rollouts[:2] for group in again] == [group.rollouts for group in first]
    assert len(await store.runs()) == 6
    with pytest.raises(AgentError, match='without a journal'):
        await sampled(Agent(ScriptedModel([]), journal='off'), name='set')


async def test_rewards_can_be_code_that_what_the_model_ran_cannot_change() -> None:
    cheats = code('float = lambda *_: 1\nexpected = 1\nanswer = 1\nfinal_answer(1)')
    async with Agent(ScriptedModel(lambda _: cheats), journal='off') as agent:
        judged = CodeReward('float(answer == expected) / 2')
        inside = CodeReward('1 if answer == expected else secret / 100', inside=True)
        assert [one.reward for group in await sampled(agent, samples=1, reward=judged) for one in group.rollouts] == [
            0.0,
            0.0,
        ]
        groups = await sampled(agent, samples=1, reward=inside, step_reward=length)
    assert [one.reward for group in groups for one in group.rollouts] == [0.21, 0.04]
    assert groups[0].rollouts[0].step_rewards == (float(len(cheats) - len(code(''))),)


async def test_exported_rollouts_have_the_form_of_conversations_and_one_schema(tmp_path: Path) -> None:
    async with Agent(Seeded(functions=True).model, journal='off') as agent:
        groups = await sampled(agent, samples=4, logprobs=True)
    rows, solved = group_rows(groups), message_rows(groups)
    assert [row['group'] for row in rows] == ['double'] * 4 + ['task-2'] * 4
    prompt, completion = rows[0]['prompt'], rows[0]['completion']
    assert isinstance(prompt, list)
    assert isinstance(completion, list)
    assert [message['role'] for message in prompt] == ['system', 'user']  # type: ignore[index, call-overload]
    assert [message['role'] for message in completion] == ['assistant', 'tool', 'assistant']  # type: ignore[index, call-overload]
    call = completion[0]['tool_calls'][0]['function']  # type: ignore[index, call-overload]
    assert call == {'name': 'python', 'arguments': {'code': 'secret += 1\nprint(secret)'}}
    assert rows[0]['token_ids'][0] == [0, 1, 2, 3]  # type: ignore[index]
    assert [len(row['messages']) for row in solved] == [5] * len(solved)  # type: ignore[arg-type]
    assert {row['tools'][0]['function']['name'] for row in rows} == {'python'}  # type: ignore[index, call-overload]
    require_package('pyarrow')
    (tmp_path / 'groups.jsonl').write_text(to_json_lines(rows), 'utf-8')
    table = import_module('pyarrow.json').read_json(tmp_path / 'groups.jsonl')
    assert table.num_rows == 8
    assert table.column('reward').to_pylist() == [row['reward'] for row in rows]
    parquet, file = import_module('pyarrow.parquet'), tmp_path / 'messages.parquet'  # as verl reads it
    parquet.write_table(import_module('pyarrow').Table.from_pylist(solved), file)
    found = parquet.read_table(file).to_pylist()
    assert [[_given(message) for message in row['messages']] for row in found] == [row['messages'] for row in solved]
    assert found[0]['tools'][0]['function']['name'] == 'python'


def _given(message: dict[str, object]) -> dict[str, object]:
    """A message without the fields that it has only because others of its column have them."""
    return {name: value for name, value in message.items() if value is not None}


async def test_an_environment_runs_the_loop_of_the_agent_for_the_replies_of_its_caller() -> None:
    agent = Agent(ScriptedModel([]), journal='off', limits=RunLimits(steps=3))
    async with agent, CodeEnvironment(agent, TASKS[0]) as environment:
        seen = await environment.reset()
        assert seen.messages[-1].text.startswith('Double it.')
        seen = await environment.step(code('secret = 1000\nprint(secret)'))
        assert (seen.is_done, seen.reward) == (False, 0.0)
        assert '1000' in seen.messages[-1].text
        await environment.reset()  # from the prepared sandbox again
        seen = await environment.step(code('final_answer(secret * 2)'))
        assert (seen.is_done, seen.reward) == (True, 1.0)
        with pytest.raises(AgentError, match='the episode is done'):
            await environment.step('more')
        await environment.reset()
        for _ in range(3):
            seen = await environment.step(code('print(1)'))
        assert seen.result is not None
        assert (seen.is_done, seen.result.ended, seen.reward) == (True, 'max_steps', 0.0)


def test_pass_at_k_is_the_unbiased_estimate() -> None:
    def group(number: int, rewards: Sequence[float]) -> RolloutGroup:
        task = RolloutTask(task='x')
        made = [
            Rollout(task=task, number=1, sample=n, seed=n, run_id='', output=None, ended='answer', reward=reward)
            for n, reward in enumerate(rewards)
        ]
        return RolloutGroup(task=task, number=number, rollouts=tuple(made))

    groups = [group(1, [1, 0, 0, 0]), group(2, [0, 0, 0, 0]), group(3, [1, 1, 1, 1])]
    assert pass_rate(groups, 1).rate == pytest.approx((0.25 + 0 + 1) / 3)
    assert pass_rate(groups, 2).rate == pytest.approx((0.5 + 0 + 1) / 3)
    assert pass_rate(groups, 4).rate == pytest.approx(2 / 3)
    with pytest.raises(AgentError, match='k=5'):
        pass_rate(groups, 5)


async def test_code_that_cannot_prepare_its_sandbox_is_named() -> None:
    tasks = [RolloutTask(task='Nothing.', prepare='1 / 0')]
    async with Agent(ScriptedModel([]), journal='off') as agent, Rollouts(agent, tasks) as rollouts:
        with pytest.raises(AgentError, match=r'prepares the sandbox of .* failed: ZeroDivisionError'):
            [group async for group in rollouts]
