"""The workspace from the host's side: nothing inside it, and no path, leads out of it."""

import asyncio
import contextlib
import os
import stat
import tempfile
import threading
from pathlib import Path

import pytest

from habilis import Limits, Sandbox
from habilis.core.errors import SandboxError, WorkspaceError
from habilis.sandbox.contract import Mount
from habilis.sandbox.files import workspace
from habilis.sandbox.files.workspace import Workspace

OUTSIDE = [
    '',
    '.',
    '/',
    '//',
    '/workspace',
    '/workspace/',
    '..',
    '../secret',
    'sub/../../secret',
    'sub/..',
    '/workspace/../secret',
    '/etc/passwd',
    '//etc/passwd',
    '//workspace/file',
    '///etc/passwd',
    '/workspaces/file',
    'file\0',
    'a\0b/c',
]


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    (tmp_path / 'secret').write_text('secret')
    (tmp_path / 'space' / 'sub').mkdir(parents=True)
    (tmp_path / 'space' / 'file').write_text('text')
    return Workspace.at(tmp_path / 'space', must_exist=True)


# Paths ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('path', OUTSIDE)
def test_a_path_that_leads_out_is_refused(space: Workspace, path: str) -> None:
    with pytest.raises(WorkspaceError, match='is not a path inside the workspace'):
        space.read(path)
    with pytest.raises(WorkspaceError, match='is not a path inside the workspace'):
        space.write(path, 'x')


@pytest.mark.parametrize('path', ['\ud800', 'a' * 300, 'x/' * 3000 + 'x', 'file/below', 'sub', 'missing'])
def test_a_path_that_cannot_be_read_is_named(space: Workspace, path: str) -> None:
    with pytest.raises(WorkspaceError) as caught:
        space.read(path)
    assert repr(path) in str(caught.value)


@pytest.mark.parametrize(
    'path',
    [
        'a..b.txt',
        '...',
        '..a',
        'a\nb "quoted" \'twice\' `x` $HOME',
        ' ',
        'sub/deep/er/file',
        './sub//x',
        'ünïcode/☃',
        '-rf',
        '~',
        '\\..\\x',
    ],
)
def test_a_strange_name_is_a_name(space: Workspace, path: str) -> None:
    space.write(path, b'\x00\xff')
    assert space.read(path) == b'\x00\xff'
    assert str(Path(path)) in space.files()


def test_the_path_inside_names_the_same_file(space: Workspace) -> None:
    assert space.read('/workspace/file') == space.read('file') == b'text'


# What code inside may have left ---------------------------------------------------------------------------------------


def test_a_link_is_not_followed_wherever_it_is(space: Workspace, tmp_path: Path) -> None:
    folder = space.folder
    (folder / 'link').symlink_to(tmp_path / 'secret')
    (folder / 'relative').symlink_to('../secret')
    (folder / 'up').symlink_to('..')
    (folder / 'root').symlink_to('/')
    (folder / 'inside').symlink_to('file')
    (folder / 'loop').symlink_to('loop')
    (folder / 'dangling').symlink_to(tmp_path / 'new')
    for path in ('link', 'relative', 'up/secret', 'root/etc/passwd', 'inside', 'loop', 'dangling', 'up'):
        with pytest.raises(WorkspaceError, match='links are not followed'):
            space.read(path)
        with pytest.raises(WorkspaceError, match='links are not followed'):
            space.write(path, 'overwritten')
    assert (tmp_path / 'secret').read_text() == 'secret'
    assert not (tmp_path / 'new').exists()
    assert space.files() == ['file']


def test_a_link_in_the_way_of_a_new_folder_is_not_followed(space: Workspace, tmp_path: Path) -> None:
    (space.folder / 'sub' / 'up').symlink_to(tmp_path)
    with pytest.raises(WorkspaceError):
        space.write('sub/up/made/file', 'x')
    assert not (tmp_path / 'made').exists()


def test_a_pipe_neither_blocks_nor_counts_as_a_file(space: Workspace) -> None:
    os.mkfifo(space.folder / 'pipe')
    for attempt in (lambda: space.read('pipe'), lambda: space.write('pipe', 'x')):
        with pytest.raises(WorkspaceError):
            attempt()
    reader = os.open(space.folder / 'pipe', os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(WorkspaceError, match='is not a file'):
        space.write('pipe', 'x')
    os.close(reader)
    assert space.files() == ['file']


@pytest.mark.parametrize('bits', [stat.S_ISUID, stat.S_ISGID, stat.S_ISUID | stat.S_ISGID])
@pytest.mark.parametrize('data', ['program', ''])
def test_what_the_host_writes_is_never_setuid(space: Workspace, bits: int, data: str) -> None:
    target = space.folder / 'program'
    target.touch()
    target.chmod(bits | 0o755)  # left there by code inside, or by anybody
    space.write('program', data)
    assert stat.S_IMODE(target.stat().st_mode) == 0o755
    target.chmod(bits | 0o755)
    space.replace('program', data.encode(), stat.S_IFREG | 0o755, permissions=bits | 0o755)
    assert stat.S_IMODE(target.stat().st_mode) == 0o755


def test_files_and_links_are_replaced_and_removed_themselves_not_what_they_point_to(
    space: Workspace, tmp_path: Path
) -> None:
    folder = space.folder
    (folder / 'link').symlink_to(tmp_path / 'secret')
    assert space.read_link('link') == os.fsencode(tmp_path / 'secret')
    space.replace('link', b'mine', 0o644, 0o640)
    assert ((folder / 'link').read_bytes(), (folder / 'link').stat().st_mode & 0o777) == (b'mine', 0o640)
    space.replace('deep/er/link', b'../../../secret', stat.S_IFLNK)
    assert (folder / 'deep/er/link').is_symlink()
    space.remove('deep/er/link')
    assert not (folder / 'deep').exists(), 'with the folders that are empty then'
    (folder / 'up').symlink_to(tmp_path)
    for attempt in (
        lambda: space.remove('up/secret'),
        lambda: space.replace('up/secret', b'x', 0o644),
        lambda: space.read_link('up/link'),
        lambda: list(space.walk('up')),
        lambda: space.remove('sub'),
        lambda: space.replace('sub', b'x', 0o644),
        lambda: space.read_link('file'),
        lambda: space.remove('missing'),
    ):
        with pytest.raises(WorkspaceError):
            attempt()
    assert (tmp_path / 'secret').read_text() == 'secret'
    assert sorted(os.listdir(folder)) == ['file', 'link', 'sub', 'up'], 'nothing temporary is left'


def test_a_folder_that_is_swapped_for_a_link_leads_nowhere(space: Workspace, tmp_path: Path) -> None:
    outside = tmp_path / 'outside'
    outside.mkdir()
    (outside / 'x').write_text('secret')
    (space.folder / 'link').symlink_to(outside)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for source, target in (('sub', 'aside'), ('link', 'sub'), ('sub', 'link'), ('aside', 'sub')):
                with contextlib.suppress(OSError):
                    (space.folder / source).rename(space.folder / target)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for _ in range(100):
            with contextlib.suppress(WorkspaceError):
                space.replace('sub/x', b'mine', 0o644)
            with contextlib.suppress(WorkspaceError):
                space.remove('sub/x')
            assert 'link/x' not in [path for path, _ in space.walk()]
    finally:
        stop.set()
        swapper.join()
    assert {file.name: file.read_text() for file in outside.iterdir()} == {'x': 'secret'}


def test_a_file_larger_than_the_limit_is_refused(space: Workspace) -> None:
    with pytest.raises(WorkspaceError, match='4 bytes, more than the 3 allowed'):
        space.read('file', limit=3)
    assert space.read('file', limit=4) == b'text'


def test_no_descriptor_is_left_open(space: Workspace) -> None:
    before = len(os.listdir('/proc/self/fd')) if Path('/proc/self/fd').exists() else 0
    for path in [*OUTSIDE, 'missing', 'file/below', 'sub/missing', 'file', 'sub'] * 3:
        try:
            space.read(path)
        except WorkspaceError:
            continue
    assert before in (0, len(os.listdir('/proc/self/fd')))


def test_every_entry_counts_when_a_workspace_is_scanned(space: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, 'MAX_FILES', 20)
    monkeypatch.setattr(workspace, 'MAX_DEPTH', 3)
    for number in range(30):
        (space.folder / f'{number}').symlink_to('nowhere')
    assert len(list(space.walk(limit=workspace.MAX_FILES))) == 20
    assert len(list(space.walk())) == len(os.listdir(space.folder))
    space.write('9 after the links', '')
    space.write('zz/below/file', '')
    assert len(list(space.walk(limit=25))) == 25
    assert len(space.scan()) <= 20


# What a cell changed --------------------------------------------------------------------------------------------------


def test_changes_name_what_is_new_and_what_is_different(space: Workspace) -> None:
    for name in ('same', 'longer', 'as_long', 'removed', 'replaced'):
        space.write(name, 'before')
    before = space.scan()
    space.write('longer', 'before and after')
    (space.folder / 'as_long').write_text('change')
    os.utime(space.folder / 'as_long', ns=(0, before['as_long'][1] + 1))
    (space.folder / 'removed').unlink()
    (space.folder / 'other').write_text('before')
    os.utime(space.folder / 'other', ns=(0, before['replaced'][1]))
    (space.folder / 'other').replace(space.folder / 'replaced')
    space.write('sub/new', '')
    (space.folder / 'link').symlink_to('file')
    assert [(file.path, file.size, file.change) for file in space.changes(before)] == [
        ('as_long', 6, 'changed'),
        ('longer', 16, 'changed'),
        ('replaced', 6, 'changed'),
        ('sub/new', 0, 'new'),
    ]


async def test_a_cell_lists_what_it_changed_also_when_it_fails_or_is_stopped(tmp_path: Path) -> None:
    async with await Sandbox.create(workspace=tmp_path, limits=Limits(seconds=0.5)) as sandbox:
        failed = await sandbox.run("open('one', 'w').write('1')\n1/0")
        stopped = await sandbox.run("open('two', 'w').write('2')\nwhile True: pass")
        quiet = await sandbox.run('1')
    assert [[file.path for file in cell.files] for cell in (failed, stopped, quiet)] == [['one'], ['two'], []]


# The folder -----------------------------------------------------------------------------------------------------------


async def test_a_missing_folder_is_made_unless_it_is_read_only(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match='does not exist'):
        await Sandbox.create(workspace=tmp_path / 'missing', read_only=True)
    assert not (tmp_path / 'missing').exists()
    async with await Sandbox.create(workspace=tmp_path / 'made' / 'here'):
        assert (tmp_path / 'made' / 'here').is_dir()
    (tmp_path / 'file').write_text('')
    with pytest.raises(WorkspaceError, match='is not a folder'):
        await Sandbox.create(workspace=tmp_path / 'file' / 'below')


async def test_without_a_workspace_the_helpers_say_so(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxError, match='pass workspace='):
        await sandbox.upload('x', b'')


async def test_bytes_go_in_and_come_out_unchanged(tmp_path: Path) -> None:
    data = os.urandom(1 << 20) + bytes(range(256))
    async with await Sandbox.create(workspace=tmp_path) as sandbox:
        await sandbox.upload('in.bin', data)
        cell = await sandbox.run(
            "import hashlib\ndata = open('in.bin', 'rb').read()\nopen('out.bin', 'wb').write(data)\nlen(data)"
        )
        assert cell.value == len(data)
        assert await sandbox.download('out.bin') == data
        await sandbox.upload('in.bin', 'shorter: ü')
        assert await sandbox.download('in.bin') == 'shorter: ü'.encode()


async def test_a_name_with_quotes_and_newline_works_on_both_sides(tmp_path: Path) -> None:
    name = 'a\n"b" \'c\''
    async with await Sandbox.create(workspace=tmp_path) as sandbox:
        await sandbox.upload(name, 'in')
        cell = await sandbox.run(f"import os\nopen({name + '2'!r}, 'w').write('out')\nsorted(os.listdir())")
        assert cell.value == [name, name + '2']
        assert [file.path for file in cell.files] == [name + '2']
        assert await sandbox.download(name + '2') == b'out'


# Temporary folders ----------------------------------------------------------------------------------------------------


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made, empty at first."""
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
    return tmp_path


async def test_a_temporary_folder_is_gone_after_close(temporary: Path) -> None:
    async with await Sandbox.create(workspace=True) as sandbox:
        await sandbox.run("import os\nos.makedirs('a/b')\nopen('a/b/c', 'w').write('x')")
        assert len(list(temporary.iterdir())) == 1
    assert list(temporary.iterdir()) == []
    with pytest.raises(WorkspaceError):
        await sandbox.download('a/b/c')


async def test_a_fork_shares_the_folder_and_the_last_one_removes_it(temporary: Path) -> None:
    sandbox = await Sandbox.create(workspace=True, limits=Limits(seconds=0.5))
    twin = await sandbox.fork()
    await sandbox.run("open('note', 'w').write('hello')")
    assert (await twin.run("open('note').read()")).value == 'hello'
    await sandbox.close()
    assert not (await twin.run('while True: pass')).ok  # it needs the folder to start again
    assert (await twin.run("open('note').read()")).value == 'hello'
    await twin.close()
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    'settings', [{'variables': {'x': object()}}, {'env': {'=': ''}}, {'mounts': {'x': '/'}}, {'tools': [lambda: 1]}]
)
async def test_a_sandbox_that_cannot_be_made_leaves_no_folder(temporary: Path, settings: dict[str, object]) -> None:
    with pytest.raises(SandboxError):
        await Sandbox.create(workspace=True, **settings)  # pyright: ignore[reportArgumentType]
    assert list(temporary.iterdir()) == []


async def test_making_a_sandbox_can_be_cancelled_without_leaving_a_folder(temporary: Path) -> None:
    for moment in range(10):
        making = asyncio.create_task(Sandbox.create(workspace=True))
        await asyncio.sleep(moment * 0.0005)
        making.cancel()
        [outcome] = await asyncio.gather(making, return_exceptions=True)
        if isinstance(outcome, Sandbox):
            await outcome.close()
    assert list(temporary.iterdir()) == []


async def test_a_cancelled_restart_does_not_take_the_folder_away(temporary: Path) -> None:
    async with await Sandbox.create(workspace=True, limits=Limits(seconds=0.3)) as sandbox:
        await sandbox.upload('note', 'hello')
        assert not (await sandbox.run('while True: pass')).ok
        starting = asyncio.create_task(sandbox.run('1'))
        await asyncio.sleep(0)
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        assert (await sandbox.run("open('note').read()")).value == 'hello'


# More folders ---------------------------------------------------------------------------------------------------------


async def test_a_second_writable_folder_is_beside_the_workspace(tmp_path: Path) -> None:
    for name in ('in', 'out', 'space'):
        (tmp_path / name).mkdir()
    (tmp_path / 'in' / 'data.txt').write_text('data')
    mounts = [
        Mount(source=tmp_path / 'in', target='/in'),
        Mount(source=tmp_path / 'out', target='/out/', writable=True),
    ]
    async with await Sandbox.create(workspace=tmp_path / 'space', mounts=mounts) as sandbox:
        assert sandbox.writable_mounts == ('/out',)
        code = "text = open('/in/data.txt').read()\nfor p in ('a', '/out/b'): open(p, 'w').write(text)"
        assert [change.path for change in (await sandbox.run(code)).files] == ['a', '/out/b']
        await sandbox.upload('/out/deep/c', b'up')
        assert (await sandbox.run("open('/out/deep/c').read()")).value == 'up'
        assert await sandbox.download('/out/b') == await sandbox.download('a') == b'data'
        for path in ('/in/data.txt', '/out/../in/data.txt', '/outer/x', '/out'):
            with pytest.raises(WorkspaceError):
                await sandbox.download(path)
        async with await sandbox.fork() as twin:
            assert (await twin.run("open('/out/from_twin', 'w').write('x')")).ok
    assert sorted(path.name for path in (tmp_path / 'out').rglob('*')) == ['b', 'c', 'deep', 'from_twin']


async def test_two_folders_at_one_place_are_refused(tmp_path: Path) -> None:
    mounts = [Mount(source=tmp_path, target='/a'), Mount(source=tmp_path, target='/a/', writable=True)]
    with pytest.raises(SandboxError, match="cannot mount two folders at '/a'"):
        await Sandbox.create(mounts=mounts)
