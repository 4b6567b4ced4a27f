"""J4: `tools=[other_agent]` and `agent.as_tool()`: usage is summed, and the run is nested in the journal."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from habilis import Agent, Context, Limits, RunLimits, ScriptedModel, Toolset, tool
from habilis.agent.durable.trajectory import read_trajectories
from habilis.core.errors import AgentError, ToolDefinitionError
from habilis.journal import MemoryStore
from habilis.journal.copies import copy_run
from habilis.journal.index import name_of
from habilis.journal.runs import read_run
from habilis.sandbox.options import SandboxSettings
from tests.agent.scripts import block, sent

JOURNALS = pytest.mark.parametrize('journal', ['off', None])


@dataclass
class City:
    """A city."""

    name: str
    people: int


def expert(*replies: str, **options: Any) -> Agent[City]:
    return Agent(ScriptedModel(replies, name='scripted:inner'), name='expert', output_type=City, **options)


BERN = block('final_answer({"name": "Bern", "people": 134000})')


@JOURNALS
@pytest.mark.parametrize('form', ['agent', 'tool', 'toolset', 'decorator', 'run'])
async def test_an_agent_is_called_like_a_function_and_its_usage_counts(form: str, journal: str | None) -> None:
    inner = expert(BERN)
    model = ScriptedModel([block('city = expert("The capital?")\nfinal_answer(city["people"])')])
    given: list[Any] = (
        [Toolset('all', [inner])] if form == 'toolset' else [inner.as_tool()] if form == 'tool' else [inner]
    )
    outer = Agent(model, tools=given if form not in ('decorator', 'run') else (), journal=journal)
    if form == 'decorator':
        assert outer.tool(inner) is inner
    async with outer, inner:
        result = await outer.run('go', tools=given if form == 'run' else None)
    assert (result.output, result.ended) == (134000, 'answer')
    assert result.usage.requests == 2
    assert {name: usage.requests for name, usage in result.usage_by_model.items()} == {
        model.name: 1,
        'scripted:inner': 1,
    }
    assert outer.ledger.total.requests == 2
    prompt = sent(model, 0)
    assert 'def expert(task: str, variables: dict[str, Any] | None = None) -> City' in prompt
    assert 'class City(TypedDict)' in prompt
    assert 'Give the agent expert a task in words' in prompt


async def test_name_description_and_await_can_be_chosen() -> None:
    inner = expert(BERN, BERN)
    given = inner.as_tool(name='ask_expert', description='Knows cities.', as_sync=False)
    code = 'import asyncio\na, b = await asyncio.gather(ask_expert("a"), ask_expert("b"))\nfinal_answer(a == b)'
    model = ScriptedModel([block(code)])
    async with Agent(model, tools=[given]) as outer, inner:
        assert (await outer.run('go')).output is True
    assert 'async def ask_expert(task: str' in sent(model, 0)
    assert 'Knows cities.' in sent(model, 0)


async def test_code_hands_data_over_as_variables() -> None:
    inner = Agent(ScriptedModel([block('final_answer(sum(rows))')]), name='adder', output_type=int)
    async with Agent(ScriptedModel([block('final_answer(adder("Add", {"rows": [1, 2]}))')]), tools=[inner]) as outer:
        assert (await outer.run('go')).output == 3
    words = Agent(ScriptedModel(['fine']), name='words', python=False)
    model = ScriptedModel([block('final_answer(words("How?"))')])
    async with Agent(model, tools=[words]) as outer:
        assert (await outer.run('go')).output == 'fine'
    assert 'def words(task: str)' in sent(model, 0)


async def test_the_inner_run_is_nested_in_the_journal() -> None:
    store = MemoryStore()
    inner = expert(block('x = 1'), BERN)
    async with Agent(ScriptedModel([block('final_answer(expert("a"))')]), tools=[inner], journal=store) as outer:
        await outer.run('go', run_id='r')
    assert [info.run for info in await store.runs()] == ['r']
    outside, inside = await read_trajectories(await read_run(store, 'r'))
    assert inside.path.startswith(f'{outside.path}/cell#1/expert(')
    assert [turn.code for turn in inside.turns] == ['x = 1', 'final_answer({"name": "Bern", "people": 134000})']


async def test_a_run_truncated_after_any_record_resumes_inside_the_inner_run_and_repeats_nothing() -> None:
    store, whole = MemoryStore(), list[str]()
    async with two_agents(store, whole) as agent:
        expected = await agent.run('go', run_id='r')
    assert (expected.output, expected.usage.requests, whole) == ('sent a', 4, ['a'])
    records, info = await store.load('r'), await store.info('r')
    for cut in range(1, len(records) + 1):
        done = [record for record in records[:cut] if record.kind == 'done']
        asked = [record.path for record in done if name_of(record.path) == 'ask']
        outer = sum(path.count('/') == 1 for path in asked)
        sent_before = any(name_of(record.path).startswith('send(') for record in done)
        started = any(record.kind == 'started' for record in records[:cut])
        copy, effects = await copy_run(store, info, upto=cut), list[str]()
        async with two_agents(store, effects, outer, len(asked) - outer) as agent:
            result = await agent.resume(copy.run)
            if result.ended == 'approval':
                assert started
                assert not sent_before
                await agent.answer(copy.run, {'again': True})
                result = await agent.resume(copy.run)
        assert (result.output, result.usage.requests) == ('sent a', 4), cut
        assert effects == ([] if sent_before else ['a']), cut


def two_agents(store: MemoryStore, effects: list[str], outer: int = 0, inner: int = 0) -> Agent:
    """An agent in an agent, as a new process would create them, whose models skip replies that they have given."""

    @tool(idempotent=False)
    def send(text: str) -> str:
        """Send."""
        effects.append(text)
        return f'sent {text}'

    inner_model = ScriptedModel([block('x = "a"'), block('final_answer(send(x))')][inner:])
    outer_model = ScriptedModel([block('a = inner("go")'), block('final_answer(a)')][outer:])
    return Agent(outer_model, tools=[Agent(inner_model, name='inner', tools=[send])], journal=store)


@JOURNALS
async def test_an_inner_run_without_an_answer_raises_in_the_code(journal: str | None) -> None:
    inner = expert(*[block('x = 1')] * 3, limits=RunLimits(steps=2))
    code = 'try:\n    expert("a")\nexcept Exception as error:\n    final_answer(f"{type(error).__name__}: {error}")'
    async with Agent(ScriptedModel([block(code)]), tools=[inner], journal=journal) as outer:
        result = await outer.run('go')
    assert result.output == 'ToolError: expert gave no answer: it ended with max_steps'
    assert not inner._runner._open, 'nothing stays open'  # pyright: ignore[reportPrivateUsage]


async def test_an_error_of_the_inner_run_is_an_error_of_the_call() -> None:
    def breaks(ctx: Context[None]) -> str:
        raise KeyError('x')

    inner = expert(BERN, instructions=breaks)
    model = ScriptedModel([block('expert("a")'), block('final_answer(1)')])
    async with Agent(model, tools=[inner]) as outer:
        result = await outer.run('go')
    assert 'the function breaks of the instructions failed' in (result.steps[0].observation or '')


async def test_the_limits_of_the_outer_run_count_what_the_inner_one_uses() -> None:
    inner = expert(block('x = 1'), BERN)
    model = ScriptedModel([block('expert("a")'), block('final_answer(1)')])
    async with Agent(model, tools=[inner], limits=RunLimits(requests=3)) as outer:
        assert (await outer.run('go')).ended == 'max_requests'


async def test_the_time_limit_of_the_calling_cell_does_not_count_the_inner_run() -> None:
    async def wait() -> int:
        """Wait longer than the outer cell may."""
        await asyncio.sleep(3)
        return 7

    inner = Agent(ScriptedModel([block('final_answer(await wait())')]), name='inner', tools=[wait])
    limits = SandboxSettings(limits=Limits(seconds=2))
    model = ScriptedModel([block('final_answer(inner("go"))')])
    async with Agent(model, tools=[inner], sandbox_settings=limits) as outer:
        assert (await outer.run('go')).output == 7


async def test_deps_are_passed_on_where_their_types_fit() -> None:
    def people(ctx: Context[City]) -> int:
        """How many people."""
        return ctx.deps.people

    inner = Agent(ScriptedModel([block('final_answer(people())')]), name='inner', tools=[people])
    async with Agent(ScriptedModel([block('final_answer(inner("go"))')]), tools=[inner], deps_type=City) as outer:
        assert (await outer.run('go', deps=City('Bern', 7))).output == 7
    async with Agent(ScriptedModel([]), tools=[inner]) as outer:
        with pytest.raises(AgentError, match='the tool people needs deps of type City: pass them by name'):
            await outer.run('go')
        with pytest.raises(TypeError, match='the tool people needs deps of type City, not'):
            await outer.run('go', deps='Bern')


def test_equal_names_are_refused() -> None:
    one, two = Agent(ScriptedModel([])), Agent(ScriptedModel([]))
    outer = Agent(ScriptedModel([]), tools=[one])
    with pytest.raises(ToolDefinitionError, match=r"two tools have the name 'agent'; .* as_tool\(name=…\)"):
        outer.tool(two)
    outer.tool(two.as_tool(name='second'))
    with pytest.raises(ToolDefinitionError, match='not a Python identifier'):
        Agent(ScriptedModel([]), name='an expert').as_tool()


async def test_an_agent_cannot_be_its_own_tool() -> None:
    one = Agent(ScriptedModel([]), name='one')
    two = Agent(ScriptedModel([]), name='two', tools=[one])
    three = Agent(ScriptedModel([]), name='three', tools=[Toolset('inner', [two])])
    for own in (one, two, three.as_tool()):
        with pytest.raises(AgentError, match='the agent one cannot be its own tool, not even through other agents'):
            one.tool(own)
        with pytest.raises(AgentError, match='the agent one cannot be its own tool'):
            await one.run('go', tools=[own])


@JOURNALS
@pytest.mark.parametrize('again', ['the same', 'other words'])
async def test_a_second_solution_repeats_no_effect_of_an_inner_run(journal: str | None, again: str) -> None:
    sent: list[str] = []

    @tool(idempotent=False)
    def send(text: str) -> str:
        """Send."""
        sent.append(text)
        return 'sent'

    inner = Agent(ScriptedModel([block('final_answer(send("a"))')] * 2), name='inner', tools=[send])
    replies = [block(f'final_answer(inner("{task}"))') for task in ('the same', again)]
    async with Agent(ScriptedModel(replies), tools=[inner], agree=2, journal=journal) as outer:
        result = await outer.run('go')
    assert sent == ['a']
    assert result.output == 'sent'
    assert result.agreement is not None
    assert result.agreement.agreed is (True if again == 'the same' else None)
    assert ('send was called' in result.agreement.reason) == (again == 'other words')
