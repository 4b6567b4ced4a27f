"""`AGENTS.md` and its kin in a shared folder."""

from pathlib import Path

import pytest

from habilis.assistant import Session, TurnStarted
from habilis.assistant.project_instructions import MAX_CHARACTERS, ProjectInstructions
from habilis.core.errors import ModelUnavailable
from habilis.models.scripted import ScriptedModel
from tests.assistant.conftest import Open, Page
from tests.place import Place


def _names(folder: Path, *, context_tokens: int = 128_000) -> list[str]:
    return [str(file) for file in ProjectInstructions(folder, context_tokens=context_tokens).files()]


def test_the_nearest_comes_first_and_nothing_above_the_shared_folder_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / 'repository' / 'package'
    inner.mkdir(parents=True)
    (inner.parent / '.git').mkdir()
    for folder in (inner, inner.parent, tmp_path):
        (folder / 'AGENTS.md').write_text(f'Rules of {folder.name}')
    (inner.parent / 'CLAUDE.md').symlink_to('AGENTS.md')
    assert _names(inner.parent) == ['AGENTS.md (19 bytes)']
    monkeypatch.chdir(inner)
    assert _names(inner.parent) == ['package/AGENTS.md (16 bytes)', 'AGENTS.md (19 bytes)']
    assert _names(inner) == ['AGENTS.md (16 bytes)']


def test_a_long_file_is_cut_and_a_link_to_the_outside_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / 'secret').write_text('a key')
    folder = tmp_path / 'shared'
    folder.mkdir()
    (folder / 'CLAUDE.md').symlink_to(tmp_path / 'secret')
    (folder / 'AGENTS.md').write_text('x' * 20_000)
    assert _names(folder) == [f'AGENTS.md (20.0 kB, the first {MAX_CHARACTERS:,} characters)']
    assert _names(folder, context_tokens=4096) == ['AGENTS.md (20.0 kB, the first 2,048 characters)']


async def test_a_changed_file_counts_from_the_next_turn_on_and_a_resumed_turn_sends_what_it_had(
    session: Open, place: Place
) -> None:
    file = place.folder / 'AGENTS.md'
    file.write_text('Answer in French.')
    page = Page()
    async with session(['Oui.', ModelUnavailable('down')], view=page, workspace=place.folder) as chat:
        await chat.send('Ready?')
        assert 'Instructions of the project, from AGENTS.md:\nAnswer in French.' in _system(chat)
        file.write_text('Answer in Italian.')
        with pytest.raises(ModelUnavailable):
            await chat.send('And now?')
        assert 'Answer in Italian.' in _system(chat)
    file.write_text('Answer in Greek.')
    async with session(['Si.', 'Nai.'], id=chat.id, workspace=place.folder) as chat:
        await chat.finish()
        assert 'Answer in Italian.' in _system(chat)
        await chat.send('And then?')
        assert 'Answer in Greek.' in _system(chat)
    shown = [event.instructions for event in page.events if isinstance(event, TurnStarted)]
    assert [[one.text for one in files or ()] for files in shown] == [['Answer in French.'], ['Answer in Italian.']]


async def test_nothing_is_read_of_a_folder_that_is_not_shared(session: Open, place: Place) -> None:
    (place.folder / 'AGENTS.md').write_text('Answer in French.')
    async with session(['Yes.']) as chat:
        await chat.send('Ready?')
        assert 'French' not in _system(chat)


def _system(chat: Session) -> str:
    assert isinstance(chat.model, ScriptedModel)
    return chat.model.requests[-1].messages[0].text
