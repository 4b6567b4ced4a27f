"""Taking back the last turn of a conversation with checkpoints: its files are as before it."""

from pathlib import Path

import pytest

from habilis.agent import Agent
from habilis.agent.durable.file_history import FileHistory
from habilis.agent.durable.undo import take_back
from habilis.journal import MemoryStore
from habilis.models import ScriptedModel
from habilis.sandbox.files.workspace import Workspace
from tests.agent.scripts import block


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv('HABILIS_DATA', str(tmp_path / 'data'))
    (tmp_path / 'work').mkdir()
    return tmp_path / 'work'


async def test_files_of_the_turn_are_as_before_and_those_of_the_user_stay(folder: Path) -> None:
    (folder / 'a.txt').write_text('before')
    model = ScriptedModel(
        [block("open('a.txt', 'w').write('after')\nopen('b.txt', 'w').write('new')\nfinal_answer(1)")]
    )
    one = Agent(model, journal=MemoryStore(), workspace=folder, checkpoints=True)
    async with one, one.conversation() as chat:
        await chat.run('Change it.')
        (folder / 'a.txt').write_text('mine, after it')
        (folder / 'mine.txt').write_text('mine')
        taken = await chat.undo()
    assert taken is not None
    assert taken.files == ('a.txt', 'b.txt')
    files = {file.name: file.read_text() for file in folder.iterdir()}
    assert files == {'a.txt': 'before', 'mine.txt': 'mine'}
    FileHistory(Workspace(folder)).restore(taken.checkpoint)
    assert (folder / 'a.txt').read_text() == 'mine, after it', 'it was stored first'


async def test_all_files_are_as_before_if_the_turn_was_not_finished(folder: Path) -> None:
    store, model = MemoryStore(), ScriptedModel([block("open('a.txt', 'w').write('1')")])
    one = Agent(model, journal=store, workspace=folder, checkpoints=True)
    async with one, one.conversation() as chat:
        ended = await chat.run('Change it.', max_steps=1)
        (folder / 'b.txt').write_text('of a step that was killed')
        taken = await take_back(store, ended.run_id)
    assert taken.files == ('a.txt', 'b.txt')
