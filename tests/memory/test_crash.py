"""A turn that was kept is there after a kill."""

import subprocess
import sys

from tests.house.repository import ROOT
from tests.memory.conftest import Open


def kill_a_writer(where: str) -> list[str]:
    """Ids of the turns that it said it had kept."""
    command = [sys.executable, '-m', 'tests.memory.sample', where]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as writer:
        assert writer.stdout is not None
        confirmed = [writer.stdout.readline().strip() for _ in range(40)]
        writer.kill()
        return confirmed + [line.strip() for line in writer.stdout if line.endswith('\n')]


async def test_every_turn_that_was_confirmed_survives_a_kill(where: str, open_memory: Open) -> None:
    confirmed = kill_a_writer(where)
    memory = open_memory()
    turns = await memory.turns('chat')
    assert [turn.id for turn in turns][: len(confirmed)] == confirmed
    assert [turn.text for turn in turns] == [f'turn {number}' for number in range(len(turns))]
    added = await memory.add_turn('chat', 'user', 'after the crash')
    assert added.position == len(turns) + 1
    assert (await memory.search('crash'))[0].entry == added
