"""Agents in flows, flows as tools of agents: each combination runs and resumes. G3, G7."""

import asyncio

import pytest

from habilis.agent import Agent
from habilis.flows import FlowPaused, approval, flow, parallel, step
from habilis.journal import MemoryStore
from habilis.journal.questions import answer_run
from habilis.models import ScriptedModel
from habilis.tools.tool import as_tool

calls: list[str] = []
broken: set[str] = set()


@pytest.fixture(autouse=True)
def afresh() -> None:
    calls.clear()
    broken.clear()


@step
async def work(name: str) -> str:
    calls.append(name)
    if name in broken:
        raise ValueError(name)
    return name.upper()


@flow
async def lookup(word: str, times: int = 1) -> list[str]:
    """Look a word up."""
    return [await work(f'{word} {number}') for number in range(times)]


def block(code: str) -> str:
    return f'```python\n{code}\n```'


def test_a_flow_is_offered_to_a_model_like_the_function_it_is() -> None:
    for offered in (as_tool(lookup), lookup.as_tool()):
        assert (offered.name, offered.description, offered.is_async) == ('lookup', 'Look a word up.', True)
        assert offered.signature == '(word: str, times: int = 1) -> list[str]'
        assert offered.options.idempotent


async def test_an_agent_in_a_flow_is_a_part_of_its_run_and_is_not_asked_again() -> None:
    model = ScriptedModel([block('x = 6 * 7\nprint(x)'), block('final_answer(x)')])

    @flow
    async def answer() -> str:
        async with Agent(model, journal='off') as agent:
            result = await agent.run('What is 6 times 7?')
        return f'{result.output} {await work("end")}'

    store = MemoryStore()
    broken.add('end')
    run = await answer.start(journal=store)
    with pytest.raises(ValueError, match='end'):
        await run.result()
    assert len(model.requests) == 2
    broken.clear()
    assert await answer.resume(run.id, journal=store) == '42 END'
    assert len(model.requests) == 2
    assert [info.run for info in await store.runs()] == [run.id]


async def test_agents_in_steps_and_side_by_side_are_not_asked_again() -> None:
    models = {name: ScriptedModel([block(f'final_answer({name!r})')]) for name in ('a', 'b', 'c')}

    @step
    async def think(name: str) -> str:
        async with Agent(models[name], journal='off') as agent:
            return str((await agent.run(f'Think about {name}.')).output)

    @flow
    async def thoughts() -> list[str]:
        first, second = await asyncio.gather(think('a'), think('b'))
        return [first, second, *await parallel(think, ['c']), await work('end')]

    store = MemoryStore()
    broken.add('end')
    run = await thoughts.start(journal=store)
    with pytest.raises(ValueError, match='end'):
        await run.result()
    broken.clear()
    assert await thoughts.resume(run.id, journal=store) == ['a', 'b', 'c', 'END']
    assert [len(model.requests) for model in models.values()] == [1, 1, 1]


async def test_a_flow_that_is_a_tool_of_an_agent_in_a_flow_resumes_at_its_unsaved_step() -> None:
    model = ScriptedModel([block('final_answer(await lookup("cat", 3))')])

    @flow
    async def outer() -> object:
        async with Agent(model, tools=[lookup], journal='off') as agent:
            return (await agent.run('Look it up.')).output

    store = MemoryStore()
    reached = asyncio.Event()
    hold = [True]

    @step
    async def wait(name: str) -> str:
        calls.append(name)
        if hold:
            reached.set()
            await asyncio.sleep(3600)
        return name

    @flow
    async def lookup_slowly(word: str) -> list[str]:
        """Look a word up."""
        return [await work(f'{word} 0'), await wait(f'{word} 1'), await work(f'{word} 2')]

    slowly = ScriptedModel([block('final_answer(await lookup_slowly("cat"))')])

    @flow
    async def outer_slowly() -> object:
        async with Agent(slowly, tools=[lookup_slowly.as_tool()], journal='off') as agent:
            return (await agent.run('Look it up.')).output

    run = await outer.start(journal=store)
    assert await run.result() == ['CAT 0', 'CAT 1', 'CAT 2']
    calls.clear()
    run = await outer_slowly.start(journal=store)
    await reached.wait()
    await run.cancel()
    hold.clear()
    assert await outer_slowly.resume(run.id, journal=store) == ['CAT 0', 'cat 1', 'CAT 2']
    assert calls == ['cat 0', 'cat 1', 'cat 1', 'cat 2']
    assert len(slowly.requests) == 1


async def test_a_flow_that_is_a_tool_may_wait_for_a_person() -> None:
    @flow
    async def careful(word: str) -> str:
        """Say a word, if that is allowed."""
        await work(word)
        return word if await approval(f'Say {word}?') else 'hush'

    model = ScriptedModel([block('final_answer(await careful("boo"))')])

    @flow
    async def outer() -> object:
        async with Agent(model, tools=[careful], journal='off') as agent:
            return (await agent.run('Say it.')).output

    store = MemoryStore()
    run = await outer.start(journal=store)
    with pytest.raises(FlowPaused) as paused:
        await run.result()
    assert [question.text for question in paused.value.questions] == ['Say boo?']
    await answer_run(store, run.id, True)
    assert await outer.resume(run.id, journal=store) == 'boo'
    assert calls == ['boo']
    assert len(model.requests) == 1
