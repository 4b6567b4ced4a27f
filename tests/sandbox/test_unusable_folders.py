"""Folders that cannot be a workspace or a mount: one clear error, and nothing on stderr."""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path

import pytest

from habilis.core.errors import SandboxError, WorkspaceError
from habilis.sandbox.session import Sandbox

NOBODY = 65534


def make_places(base: Path) -> None:
    (base / 'file').touch()
    (base / 'dangling').symlink_to(base / 'nothing')
    (base / 'loop').symlink_to(base / 'loop')
    os.mkfifo(base / 'fifo')
    with socket.socket(socket.AF_UNIX) as listening:
        before = Path.cwd()
        os.chdir(base)  # the path of a socket must be short
        listening.bind('socket')
        os.chdir(before)


@pytest.mark.parametrize('read_only', [False, True])
@pytest.mark.parametrize(
    ('name', 'reason'),
    [
        ('file', 'is not a folder'),
        ('file/below', 'is not a folder'),
        ('dangling', 'does not exist'),
        ('dangling/below', 'does not exist|nothing'),
        ('loop', 'loop'),
        ('fifo', 'is not a folder'),
        ('socket', 'is not a folder'),
        ('/dev/null', 'is not a folder'),
        ('/proc/self/mem', 'is not a folder'),
        ('/proc/self/nothing', 'cannot be used|does not exist'),
        ('a\0b', 'is not the name of a folder'),
        ('\udcff', 'is not the name of a folder|does not exist'),
        ('x' * 300, 'File name too long'),
        ('~no-such-user/x', 'home directory'),
    ],
)
async def test_a_folder_that_cannot_be_used_is_said_in_words(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str, reason: str, read_only: bool
) -> None:
    make_places(tmp_path)
    path = name if name.startswith('~') else os.path.join(tmp_path, name)
    if name != 'dangling/below' or read_only:
        with pytest.raises(WorkspaceError, match=reason):
            await Sandbox.create(workspace=path, read_only=read_only)
    with pytest.raises(SandboxError, match=reason):
        await Sandbox.create(mounts={'/data': path})
    assert capfd.readouterr().err == ''


async def test_a_newline_in_the_name_of_a_folder_is_no_problem(tmp_path: Path) -> None:
    async with await Sandbox.create(workspace=tmp_path / 'a\nb', mounts={'/data': tmp_path}) as sandbox:
        assert (await sandbox.run('open("x", "w").write("1")\nimport os\nos.listdir("/data")')).value == ['a\nb']
    assert (tmp_path / 'a\nb' / 'x').exists()


async def test_a_workspace_that_is_removed_while_it_is_used(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / 'space'
    async with await Sandbox.create(workspace=folder) as sandbox:
        await sandbox.run('x = 1')
        shutil.rmtree(folder)
        assert (await sandbox.run('x')).value == 1
        await sandbox.run('import os\nos._exit(1)')
        with pytest.raises(SandboxError, match='can no longer be opened'):
            await sandbox.run('x')
        folder.mkdir()
        assert (await sandbox.run('x')).value == 1
    assert 'panicked' not in capfd.readouterr().err


@pytest.fixture
def common() -> Iterator[Path]:
    """A folder that every user can enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made)


@pytest.mark.skipif(os.getuid() != 0, reason='only root can become another user')
@pytest.mark.parametrize('mode', [0o000, 0o111, 0o444, 0o222, 0o666, 0o333])
def test_a_folder_of_another_user_that_is_closed_to_us(common: Path, mode: int) -> None:
    folder = common / 'closed'
    folder.mkdir()
    folder.chmod(mode)
    assert as_nobody('use_closed_folder', folder) == ''


async def use_closed_folder(folder: Path) -> None:
    for read_only in (False, True):
        with pytest.raises(SandboxError, match='cannot be used: Permission denied'):
            await Sandbox.create(workspace=folder, read_only=read_only)
    with pytest.raises(SandboxError, match='cannot be used: Permission denied'):
        await Sandbox.create(mounts={'/data': folder})


@pytest.mark.skipif(os.getuid() != 0, reason='only root can become another user')
def test_files_of_another_user_in_a_workspace(common: Path) -> None:
    (common / 'closed').mkdir(mode=0)
    (common / 'secret').write_text('x')
    (common / 'secret').chmod(0)
    (common / 'open').write_text('y')
    assert as_nobody('use_files', common) == ''


async def use_files(folder: Path) -> None:
    async with await Sandbox.create(workspace=folder) as sandbox:
        cell = await sandbox.run('open("secret").read()')
        assert cell.error is not None
        assert cell.error.type == 'PermissionError'
        assert (await sandbox.run('open("open").read()')).value == 'y'
        for path in ('secret', 'closed/x'):
            with pytest.raises(WorkspaceError, match='Permission denied'):
                await sandbox.download(path)
            with pytest.raises(WorkspaceError, match='Permission denied'):
                await sandbox.upload(path, 'z')
        assert sandbox.workspace.files() == ['open', 'secret']


def as_nobody(function: str, folder: Path) -> str:
    """Call a function of this module in a process that gave up the rights of root, which ignores modes. Returns what it
    wrote to stderr."""
    code = f'from {__name__} import call_as_nobody, {function}; call_as_nobody({function})'
    command = [sys.executable, '-c', code, str(folder)]
    root = Path(__file__).parents[2]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=root, timeout=180).stderr


def call_as_nobody(use: Callable[[Path], Coroutine[object, object, None]]) -> None:
    """The main function of that process."""

    async def main() -> None:
        async with await Sandbox.create() as warm:  # what is imported later may be in a folder of root
            await warm.run('open("/no/such/file")')
        await asyncio.to_thread(int)
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        await use(Path(sys.argv[1]))

    asyncio.run(main())
