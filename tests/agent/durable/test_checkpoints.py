"""Checkpoints: the files of the workspace after each step, beside the user's own repository."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from habilis.agent import Agent
from habilis.agent.durable import file_history
from habilis.agent.durable.checkpoints import StoredCheckpoint, read_checkpoints
from habilis.agent.durable.file_history import FileHistory
from habilis.agent.durable.records import CHECKPOINT_CODEC, Checkpoint
from habilis.agent.durable.trajectory import read_trajectories
from habilis.core.errors import AgentError, WorkspaceError
from habilis.journal import MemoryStore
from habilis.journal.runs import fork, read_run
from habilis.journal.stores.files import FileStore
from habilis.journal.stores.sqlite import SqliteStore
from habilis.models import ScriptedModel
from habilis.sandbox.files.workspace import Workspace
from tests.agent.hooks.watching import code


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('HABILIS_DATA', str(tmp_path / 'data'))


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    (tmp_path / 'space').mkdir()
    return Workspace(tmp_path / 'space')


def git(folder: Path, *arguments: str) -> str:
    who = ['-c', 'user.name=Ann', '-c', 'user.email=ann@example.org']
    return subprocess.run(['git', *who, *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


def contents(folder: Path) -> dict[str, bytes | str]:
    return {
        str(path.relative_to(folder)): f'-> {path.readlink()}' if path.is_symlink() else path.read_bytes()
        for path in folder.rglob('*')
        if (path.is_file() or path.is_symlink()) and '.git' not in path.parts
    }


# The history of a folder ----------------------------------------------------------------------------------------------


def test_d13_a_state_is_restored_exactly(space: Workspace) -> None:
    folder = space.folder
    (folder / 'a').mkdir()
    (folder / 'a/x.txt').write_text('one')
    (folder / 'script').write_text('#!/bin/sh')
    (folder / 'script').chmod(0o755)
    (folder / 'link').symlink_to('/etc/passwd')
    (folder / 'it\'s "so"\n\\.txt').write_bytes(b'\xff\0\r\n')
    history = FileHistory(space)
    first, before = history.save('first').commit, contents(folder)
    (folder / 'a/x.txt').unlink()
    (folder / 'a').rmdir()
    (folder / 'a').write_text('now a file')
    (folder / 'script').chmod(0o644)
    (folder / 'link').unlink()
    (folder / 'new').mkdir()
    (folder / 'new/y.txt').write_text('two')
    second = history.save('second').commit
    assert history.save('again').commit == second, 'nothing has changed'
    after = contents(folder)
    undo, changed = history.restore(first)
    assert contents(folder) == before
    assert (folder / 'script').stat().st_mode & 0o777 == 0o755
    assert not (folder / 'new').exists()
    assert changed == ['a', 'a/x.txt', 'link', 'new/y.txt', 'script']
    assert undo == second
    history.restore(undo)
    assert contents(folder) == after
    changes = {'a': 'A', 'a/x.txt': 'D', 'link': 'D', 'new/y.txt': 'A', 'script': 'M'}
    assert {path: kind for kind, path in history.changes(first, second)} == changes
    assert '-one\n' in history.diff(first, second)


def test_a_restore_stores_what_was_there_first(space: Workspace) -> None:
    history = FileHistory(space)
    (space.folder / 'x').write_text('one')
    first = history.save('first').commit
    (space.folder / 'x').write_text('mine, never stored')
    (space.folder / 'x').chmod(0o600)
    undo, _ = history.restore(first)
    assert (space.folder / 'x').read_text() == 'one'
    assert (space.folder / 'x').stat().st_mode & 0o777 == 0o600, 'nobody else can read it now'
    history.restore(undo)
    assert (space.folder / 'x').read_text() == 'mine, never stored'


def test_a_restored_file_is_not_for_more_people_than_it_was(space: Workspace) -> None:
    history, key, script = FileHistory(space), space.folder / 'key', space.folder / 'script'
    for file in (key, script):
        file.touch(mode=0o600)
    first = history.save('first').commit
    key.unlink()
    script.chmod(0o700)
    umask = os.umask(0o077)
    try:
        history.restore(first)
    finally:
        os.umask(umask)
    assert [file.stat().st_mode & 0o777 for file in (key, script)] == [0o600, 0o600]


def test_d12_the_users_repository_is_not_touched(space: Workspace) -> None:
    folder = space.folder
    git(folder, 'init', '-q')
    (folder / 'committed').write_text('1')
    (folder / '.gitignore').write_text('secret.env\nbuild/\n')
    (folder / '.gitattributes').write_text('* text eol=crlf\n')
    git(folder, 'add', '.')
    git(folder, 'commit', '-qm', 'first')
    (folder / 'staged').write_text('2')
    git(folder, 'add', 'staged')
    (folder / 'committed').write_text('not committed\n')
    (folder / 'secret.env').write_text('TOKEN=1')
    (folder / 'build').mkdir()
    (folder / 'build/out').write_text('3')
    (folder / 'node_modules').mkdir()
    (folder / 'node_modules/dep.js').write_text('4')
    own = {path: path.read_bytes() for path in (folder / '.git').rglob('*') if path.is_file()}
    history = FileHistory(space)
    first = history.save('first').commit
    (folder / 'committed').write_text('changed')
    (folder / 'secret.env').write_text('TOKEN=2')
    history.restore(first)
    assert (folder / 'committed').read_text() == 'not committed\n', 'byte by byte, whatever .gitattributes says'
    assert (folder / 'secret.env').read_text() == 'TOKEN=2', 'ignored files are left alone'
    assert {path: path.read_bytes() for path in (folder / '.git').rglob('*') if path.is_file()} == own
    stored = {path for _, path in history.changes(None, first)}
    assert stored == {'committed', '.gitignore', '.gitattributes', 'staged'}
    assert history.folder.stat().st_mode & 0o077 == 0


def test_a_repository_inside_the_folder_is_stored_too(space: Workspace) -> None:
    inner = space.folder / 'libs' / 'inner'
    inner.mkdir(parents=True)
    git(inner, 'init', '-q')
    (inner / 'x').write_text('1')
    git(inner, 'add', 'x')
    git(inner, 'commit', '-qm', 'first')
    history = FileHistory(space)
    assert history.changes(None, history.save('first').commit) == [('A', 'libs/inner/x')]


def test_a_folder_that_is_too_large_is_refused_and_a_large_file_is_left_out(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_history, 'MAX_FILES', 3)
    monkeypatch.setattr(file_history, 'MAX_FILE_BYTES', 10)
    monkeypatch.setattr(file_history, 'MAX_BYTES', 20)
    history = FileHistory(space)
    (space.folder / 'large').write_bytes(b'x' * 11)
    (space.folder / 'a').write_bytes(b'x' * 10)
    saved = history.save('first')
    assert saved.too_large == ('large',)
    history.restore(saved.commit)
    assert (space.folder / 'large').exists()
    (space.folder / 'b').write_bytes(b'x' * 10)
    (space.folder / 'c').write_bytes(b'x')
    with pytest.raises(WorkspaceError, match='too much for checkpoints: name folders to leave out'):
        history.save('bytes')
    (space.folder / 'd').touch()
    with pytest.raises(WorkspaceError, match='more than 3 files'):
        history.save('files')


def test_a_file_that_changes_twice_in_one_moment_is_stored_twice(space: Workspace) -> None:
    history, file = FileHistory(space), space.folder / 'x'
    commits: set[str] = set()
    for number in range(5):
        file.write_text(str(number))
        commits.add(history.save('again').commit)
    assert len(commits) == 5


def test_another_git_configuration_and_a_lost_index_change_nothing(
    space: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('GIT_DIR', str(tmp_path / 'elsewhere'))
    monkeypatch.setenv('GIT_INDEX_FILE', str(tmp_path / 'index'))
    history = FileHistory(space)
    (space.folder / 'x').write_text('1')
    first = history.save('first').commit
    (history.folder / 'habilis-index.json').write_text('{')
    assert history.save('again').commit == first
    assert not (tmp_path / 'elsewhere').exists()


def test_a_restore_leaves_files_alone_that_are_ignored_in_that_state(space: Workspace) -> None:
    folder, history = space.folder, FileHistory(space)
    (folder / '.gitignore').write_text('secret.env\nbuild/\n')
    (folder / 'secret.env').write_text('TOKEN=1')
    (folder / 'build').mkdir()
    (folder / 'build/out').write_text('2')
    first, before = history.save('first').commit, contents(folder)
    (folder / '.gitignore').unlink()
    (folder / 'new').write_text('3')
    history.save('second')
    assert history.restore(first)[1] == ['.gitignore', 'new']
    assert contents(folder) == before


def test_a_file_that_is_ignored_later_is_still_stored(space: Workspace) -> None:
    folder, history = space.folder, FileHistory(space)
    (folder / 'main.py').write_text('old')
    first = history.save('first').commit
    (folder / '.gitignore').write_text('*.py\n')
    second = history.save('second').commit
    assert history.changes(first, second) == [('A', '.gitignore')], 'it was not deleted'
    (folder / 'main.py').write_text('work of a person')
    undo, _ = history.restore(first)
    assert contents(folder) == {'main.py': b'old'}
    history.restore(undo)
    assert (folder / 'main.py').read_text() == 'work of a person'


def test_files_that_git_does_not_list_do_not_count_as_removed(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_history, 'LIST_SECONDS', 0.3)
    history, file = FileHistory(space), space.folder / 'x'
    file.write_text('1')
    first = history.save('first').commit
    file.write_text('work of a person')
    os.mkfifo(space.folder / '.gitignore')  # git waits for it to be written
    with pytest.raises(WorkspaceError, match='cannot be listed'):
        history.restore(first)
    assert file.read_text() == 'work of a person'


def test_an_empty_folder_makes_room_for_a_file_and_one_with_ignored_files_does_not(space: Workspace) -> None:
    folder, history = space.folder, FileHistory(space)
    (folder / '.gitignore').write_text('*.log')
    (folder / 'out').write_text('1')
    first = history.save('first').commit
    (folder / 'out').unlink()
    (folder / 'out/sub').mkdir(parents=True)
    undo, _ = history.restore(first)
    assert (folder / 'out').read_text() == '1'
    history.restore(undo)
    (folder / 'out').mkdir()
    (folder / 'out/x.log').write_text('2')
    with pytest.raises(WorkspaceError, match='is a folder, not a file; not all files were restored'):
        history.restore(first)
    assert (folder / 'out/x.log').read_text() == '2'


def test_files_that_are_or_were_too_large_stay_as_they_are(
    space: Workspace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(file_history, 'MAX_FILE_BYTES', 10)
    history, file = FileHistory(space), space.folder / 'x'
    file.write_bytes(b'small')
    first = history.save('first').commit
    file.write_bytes(b'large' * 10)
    second = history.save('second')
    assert history.restore(first)[1] == []
    assert 'too large for checkpoints, so it stays as it is: x' in caplog.text
    file.write_bytes(b'again')
    history.save('third')
    assert history.restore(second.commit, keep=second.too_large)[1] == []
    assert file.read_bytes() == b'again'


def test_a_data_folder_inside_the_workspace_is_not_stored(space: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('HABILIS_DATA', str(space.folder / 'my [data]'))
    history = FileHistory(space)
    (space.folder / 'x').write_text('1')
    first = history.save('first').commit
    (space.folder / 'x').write_text('2')
    undo, changed = history.restore(first)
    assert changed == ['x']
    assert history.changes(first, undo) == [('M', 'x')]


def test_a_git_that_was_killed_and_a_folder_that_is_gone(space: Workspace) -> None:
    history = FileHistory(space)
    first = history.save('first').commit
    (history.folder / 'refs/heads/files.lock').touch()
    (space.folder / 'x').touch()
    assert history.save('second').commit != first
    (space.folder / 'x').unlink()
    space.folder.rmdir()
    with pytest.raises(WorkspaceError, match='cannot be listed: No such file'):
        history.save('third')


def test_a_data_folder_that_cannot_be_written_is_named(space: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('HABILIS_DATA', os.devnull)
    with pytest.raises(WorkspaceError, match=r"checkpoints cannot be stored in '/dev/null/.*': Not a directory"):
        FileHistory(space).save('first')


# Runs -----------------------------------------------------------------------------------------------------------------


async def checkpoints_of(store: MemoryStore, run: str) -> list[StoredCheckpoint]:
    view = await read_run(store, run)
    [trajectory] = await read_trajectories(view)
    return await read_checkpoints(view, trajectory.path)


SCRIPT = [code("open('a', 'w').write('1')"), code('1 + 1'), code("open('a', 'w').write('2')"), code('final_answer(1)')]


async def test_d12_each_step_that_changed_files_has_a_checkpoint(space: Workspace) -> None:
    (space.folder / 'mine').write_text('before')
    store = MemoryStore()
    async with Agent(ScriptedModel(SCRIPT), workspace=space.folder, journal=store, checkpoints=True) as agent:
        await agent.run('Count up', run_id='run-1')
    found = await checkpoints_of(store, 'run-1')
    assert [stored.checkpoint.step for stored in found] == [0, 1, 3]
    assert {stored.checkpoint.workspace for stored in found} == {str(space.folder)}
    history = FileHistory(space)
    assert history.changes(found[0].checkpoint.commit, found[1].checkpoint.commit) == [('A', 'a')]
    log = git(history.folder, 'log', '-1', '--format=%B', found[2].checkpoint.commit)
    assert log.startswith("step 3: Count up\n\nopen('a', 'w').write('2')")
    history.restore(found[1].checkpoint.commit)
    assert contents(space.folder) == {'mine': b'before', 'a': b'1'}


async def test_a_journal_inside_the_workspace_is_not_stored(space: Workspace) -> None:
    for store in (SqliteStore(space.folder / 'runs.db'), FileStore(space.folder / 'runs')):
        async with Agent(ScriptedModel(SCRIPT), workspace=space.folder, journal=store, checkpoints=True) as agent:
            await agent.run('go', run_id='run-1')
        view = await read_run(store, 'run-1')
        [trajectory] = await read_trajectories(view)
        first, *_, last = await read_checkpoints(view, trajectory.path)
        assert last.checkpoint.step == 3, 'the journal is not a change'
        assert FileHistory(space).restore(first.checkpoint.commit)[1] == ['a']
        assert (await read_run(store, 'run-1')).info.status == 'done'


async def test_a_resumed_run_continues_its_checkpoints(space: Workspace) -> None:
    store = MemoryStore()
    async with Agent(ScriptedModel(SCRIPT), workspace=space.folder, journal=store, checkpoints=True) as agent:
        await agent.run('go', run_id='run-1', max_steps=1)
    (space.folder / 'a').write_text('what a person made of it')
    async with Agent(ScriptedModel(SCRIPT[1:]), workspace=space.folder, journal=store, checkpoints=True) as agent:
        assert (await agent.resume('run-1', max_steps=5)).output == 1
    found = await checkpoints_of(store, 'run-1')
    assert [stored.checkpoint.step for stored in found] == [0, 1, 1, 3]
    FileHistory(space).restore(found[2].checkpoint.commit)
    assert contents(space.folder) == {'a': b'what a person made of it'}


async def forked(store: MemoryStore, space: Workspace, step: int) -> str:
    """A run of four steps, and a fork of it before this one; its name."""
    async with Agent(ScriptedModel(SCRIPT), workspace=space.folder, journal=store, checkpoints=True) as agent:
        await agent.run('go', run_id='run-1')
    [trajectory] = await read_trajectories(await read_run(store, 'run-1'))
    return (await fork(store, 'run-1', trajectory.turns[step - 1].path)).run


READ = code("import os\nfinal_answer([open('a').read() if os.path.exists('a') else None, sorted(os.listdir())])")


@pytest.mark.parametrize('step', [1, 3])
async def test_a_fork_has_the_files_of_its_step(space: Workspace, step: int) -> None:
    answer: list[object] = ['1', ['a']] if step == 3 else [None, list[str]()]
    store = MemoryStore()
    copy = await forked(store, space, step)
    async with Agent(ScriptedModel([READ]), workspace=space.folder, journal=store, checkpoints=True) as agent:
        assert (await agent.resume(copy)).output == answer


async def test_a_fork_may_continue_in_an_empty_folder(space: Workspace, tmp_path: Path) -> None:
    store = MemoryStore()
    copy = await forked(store, space, 3)
    (space.folder / 'a').write_text('work of a person')
    script = [code("open('a', 'a').write('!')"), READ]
    async with Agent(ScriptedModel(script), workspace=tmp_path / 'new', journal=store, checkpoints=True) as agent:
        assert (await agent.resume(copy)).output == ['1!', ['a']]
    assert (space.folder / 'a').read_text() == 'work of a person'


async def test_a_fork_does_not_overwrite_what_a_person_has_changed_since(space: Workspace, tmp_path: Path) -> None:
    store = MemoryStore()
    copy = await forked(store, space, 3)
    (space.folder / 'a').write_text('work of a person')
    for folder, reason in ((space.folder, 'have changed since the last checkpoint'), (tmp_path, 'is not empty')):
        async with Agent(ScriptedModel([READ]), workspace=folder, journal=store, checkpoints=True) as agent:
            with pytest.raises(WorkspaceError, match=f'{reason}: resume it in an empty folder'):
                await agent.resume(copy)
    assert (space.folder / 'a').read_text() == 'work of a person'


async def test_a_workspace_that_grows_too_large_is_reported_and_the_run_continues(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_history, 'MAX_FILES', 2)
    store = MemoryStore()
    script = [code("for name in 'abc': open(name, 'w').close()"), code('final_answer(1)')]
    async with Agent(ScriptedModel(script), workspace=space.folder, journal=store, checkpoints=True) as agent:
        assert (await agent.run('go', run_id='run-1')).output == 1
    found = await checkpoints_of(store, 'run-1')
    assert 'more than 2 files' in found[1].checkpoint.problem
    async with Agent(ScriptedModel(script), workspace=space.folder, journal=store, checkpoints=True) as agent:
        with pytest.raises(WorkspaceError, match='more than 2 files'):
            await agent.run('go')


def test_checkpoints_that_cannot_be_made_are_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = ScriptedModel([])
    with pytest.raises(AgentError, match='checkpoints=True needs a workspace'):
        Agent(model, checkpoints=True)
    with pytest.raises(AgentError, match='needs a folder that stays'):
        Agent(model, checkpoints=True, workspace=True)
    with pytest.raises(AgentError, match='needs a journal'):
        Agent(model, checkpoints=True, workspace=tmp_path, journal='off')
    monkeypatch.setenv('PATH', '')
    with pytest.raises(AgentError, match='need the command git: install git'):
        Agent(model, checkpoints=True, workspace=tmp_path, journal=MemoryStore())


async def test_a_forged_checkpoint_is_no_option_of_git(space: Workspace) -> None:
    store = MemoryStore()
    async with Agent(ScriptedModel(SCRIPT), workspace=space.folder, journal=store, checkpoints=True) as agent:
        await agent.run('go', run_id='run-1')
    view = await read_run(store, 'run-1')
    [trajectory] = await read_trajectories(view)
    forged = Checkpoint(step=1, workspace=str(space.folder), commit=f'--output={space.folder}/x')
    note = next(record for record in view.records if isinstance(record.value, dict) and 'files' in record.value)
    view.records = [replace(note, value={'files': CHECKPOINT_CODEC.write(forged)})]
    assert await read_checkpoints(view, trajectory.path) == []
