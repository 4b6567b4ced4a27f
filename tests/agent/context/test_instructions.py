"""J3: instructions that are functions of the context differ per run, and are evaluated once."""

import threading

import pytest

from habilis import Agent, Context, RunLimits, ScriptedModel, tool
from habilis.core.errors import AgentError
from habilis.journal import MemoryStore
from tests.agent.scripts import block, sent

DONE = block('final_answer(1)')


async def test_instructions_may_be_functions_of_the_context_or_of_nothing_or_a_list() -> None:
    threads: list[bool] = []

    def with_name(ctx: Context[str]) -> str:
        threads.append(threading.current_thread() is threading.main_thread())
        return f'  Greet {ctx.deps} in run {ctx.run_id}.\n'

    async def later(context: Context[str]) -> str:
        return f'Be polite to {context.deps}.'

    def empty() -> str:
        return ''

    model = ScriptedModel([DONE] * 3)
    async with Agent(
        model, instructions=['Be brief.', with_name, later, empty, lambda: 'Be kind.'], deps_type=str
    ) as agent:
        for name in ('Ann', 'Bob'):
            await agent.run('go', deps=name, run_id=f'run-{name}')
    prompts = [sent(model, number) for number in range(2)]
    text = 'Be brief.\n\nGreet {0} in run run-{0}.\n\nBe polite to {0}.\n\nBe kind.'
    assert [text.format(name) in prompt for name, prompt in zip(('Ann', 'Bob'), prompts, strict=True)] == [True, True]
    assert not any(threads), 'a plain function may block'
    model = ScriptedModel([DONE])
    async with Agent(model, instructions=lambda: 'Only this.') as agent:
        await agent.run('go')
    assert 'Only this.' in sent(model, 0)


async def test_a_resumed_run_has_the_instructions_that_it_was_started_with() -> None:
    store, evaluated = MemoryStore(), list[int]()

    def count() -> str:
        evaluated.append(1)
        return f'This is evaluation {len(evaluated)}.'

    async with Agent(ScriptedModel([block('x = 1')]), instructions=count, journal=store) as agent:
        await agent.run('go', run_id='r', limits=RunLimits(steps=1))
    model = ScriptedModel([DONE])
    async with Agent(model, instructions=count, journal=store) as agent:
        assert (await agent.resume('r')).output == 1
    assert evaluated == [1]
    assert 'This is evaluation 1.' in sent(model, 0)


async def test_a_nested_run_that_is_resumed_has_its_instructions_too() -> None:
    store, evaluated = MemoryStore(), list[int]()

    def count() -> str:
        evaluated.append(1)
        return f'This is evaluation {len(evaluated)}.'

    @tool(needs_approval=True)
    def publish() -> int:
        """Publish."""
        return 1

    def agents(*inner_replies: str) -> tuple[Agent, ScriptedModel]:
        model = ScriptedModel(inner_replies)
        inner = Agent(model, name='inner', instructions=count, tools=[publish])
        return Agent(ScriptedModel([block('final_answer(inner("go"))')]), tools=[inner], journal=store), model

    first, _ = agents(block('x = publish()'))
    async with first:
        stopped = await first.run('go', run_id='r')
        assert stopped.ended == 'approval'
        await first.answer('r', True)
    second, model = agents(block('final_answer(x)'))
    async with second:
        assert (await second.resume('r')).output == 1
    assert evaluated == [1]
    assert 'This is evaluation 1.' in sent(model, 0)


async def test_errors_name_the_function() -> None:
    def broken(ctx: Context[None]) -> str:
        raise KeyError('city')

    async def number() -> int:
        return 1

    model = ScriptedModel([DONE])
    async with Agent(model, instructions=['a', broken]) as agent:
        with pytest.raises(AgentError, match="the function broken of the instructions failed: KeyError: 'city'"):
            await agent.run('go')
    async with Agent(model, instructions=number) as agent:
        with pytest.raises(AgentError, match='the function number of the instructions must return text, not 1'):
            await agent.run('go')
    for wrong in (1, ['a', 2], {'a': 1}):
        with pytest.raises(TypeError, match='instructions must be text, a function that returns text, or a list'):
            Agent(model, instructions=wrong)  # pyright: ignore[reportArgumentType]
    assert not model.requests
