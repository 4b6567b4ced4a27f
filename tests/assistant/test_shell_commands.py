"""`Session.run_command`: shell commands of the user."""

import asyncio
import sys
from pathlib import Path

import pytest

from habilis.core.errors import ToolDenied
from habilis.memory import Memory
from habilis.tools import CommandPolicy, Shell
from tests.assistant.conftest import Open, said, sent
from tests.place import Place

pytestmark = pytest.mark.skipif(sys.platform != 'linux', reason='needs the process backend')


@pytest.fixture
def folder(place: Place) -> Path:
    """A shared folder."""
    made = place.folder / 'project'
    made.mkdir()
    (made / 'notes.txt').write_text('the plan\n')
    return made


async def test_a_command_sees_the_shared_folder_and_the_next_message_tells_of_it_also_after_a_resume(
    session: Open, memory: Memory, folder: Path
) -> None:
    shown: list[str] = []
    async with session(['Hello.', 'I see.'], workspace=folder) as chat:
        await chat.send('Hi.')
        ran = await chat.run_command('ls; echo oops >&2; exit 3', shown.append)
        assert (''.join(shown), ran.problem) == ('notes.txt\noops\n', 'exit code 3')
        assert (await said(memory))[-1] == ('tool', '$ ls; echo oops >&2; exit 3\nnotes.txt\noops\n[exit code 3]')
        id = chat.id
    async with session(['Resumed.', 'Again.'], workspace=folder, id=id) as again:
        await again.send('What is there?')
        await again.send('And now?')
        assert sent(again, 0)[-1].startswith('What is there?\n\n<command by="user">\n$ ls; echo oops')
        assert [text for text in sent(again, 1) if text.startswith('And now?')] == ['And now?']


@pytest.mark.parametrize(('mode', 'changes'), [('ask', True), ('plan', False)])
async def test_a_command_changes_files_without_a_question_unless_nothing_may_be_changed(
    session: Open, folder: Path, mode: str, changes: bool
) -> None:
    async with session([], workspace=folder, mode=mode) as chat:
        await chat.run_command('echo 1 > new.txt', print)
    assert (folder / 'new.txt').exists() == changes


async def test_a_command_that_is_stopped_leaves_what_it_has_printed(session: Open, folder: Path) -> None:
    async with session(['Yes.'], workspace=folder) as chat:
        printed = asyncio.Event()
        task = asyncio.ensure_future(chat.run_command('echo begun; sleep 600', lambda _: printed.set()))
        await printed.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await chat.send('Was it stopped?')
        assert 'begun\n[stopped by the user]' in sent(chat, 0)[-1]


async def test_undo_brings_back_what_the_commands_before_the_turn_printed(session: Open, folder: Path) -> None:
    async with session(['One.', 'Two.'], workspace=folder) as chat:
        await chat.run_command('cat notes.txt', print)
        await chat.send('Read this.')
        await chat.undo()
        await chat.send('Read that.')
        assert 'Read that.\n\n<command by="user">\n$ cat notes.txt\nthe plan\n</command>' in sent(chat, 1)[-1]


async def test_the_policy_of_a_shell_holds_for_the_user_too(session: Open, folder: Path) -> None:
    shell = Shell(policy=CommandPolicy(), needs_approval=True)
    async with session([], workspace=folder, sandbox='process', tools=[shell]) as chat:
        with pytest.raises(ToolDenied, match='rm'):
            await chat.run_command('rm notes.txt', print)
