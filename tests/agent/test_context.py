"""J2: a tool with a `Context[Deps]` parameter gets the dependencies of its run; the model does not see them."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, assert_type

import pytest

from habilis import Agent, Context, Result, RunLimits, ScriptedModel, Toolset, tool
from habilis.agent.events import ToolLogged, ToolProgress
from habilis.core.errors import AgentError, ToolDefinitionError
from habilis.journal import MemoryStore
from tests.agent.scripts import block, sent


@dataclass
class Db:
    """Dependencies of a run."""

    rows: dict[int, str]
    secret: str = 'hunter2'
    seen: list[str] = field(default_factory=list[str])


@dataclass
class Other:
    """Other dependencies."""


def find(ctx: Context[Db], number: int) -> str:
    """Find a row."""
    ctx.deps.seen.append(ctx.run_id)
    return ctx.deps.rows[number]


async def find_later(ctx: Context[Db], number: int) -> str:
    """Find a row."""
    await asyncio.sleep(0)
    return ctx.deps.rows[number]


class Finder:
    """Tools of an object."""

    @tool
    def by_method(self, ctx: Context[Db], number: int) -> str:
        """Find a row."""
        return ctx.deps.rows[number]

    def __call__(self, ctx: Context[Db], number: int) -> str:
        """Find a row."""
        return ctx.deps.rows[number]


CODE = block('final_answer([find(1), await find_later(1), by_method(1), by_object(1)])')


async def test_tools_of_every_kind_get_the_deps_and_the_model_sees_nothing_of_it(tmp_path: Path) -> None:
    model = ScriptedModel([CODE])
    tools = [find, find_later, Toolset('finders', [Finder().by_method, tool(name='by_object')(Finder())])]
    async with Agent(model, deps_type=Db, tools=tools, journal=f'files:{tmp_path}/runs') as agent:
        db = Db({1: 'tea'})
        result = await agent.run('Find row 1', deps=db, run_id='r')
    assert result.output == ['tea'] * 4
    assert db.seen == ['r']
    prompt = sent(model, 0)
    assert 'def find(number: int) -> str' in prompt
    assert not [word for word in ('ctx', 'Context', 'Db', 'hunter2') if word in prompt]
    written = b''.join(path.read_bytes() for path in tmp_path.rglob('*') if path.is_file())
    assert b'hunter2' not in written, 'the journal stores no dependencies'
    assert b'tea' in written


async def test_functions_of_the_model_hide_the_context_too() -> None:
    model = ScriptedModel([block('final_answer(1)')], functions=True)
    async with Agent(model, deps_type=Db, tools=[tool(side='model')(find)]) as agent:
        await agent.run('go', deps=Db({}))
    functions = {function.name: function for function in model.requests[0].options.functions}
    assert functions['find'].parameters['properties'] == {'number': {'type': 'integer'}}


async def test_runs_at_the_same_time_never_mix_their_deps() -> None:
    def find_slowly(ctx: Context[Db], number: int) -> str:
        """Find a row."""
        return ctx.deps.rows[number] + ctx.run_id

    code = block('rows = [await find_later(1) + find_slowly(1) for _ in range(5)]\nfinal_answer(sorted(set(rows)))')
    async with Agent(ScriptedModel([code] * 6), deps_type=Db, tools=[find_later, find_slowly]) as agent:
        runs = [agent.run('go', deps=Db({1: f'row-{n}'}), run_id=f'run-{n}') for n in range(6)]
        results = await asyncio.gather(*runs)
    assert [result.output for result in results] == [[f'row-{n}row-{n}run-{n}'] for n in range(6)]


@pytest.mark.parametrize('deps_type', [Db, None])
async def test_missing_or_wrong_deps_are_refused_before_the_run_starts(deps_type: Any) -> None:
    store = MemoryStore()
    model = ScriptedModel([block('final_answer(1)')])
    async with Agent(model, deps_type=deps_type, tools=[find], journal=store) as agent:
        with pytest.raises(AgentError, match=r'needs deps of type Db: pass them by name, as in run\(…, deps=…\)'):
            await agent.run('go')
        with pytest.raises(TypeError, match=r'needs deps of type Db, not Other'):
            await agent.run('go', deps=Other())
    assert not await store.runs()
    assert not model.requests


async def test_a_tool_with_other_deps_than_the_agents_is_named() -> None:
    def other(ctx: Context[Other]) -> None:
        """Needs something else."""

    async with Agent(ScriptedModel([]), deps_type=Db, tools=[find]) as agent:
        with pytest.raises(TypeError, match='the tool other needs deps of type Other, not Db'):
            await agent.run('go', deps=Db({}), tools=[other])


async def test_a_tool_without_deps_gets_a_context_all_the_same() -> None:
    def where(ctx: Context) -> str:
        """Where am I?"""
        assert ctx.deps is None
        return ctx.run_id

    async with Agent(ScriptedModel([block('final_answer(where())')]), tools=[where]) as agent:
        assert (await agent.run('go', run_id='here')).output == 'here'


async def test_log_and_progress_of_a_tool_are_events_of_the_run() -> None:
    events: list[object] = []

    def work(ctx: Context[None]) -> int:
        """Work."""
        ctx.progress(1, 2, 'half')
        ctx.log('a line')
        ctx.progress(2, 2)
        return 1

    async with Agent(ScriptedModel([block('work()'), block('final_answer(1)')]), tools=[work]) as agent:
        result = await agent.run('go', hooks=[events.append])
    assert 'a line' in (result.steps[0].observation or '')
    assert [event.text for event in events if isinstance(event, ToolProgress | ToolLogged)] == [
        '1 of 2: half',
        'a line',
        '2 of 2',
    ]


async def test_a_resume_asks_for_the_deps_again_by_name() -> None:
    store = MemoryStore()
    first = ScriptedModel([block('a = find(1)'), block('final_answer(a + find(2))')])
    async with Agent(first, deps_type=Db, tools=[find], journal=store) as agent:
        stopped = await agent.run('go', deps=Db({1: 'x'}), run_id='r', limits=RunLimits(steps=1))
        assert stopped.ended == 'max_steps'
    second = ScriptedModel([block('final_answer(a + find(2))')])
    async with Agent(second, deps_type=Db, tools=[find], journal=store) as agent:
        with pytest.raises(AgentError, match=r'the run needs deps of type Db, .* pass them again: resume\(…, deps=…\)'):
            await agent.resume('r')
        with pytest.raises(TypeError, match='needs deps of type Db, not Other'):
            await agent.resume('r', deps=Other())
        db = Db({1: 'not asked again', 2: 'y'})
        result = await agent.resume('r', deps=db)
        assert (result.output, db.seen) == ('xy', ['r'])
        assert (await agent.resume('r')).output == 'xy', 'a run that has its answer needs nothing'


async def test_a_run_that_is_still_open_keeps_its_deps_or_takes_others() -> None:
    model = ScriptedModel([block('find(1)'), block('find(1)'), block('final_answer(find(1))')])
    async with Agent(model, deps_type=Db, tools=[find], journal='off') as agent:
        old, new = Db({1: 'old'}), Db({1: 'new'})
        stopped = await agent.run('go', deps=old, limits=RunLimits(steps=1))
        stopped = await agent.resume(stopped.run_id, limits=RunLimits(steps=1))
        assert len(old.seen) == 2
        assert (await agent.resume(stopped.run_id, deps=new)).output == 'new'


async def test_a_second_solution_gets_the_deps_too() -> None:
    model = ScriptedModel([block('final_answer(find(1))'), block('final_answer(await find_later(1))')])
    async with Agent(model, deps_type=Db, tools=[find, find_later], agree=2) as agent:
        result = await agent.run('go', deps=Db({1: 'tea'}))
    assert result.output == 'tea'
    assert result.agreement


# Decorator ------------------------------------------------------------------------------------------------------------


async def test_a_decorated_function_is_a_tool_of_later_runs_and_stays_what_it_is() -> None:
    model = ScriptedModel([block('1'), block('final_answer([double(2), await half(2), lower("A")])')])
    agent = Agent(model, output_type=list[Any], deps_type=Db)
    async with agent:
        running = await agent.start('go', deps=Db({}))

        @agent.tool
        def double(ctx: Context[Db], number: int) -> int:
            """Twice as much."""
            return 2 * number

        @agent.tool(timeout=5)
        async def half(number: float) -> float:
            """Half as much."""
            return number / 2

        agent.tool(Toolset('texts', [tool(name='lower')(str.lower)]))
        assert_type(double(Context(Db({})), 2), int)
        assert double(Context(Db({})), 2) == 4
        await running.step()
        assert 'double' not in sent(model, 0), 'a run that was started before does not get it'
        result = assert_type(await agent.run('go', deps=Db({})), Result[list[Any]])
        assert result.output == [4, 1.0, 'a']
        with pytest.raises(ToolDefinitionError, match="two tools have the name 'double'"):
            agent.tool(double)
        with pytest.raises(TypeError, match='tools must be a list of functions'):
            agent.tool(1)  # pyright: ignore[reportArgumentType, reportCallIssue]
