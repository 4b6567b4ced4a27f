"""H11, H12: `delegate` starts subagents: in parallel, bounded, visible under their parent, each stoppable alone."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from habilis import Agent, Context, RunLimits, ScriptedModel, tool
from habilis.agent import Helper
from habilis.agent.context.prompt import prompt_file
from habilis.agent.durable.trajectory import read_trajectories
from habilis.agent.events import AgentEvent, AnswerEvent, CodeEvent, RunFailed, RunFinished, RunStarted
from habilis.agent.memory_tools import memory_tools
from habilis.core.errors import AgentError, ModelUnavailable, RunNotFound, RunStopped
from habilis.journal import MemoryStore
from habilis.journal.runs import read_run
from habilis.memory import Memory
from habilis.models.contract import FunctionCall, Message, Reply
from habilis.models.tokens import count_message_tokens
from habilis.sandbox import Sandbox
from habilis.tools import Files, people_toolset
from tests.agent.scripts import block, sent

TWO = """
import asyncio
a, b = await asyncio.gather(delegate('DOUBLE', variables={'n': 4}), delegate('NEGATE', variables={'n': 7}))
final_answer([a, b])
"""
CAUGHT = 'try:\n    await delegate({arguments})\nexcept Exception as error:\n    final_answer(str(error))'


def by_task(replies: dict[str, str], **options: Any) -> ScriptedModel:
    """A model that replies to each task with its code. The longest key in the task wins, whoever asks first."""

    def reply(messages: Sequence[Message]) -> str:
        asked = next(message.text for message in messages if message.role == 'user')
        return block(replies[max((key for key in replies if key in asked), key=len)])

    return ScriptedModel(reply, **options)


@pytest.mark.parametrize('journal', ['off', None])
async def test_two_subagents_work_at_the_same_time_and_count_for_their_parent(journal: str | None) -> None:
    model = by_task({'go': TWO, 'DOUBLE': 'final_answer(2 * n)', 'NEGATE': 'final_answer(-n)'})
    async with Agent(model, helpers=True, journal=journal) as agent:
        result = await agent.run('go')
        assert result.output == [8, -7]
        assert result.usage.requests == agent.ledger.total.requests == 3
    assert "async def delegate(task: str, kind: Literal['code', 'research'] = 'code'" in sent(model, 0)
    assert 'delegate' not in sent(model, 1), 'the built-in kinds start no subagents of their own'


async def test_the_example_of_several_at_once_runs_as_the_model_is_told_it() -> None:
    def reply(messages: Sequence[Message]) -> str:
        if 'PART' in messages[1].text:
            return block('final_answer(7)')
        example = messages[0].text.partition('Several at once: `')[2].partition('`')[0]
        return block(example.replace('…', "'PART'") + '\nfinal_answer([a, b])')

    async with Agent(ScriptedModel(reply), helpers=True) as agent:
        assert (await agent.run('go')).output == [7, 7]


async def test_a_kind_has_its_own_model_limits_tools_and_instructions() -> None:
    @tool
    def price(item: str) -> int:
        """Price of an item."""
        return len(item)

    own = ScriptedModel([block('x = price("tea")'), block('y = x'), block('final_answer(y)')], name='scripted:own')
    helpers = {
        'buyer': Helper('Buys things.', model=own, limits=RunLimits(steps=2), tools=[price], instructions='Haggle.')
    }
    model = ScriptedModel([block(CAUGHT.format(arguments="'Buy tea', 'buyer'"))])
    async with Agent(model, helpers=helpers, instructions='Be polite.') as agent:
        result = await agent.run('go')
    assert result.output == 'buyer gave no answer: it ended with max_steps'
    assert 'buyer: Buys things.' in sent(model, 0)
    assert 'price' not in sent(model, 0)
    assert all(text in sent(own, 0) for text in ('Haggle.', 'Be polite.', 'def price'))
    assert {name: usage.requests for name, usage in result.usage_by_model.items()} == {model.name: 1, own.name: 2}


async def test_an_agent_is_a_kind_under_the_name_it_is_registered_with() -> None:
    inner = Agent(ScriptedModel([block('final_answer(21)')]), name='expert', output_type=int)
    model = ScriptedModel([block('final_answer(2 * await delegate("Half?", kind="half"))')])
    async with Agent(model, helpers={'half': inner}) as agent, inner:
        assert (await agent.run('go')).output == 42


async def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    async with Agent(ScriptedModel([block(CAUGHT.format(arguments="'x', 'painter'"))]), helpers=True) as agent:
        output = (await agent.run('go')).unwrap()
    assert "kind: expected Literal['code', 'research'], got 'painter'" in output


@pytest.mark.parametrize(
    ('helpers', 'message'),
    [
        ({'no name': Helper('x')}, "'no name' is not a Python identifier"),
        ({'x': 'an expert'}, 'helpers must be True, or a dict of `Helper'),
        (['code'], 'helpers must be True, or a dict of `Helper'),
    ],
)
def test_a_wrong_kind_is_refused_when_the_agent_is_made(helpers: Any, message: str) -> None:
    with pytest.raises((TypeError, AgentError), match=message):
        Agent(ScriptedModel([]), helpers=helpers)


async def test_an_error_of_a_subagent_is_an_exception_and_the_parent_continues() -> None:
    broken = Helper('x', model=ScriptedModel([ModelUnavailable('the server is down')]))
    model = ScriptedModel([block('await delegate("a", "broken")'), block('final_answer("went on")')])
    async with Agent(model, helpers={'broken': broken}) as agent:
        result = await agent.run('go')
    assert 'the server is down' in (result.steps[0].observation or '')
    assert result.output == 'went on'


# Bounds ---------------------------------------------------------------------------------------------------------------


async def test_a_run_may_start_only_so_many_subagents() -> None:
    code = """
import asyncio
found = await asyncio.gather(*(delegate(f"SMALL {n}") for n in range(4)), return_exceptions=True)
final_answer([item if isinstance(item, int) else str(item) for item in found])
"""
    model = by_task({'go': code, 'SMALL': 'final_answer(1)'})
    async with Agent(model, helpers=True, limits=RunLimits(helpers=3)) as agent:
        output = (await agent.run('go')).unwrap()
    assert output[:3] == [1, 1, 1]
    assert 'the run may start 3 subagents, and has' in output[3]


async def test_subagents_are_nested_only_so_deep() -> None:
    code = """
try:
    found = await delegate("go", "deeper")
except Exception as error:
    found = str(error)
final_answer(found)
"""
    agent = Agent(ScriptedModel([block('final_answer("the bottom")')]), name='level0')
    for level in range(1, 6):
        agent = Agent(ScriptedModel([block(code)]), name=f'level{level}', helpers={'deeper': agent})
    result = await agent.run('go')
    assert result.output == 'subagents are nested 3 deep at most: do this task here'


async def test_a_limit_of_the_parent_ends_its_subagents_too() -> None:
    model = by_task({'go': CAUGHT.format(arguments="'LOOP'"), 'LOOP': 'x = 1'})
    async with Agent(model, helpers=True, limits=RunLimits(requests=4)) as agent:
        result = await agent.run('go')
    assert result.usage.requests == 4
    assert result.output == 'code gave no answer: it ended with max_requests'


def test_an_agent_cannot_help_itself() -> None:
    one = Agent(ScriptedModel([]), name='one')
    two = Agent(ScriptedModel([]), name='two', helpers={'first': one})
    with pytest.raises(AgentError, match='the agent one cannot be its own tool'):
        one.tool(two)


# Files and dependencies -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize('given', ['folder', 'temporary', 'sandbox'])
async def test_the_files_are_shared_unless_the_kind_has_its_own(given: str, tmp_path: Path) -> None:
    code = (
        'open("a.txt", "w").write("from the parent")\nx = 1\n'
        'shared = await delegate("READ")\nown = await delegate("LOOK", "alone")\n'
        'final_answer([shared, own, open("b.txt").read()])'
    )
    look = 'import os\nopen("mine.txt", "w").write("c")\nfinal_answer([os.listdir("."), "x" in globals()])'
    read = 'open("b.txt", "w").write("from the helper")\nfinal_answer(open("a.txt").read())'
    model = by_task({'go': code, 'READ': read, 'LOOK': look})
    helpers = {'alone': Helper('Works alone.', files='own')}
    sandbox = await Sandbox.create(workspace=tmp_path) if given == 'sandbox' else None
    place: dict[str, Any] = (
        {'sandbox': sandbox} if sandbox else {'workspace': True if given == 'temporary' else tmp_path}
    )
    async with Agent(model, helpers=helpers, **place) as agent:
        assert (await agent.run('go')).output == ['from the parent', [['mine.txt'], False], 'from the helper']
    assert not (tmp_path / 'mine.txt').exists()
    if sandbox is not None:
        await sandbox.close()


async def test_a_subagent_has_the_tools_and_dependencies_of_the_run() -> None:
    def whoami(ctx: Context[str]) -> str:
        """Name of the user."""
        return ctx.deps

    model = by_task({'go': 'final_answer(await delegate("ASK"))', 'ASK': 'final_answer(whoami())'})
    async with Agent(model, helpers=True, deps_type=str) as agent:
        assert (await agent.run('go', deps='Ann', tools=[whoami])).output == 'Ann'


TRIES = """
def tries(path, mode):
    try:
        open(path, mode).close()
        return 'done'
    except OSError as error:
        return type(error).__name__

there = [name for name in NAMES if hasattr(tools, name)]
final_answer([tries('a.txt', 'r'), tries('a.txt', 'w'), tries('new.txt', 'w'), there])
"""


@pytest.mark.parametrize('python', [True, False])
@pytest.mark.parametrize('given', ['folder', 'sandbox'])
async def test_research_can_change_neither_files_nor_anything_else(given: str, python: bool, tmp_path: Path) -> None:
    (tmp_path / 'a.txt').write_text('kept')

    @tool
    def send(text: str) -> None:
        """Send a mail."""

    @tool(read_only=True)
    def look_up(word: str) -> str:
        """Look up a word."""
        return word

    tries = TRIES.replace('NAMES', "{'send', 'look_up', 'write_file', 'make_tool'}")
    own = Helper('Finds out.', model=ScriptedModel([block(tries)]), files='read_only')
    call = FunctionCall(id='1', name='delegate', arguments='{"task": "LOOK", "kind": "research"}')
    asked = block('final_answer(await delegate("LOOK", "research"))') if python else Reply(calls=(call,))
    sandbox = await Sandbox.create(workspace=tmp_path) if given == 'sandbox' else None
    place: dict[str, Any] = {'sandbox': sandbox} if sandbox else {'workspace': tmp_path}
    model = ScriptedModel([asked, 'Done.'], functions=not python)
    tools = [send, look_up, Files(tmp_path)]
    async with Agent(model, helpers={'research': own}, tools=tools, python=python, **place) as agent:
        result = await agent.run('go')
    found = str(result.output) if python else str(result.steps[0].observation).replace('"', "'")
    assert found == "['done', 'PermissionError', 'PermissionError', ['look_up']]"
    assert (tmp_path / 'a.txt').read_text() == 'kept'
    if sandbox is not None:
        await sandbox.close()


@pytest.mark.parametrize('kind', ['code', 'research'])
async def test_a_subagent_of_a_talk_has_a_short_prompt_of_its_own(kind: str, tmp_path: Path) -> None:
    model = by_task({'go': f'final_answer(await delegate("PART", {kind!r}))', 'PART': 'final_answer(1)'})
    options: dict[str, Any] = {'talk': True, 'instructions': 'Markdown is rendered.', 'workspace': True}
    async with Memory(tmp_path / 'memory.db') as memory:
        tools = [memory_tools(memory, 'talk'), people_toolset(), Files()]
        async with Agent(model, helpers=True, tools=tools, **options) as agent:
            await agent.run('go')
    assert all(text in sent(model, 0) for text in ('talk with a person', 'remember', 'Markdown'))
    prompt = model.requests[1].messages[0].text
    assert not any(text in prompt for text in ('person', 'remember', 'read_file', 'Markdown'))
    assert prompt.endswith(prompt_file(f'helper_{kind}'))
    assert count_message_tokens(model.requests[1].messages) <= 500


# Seen and stopped -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('journal', ['off', None])
async def test_events_of_subagents_reach_the_hooks_of_the_parent(journal: str | None) -> None:
    model = by_task({'go': TWO, 'DOUBLE': 'final_answer(2 * n)', 'NEGATE': 'final_answer(-n)'})
    seen: list[AgentEvent] = []
    async with Agent(model, helpers=True, journal=journal) as agent:
        events = [event async for event in agent.stream('go', hooks=[seen.append])]
    top = next(event for event in seen if isinstance(event, RunStarted))
    inner = [event for event in seen if isinstance(event, RunStarted) and event.parent]
    assert top.parent == ''
    assert [(event.parent, event.agent) for event in inner] == [(top.run, 'code')] * 2
    assert len({event.run for event in inner}) == 2
    assert {event.answer for event in seen if isinstance(event, AnswerEvent) and event.parent} == {-7, 8}
    assert isinstance(events[-1], RunFinished)
    assert not events[-1].parent
    assert len(events) == len(seen)


@pytest.mark.parametrize('journal', ['off', None])
async def test_one_subagent_is_stopped_and_the_others_continue(journal: str | None) -> None:
    code = """
import asyncio
a, b = await asyncio.gather(delegate("HANG"), delegate("WORK"), return_exceptions=True)
final_answer([str(a), b])
"""
    released = asyncio.Event()

    async def wait() -> int:
        """Wait."""
        await released.wait()
        return 5

    async def hang() -> None:
        """Never end."""
        await asyncio.Event().wait()

    model = by_task({'go': code, 'HANG': 'await hang()', 'WORK': 'final_answer(await wait())'})
    agent = Agent(model, helpers=True, tools=[wait, hang], journal=journal)
    failed: list[RunFailed] = []

    def stop(event: AgentEvent) -> None:
        if isinstance(event, CodeEvent) and 'hang()' in event.code and event.parent:
            agent.stop(event.run)
        if isinstance(event, RunFailed):
            failed.append(event)
            released.set()

    async with agent:
        result = await agent.run('go', hooks=[stop])
        assert result.output == ['code was stopped', 5]
        assert [event.text for event in failed] == ['RunStopped: the run was stopped']
        with pytest.raises(RunNotFound, match='no run nothing is under way here'):
            agent.stop('nothing')


async def test_a_stopped_run_raises_and_can_be_resumed() -> None:
    store = MemoryStore()
    model = ScriptedModel([block('x = 1'), block('final_answer(x)')])

    def stop(event: AgentEvent) -> None:
        if isinstance(event, CodeEvent) and event.code == 'x = 1':
            agent.stop('r')

    async with Agent(model, journal=store) as agent:
        with pytest.raises(RunStopped, match='the run was stopped'):
            await agent.run('go', run_id='r', hooks=[stop])
        assert (await store.info('r')).status == 'stopped'
        assert (await agent.resume('r')).output == 1


async def test_every_tool_call_of_a_subagent_has_a_row_in_the_record() -> None:
    """H10."""

    @tool
    def half(amount: int) -> int:
        """Halve."""
        return amount // 2

    store = MemoryStore()
    replies = {'go': TWO, 'DOUBLE': 'final_answer(half(n))', 'NEGATE': 'half("x")\nfinal_answer(1)'}
    async with Agent(by_task(replies), helpers=True, tools=[half], journal=store, limits=RunLimits(steps=1)) as agent:
        await agent.run('go', run_id='r')
    outer, *inner = await read_trajectories(await read_run(store, 'r'))
    rows = {
        one.inputs.task: [
            (call.tool, call.decision) for turn in one.turns for call in turn.calls if call.tool == 'half'
        ]
        for one in inner
    }
    assert [call.tool for turn in outer.turns for call in turn.calls] == ['delegate', 'delegate']
    assert rows == {'DOUBLE': [('half', 'allowed')], 'NEGATE': [('half', 'invalid')]}


# Together -------------------------------------------------------------------------------------------------------------


async def test_the_code_of_one_kind_comes_from_the_plan_of_another() -> None:
    """H13."""

    def implement(messages: Sequence[Message]) -> str:
        number = messages[-1].text.rpartition('the number ')[2].partition('.')[0]
        return block(f'final_answer({number} * 2)')

    helpers = {
        'plan': Agent(ScriptedModel(['1. Take the number 321.\n2. Double it.']), name='plan', python=False),
        'code': Helper('Writes code.', model=ScriptedModel(implement)),
    }
    code = 'plan = await delegate("Plan it.", "plan")\nfinal_answer(await delegate(f"Carry out this plan: {plan}"))'
    async with Agent(ScriptedModel([block(code)]), helpers=helpers) as agent:
        assert (await agent.run('go')).output == 642
