"""What a turn changes in a shared folder is told as diffs, where it happens, and in all at its end."""

from pathlib import Path

import pytest

from habilis.assistant import FileEdit, FilesEdited, TurnEnded, file_edits
from habilis.tools import Approval
from tests.agent.scripts import block
from tests.assistant.conftest import Open, Page
from tests.place import Place

PNG = r"b'\x89PNG\0' * 10"


@pytest.fixture
def folder(place: Place) -> Path:
    """A folder that is shared with the session."""
    made = place.folder / 'shared'
    made.mkdir()
    (made / 'a.py').write_text('x = 1\ny = 2\n')
    (made / 'old.txt').write_text('gone\n')
    return made


def told(page: Page) -> list[list[str]]:
    return [[str(edit) for edit in event.edits] for event in page.events if isinstance(event, FilesEdited)]


def in_all(page: Page) -> list[FileEdit]:
    (end,) = [event for event in page.events if isinstance(event, TurnEnded)]
    return list(end.edits)


async def test_what_code_and_tools_change_is_told_where_it_happens_and_once(session: Open, folder: Path) -> None:
    page = Page()
    cells = [
        block("update_file('a.py', 'x = 1', 'x = 5')\nopen('b.txt', 'w').write('one\\ntwo\\n')"),
        block(f"import os\nos.remove('old.txt')\nopen('p.png', 'wb').write({PNG})"),
        block("open('a.py', 'w').write('x = 1\\ny = 3\\n')\nfinal_answer(1)"),
    ]
    async with session(cells, view=page, workspace=folder, mode='all') as chat:
        await chat.send('Go.')
    assert told(page) == [
        ['a.py +1 −1'],
        ['b.txt new, +2 −0'],
        ['old.txt deleted, +0 −1', 'p.png new, 50 bytes'],
        ['a.py +2 −2'],
    ]
    changed, *others = in_all(page)
    assert [str(edit) for edit in others] == ['b.txt new, +2 −0', 'old.txt deleted, +0 −1', 'p.png new, 50 bytes']
    assert changed.diff == '--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n x = 1\n-y = 2\n+y = 3\n'
    assert others[1].diff.startswith('--- a/old.txt\n+++ /dev/null\n')


async def test_a_diff_that_a_person_has_approved_is_not_told_again_and_the_next_one_is(
    session: Open, folder: Path
) -> None:
    page = Page(Approval(scope='always'))
    cell = block("write_file('one.txt', '1')\nwrite_file('/workspace/two.txt', '2')\nfinal_answer(1)")
    async with session([cell], view=page, workspace=folder, mode='ask') as chat:
        await chat.send('Go.')
    assert told(page) == [['two.txt new, +1 −0']]
    assert [edit.path for edit in in_all(page)] == ['one.txt', 'two.txt']


async def test_what_the_user_and_the_session_itself_have_written_is_not_of_a_turn(session: Open, folder: Path) -> None:
    page = Page()
    cells = [block('final_answer(1)'), block('final_answer(2)')]
    async with session(cells, view=page, workspace=folder.parent) as chat:  # memory and journal are in it
        await chat.send('Go.')
        (folder / 'a.py').write_text('mine')
        page.events.clear()
        await chat.send('Go on.')
    assert (told(page), in_all(page)) == ([], [])


async def test_in_a_folder_with_too_many_files_nothing_is_called_new_or_deleted_that_is_not(
    session: Open, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_edits, 'MAX_FILES', 2)
    (folder / 'z.py').write_text('z = 1\n')
    page = Page()
    cell = block("for name in ('a.py', 'A.py'): open(name, 'w').close()\nwrite_file('z.py', 'z = 2')\nfinal_answer(1)")
    async with session([cell], view=page, workspace=folder, mode='all') as chat:
        await chat.send('Go.')
    texts = [text for event in told(page) for text in event]
    assert any(text.startswith('z.py ') for text in texts)
    assert not [text for text in texts if 'new' in text or 'deleted' in text]
