"""Forks with another task, other code or another result. The run that they are made of stays as it is."""

import pytest

from habilis.agent import Agent
from habilis.agent.durable.edits import fork_edited
from habilis.agent.durable.trajectory import read_trajectories
from habilis.core.codec import Json
from habilis.core.errors import JournalError
from habilis.journal import MemoryStore
from habilis.journal.copies import export_run
from habilis.journal.runs import read_run
from habilis.models import ScriptedModel
from habilis.models.scripted import Scripted
from habilis.tools import tool
from tests.agent.durable.recorded import block

calls: list[int] = []


@tool
def double(number: int) -> int:
    """Twice as much."""
    if number == 13:
        raise ValueError(number)
    calls.append(number)
    return 2 * number


async def run(store: MemoryStore, *replies: Scripted, fork: str = '') -> object:
    """The output of the run `r`, or of its fork, with these replies."""
    calls.clear()
    async with Agent(ScriptedModel(list(replies)), tools=[double], journal=store) as agent:
        return (await agent.resume(fork) if fork else await agent.run('Do it', run_id='r')).output


async def recorded() -> MemoryStore:
    store = MemoryStore()
    script = (block('x = double(2)\ny = double(5)'), 'I look.\n' + block('x += 1'), block('final_answer(x + y)'))
    assert await run(store, *script) == 15
    return store


async def test_a_fork_runs_other_code_and_then_asks_the_model() -> None:
    store = await recorded()
    before = await export_run(store, 'r')
    code = 'text = """\n```\n"""\nx *= 10'
    copy = await fork_edited(store, 'r', 'agent#1/ask#2', code)
    assert await run(store, block('final_answer((x, y, text))'), fork=copy.run) == (40, 10, '\n```\n')
    [agent] = await read_trajectories(await read_run(store, copy.run))
    assert (agent.turns[1].code, copy.parent, calls) == (code, 'r', [])
    assert await export_run(store, 'r') == before


async def test_a_fork_has_another_result_of_a_call_and_runs_its_code_again() -> None:
    store = await recorded()
    view = await read_run(store, 'r')
    first = next(path for path, _ in view.steps() if path.startswith('agent#1/cell#1/double'))
    copy = await fork_edited(store, 'r', first, 100)
    assert await run(store, block('final_answer(x + y)'), fork=copy.run) == 110
    assert calls == [5], 'the changed call was made again, or the call after it was not'


async def test_a_call_that_failed_gets_a_result_that_may_be_long() -> None:
    store, long = MemoryStore(), 'x' * 100_000
    assert await run(store, block('x = double(13)'), block('final_answer(0)')) == 0
    view = await read_run(store, 'r')
    [path] = [path for path, _ in view.steps() if '/double(' in path]
    copy = await fork_edited(store, 'r', path, long)
    assert await run(store, block('final_answer(x)'), fork=copy.run) == long


async def test_a_fork_with_another_task_begins_anew() -> None:
    store = await recorded()
    copy = await fork_edited(store, 'r', 'agent#1', 'Do\nsomething else')
    assert copy.title == 'Do something else'
    assert await run(store, block('final_answer(1)'), fork=copy.run) == 1
    [agent] = await read_trajectories(await read_run(store, copy.run))
    assert (agent.inputs.task, len(agent.turns)) == ('Do\nsomething else', 1)


@pytest.mark.parametrize(('path', 'new'), [('agent#1/ask#9', 'x'), ('agent#1/cell#2', 'x'), ('agent#1', 5)])
async def test_what_cannot_be_changed_is_refused(path: str, new: Json) -> None:
    store = await recorded()
    with pytest.raises(JournalError, match='nothing to change'):
        await fork_edited(store, 'r', path, new)
    assert len(await store.runs()) == 1
