"""A run of an agent that any released version has written can be read and resumed, for ever."""

from pathlib import Path

import pytest

from habilis.agent.durable.trajectory import read_trajectories
from habilis.journal import MemoryStore
from habilis.journal.contract import SCHEMA
from habilis.journal.copies import copy_run, import_run
from habilis.journal.runs import read_run
from tests.journal import versions
from tests.journal.versions.agent_story import CODE, MADE, NAME, REPLIES, shop

FOLDER = Path(versions.__file__).parent
every_version = pytest.mark.parametrize('version', range(1, SCHEMA + 1))


async def stored(version: int) -> MemoryStore:
    """The run in a store of today."""
    store = MemoryStore()
    await import_run(store, (FOLDER / str(version) / NAME).read_text(encoding='ascii'))
    return store


@every_version
async def test_its_steps_calls_and_result_are_read(version: int) -> None:
    store = await stored(version)
    [trajectory] = await read_trajectories(await read_run(store, 'run-1'))
    assert [turn.code for turn in trajectory.turns] == [CODE, None, 'final_answer(2)']
    calls = [(call.tool, call.decision, call.ok, call.side) for turn in trajectory.turns for call in turn.calls]
    assert calls == [
        ('look_up', 'allowed', True, 'code'),
        ('order', 'refused', False, 'code'),
        ('order', 'approved', True, 'model'),
    ]
    MADE.clear()
    async with shop(store, ()) as agent:
        result = await agent.resume('run-1')
    assert (result.output, result.ended, len(result.steps), MADE) == (2, 'answer', 3, [])
    assert [step.calls for step in result.steps] == [turn.calls for turn in trajectory.turns]
    assert [reply.message for reply in REPLIES] == [each for each in result.messages if each.role == 'assistant']
    assert result.steps[0].calls[0].log == ('in the cellar',)
    assert '7' in result.messages[2].text


@every_version
async def test_it_is_resumed_from_the_middle_of_its_first_cell(version: int) -> None:
    store = await stored(version)
    records = await store.load('run-1')
    looked_up = next(record for record in records if record.kind == 'done' and '/look_up(' in record.path)
    copy = await copy_run(store, await store.info('run-1'), upto=looked_up.seq)
    MADE.clear()
    async with shop(store, REPLIES[1:]) as agent:
        result = await agent.resume(copy.run)
    assert (result.output, MADE) == (2, ['order 2 lamps'])
