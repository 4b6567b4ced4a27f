"""A session whose process is killed in the middle of a turn is resumed by its id."""

import os
import subprocess
import sys

from habilis.memory import Memory
from tests.agent.scripts import block
from tests.assistant import worker
from tests.assistant.conftest import Open, said, sent
from tests.house.repository import ROOT
from tests.place import Place


def kill_in_second_turn(place: Place, id: str) -> None:
    """Run the worker until its second turn waits, and kill it."""
    command = [sys.executable, '-m', 'tests.assistant.worker', id, '--wait']
    paths = os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')])
    environment = {**os.environ, 'PYTHONPATH': paths}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=place.folder, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == 'waiting\n'
        process.kill()


async def test_a_session_killed_in_a_turn_is_resumed_by_its_id_with_variables_facts_and_tasks(
    session: Open, memory: Memory, place: Place
) -> None:
    kill_in_second_turn(place, 'boat')
    assert await said(memory, 'boat') == [
        ('user', 'My boat is called Nordlicht.'),
        ('assistant', '41'),
        ('user', 'One more?'),
    ]
    tools = [worker.count, worker.pause]
    async with session([block('final_answer(x + 2)')], id='boat', tools=tools) as chat:
        assert chat.unfinished is not None
        assert chat.unfinished.message == 'One more?'
        assert (await chat.finish()).output == 42
        assert (place.folder / 'calls').read_text() == 'called\n'  # nothing that was recorded is done again
        assert (await chat.send('Two more?')).output == 43
        assert 'One more?' in sent(chat, 0)
        assert [turn.text for turn in await chat.turns()][-4:] == ['One more?', '42', 'Two more?', '43']
    assert [fact.text for fact in await memory.facts()] == ['The boat is called Nordlicht']
    assert [task.title for task in await memory.tasks()] == ['Paint the boat']


async def test_the_turn_that_was_cut_short_can_be_taken_back(session: Open, memory: Memory, place: Place) -> None:
    kill_in_second_turn(place, 'boat')
    async with session([block('final_answer(x)')], id='boat') as chat:
        taken = await chat.undo()
        assert taken is not None
        assert taken.task == 'One more?'
        assert chat.unfinished is None
        assert (await chat.send('What is x?')).output == 41
    assert ('user', 'One more?') not in await said(memory, 'boat')
