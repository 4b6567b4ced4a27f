"""The workspace as a way out, from both sides: code inside that reaches, and links it lays for the host."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from habilis.core.errors import SandboxError, WorkspaceError
from habilis.core.limits import Limits
from habilis.sandbox.contract import Mount
from habilis.sandbox.options import SandboxSettings
from habilis.sandbox.session import Sandbox
from tests.sandbox.hostile import attack, kind_of

SECRET = 'swordfish'
REFUSED = {'PermissionError', 'FileNotFoundError', 'OSError', 'NotADirectoryError', 'AttributeError', 'FileExistsError'}


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A folder with a secret, and below it a workspace full of links that lead to the secret."""
    (tmp_path / 'secret.txt').write_text(SECRET)
    (tmp_path / 'outside').mkdir()
    (tmp_path / 'outside' / 'secret.txt').write_text(SECRET)
    space = tmp_path / 'space'
    (space / 'folder').mkdir(parents=True)
    (space / 'a..b.txt').write_text('fine')
    (space / 'absolute').symlink_to(tmp_path / 'secret.txt')
    (space / 'relative').symlink_to('../secret.txt')
    (space / 'directory').symlink_to(tmp_path / 'outside')
    (space / 'up').symlink_to('..')
    (space / 'root').symlink_to('/')
    (space / 'loop').symlink_to('loop')
    (space / 'folder' / 'deep').symlink_to('../../outside')
    (space / 'chain').symlink_to('up')
    return tmp_path


@pytest.fixture
async def roomy(house: Path) -> AsyncIterator[Sandbox]:
    """A sandbox in that workspace, and no harm done when it ends."""
    async with await Sandbox.create(workspace=house / 'space', limits=Limits(seconds=5)) as made:
        yield made
    assert (house / 'secret.txt').read_text() == SECRET
    assert sorted(path.name for path in house.iterdir()) == ['outside', 'secret.txt', 'space']
    assert [path.name for path in (house / 'outside').iterdir()] == ['secret.txt']


@pytest.fixture(params=['workspace', 'mount'])
async def either(request: pytest.FixtureRequest, house: Path) -> AsyncIterator[Sandbox]:
    """The same, and the same folder as a second one that is writable: the current folder of the code is that one."""
    before = sorted(path.name for path in house.iterdir())
    mount = Mount(source=house / 'space', target='/out', writable=True)
    settings = (
        SandboxSettings(workspace=house / 'space') if request.param == 'workspace' else SandboxSettings(mounts=[mount])
    )
    settings['limits'] = Limits(seconds=5)
    async with await Sandbox.create(**settings) as made:
        if request.param == 'mount':
            assert (await made.run('import os\nos.chdir("/out")')).ok
        yield made
    assert (house / 'secret.txt').read_text() == SECRET
    assert sorted(path.name for path in house.iterdir()) == before
    assert [path.name for path in (house / 'outside').iterdir()] == ['secret.txt']


SWAPPING = """
import os, time
end = time.monotonic() + 1
while time.monotonic() < end:
    for make in (lambda: os.symlink('../secret.txt', 'new'), lambda: open('new', 'w').write('harmless')):
        make()
        os.rename('new', 'swapped')
"""
"""A cell that makes a file a link, and the link a file, over and over."""

WAYS_OUT = [
    '../secret.txt',
    './../secret.txt',
    'folder/../../secret.txt',
    '/workspace/../secret.txt',
    '/out/../secret.txt',
    '//etc/passwd',
    '/etc/passwd',
    '/proc/self/environ',
    'absolute',
    'relative',
    'directory/secret.txt',
    'up/secret.txt',
    'chain/secret.txt',
    'root/etc/passwd',
    'folder/deep/secret.txt',
    'loop',
    'up/space/../secret.txt',
]


@pytest.mark.parametrize('path', WAYS_OUT)
async def test_no_path_inside_reads_what_is_outside(either: Sandbox, path: str) -> None:
    cell = await attack(either, f'open({path!r}).read()')
    assert cell.error is not None
    assert cell.error.type in REFUSED


@pytest.mark.parametrize('path', WAYS_OUT)
async def test_no_path_inside_writes_what_is_outside(either: Sandbox, path: str) -> None:
    writing = f"""
import os, shutil
done = []
for what in (
    lambda p: open(p, 'w').write('mine'), lambda p: open(p, 'r+'), lambda p: os.mkdir(p + '.d'), lambda p: os.rmdir(p),
    lambda p: os.truncate(p, 0), lambda p: os.rename('a..b.txt', os.path.dirname(p) + '/new'),
    lambda p: os.link('a..b.txt', os.path.dirname(p) + '/new'), lambda p: os.symlink('x', os.path.dirname(p) + '/new'),
    lambda p: os.utime(p, (0, 0)), lambda p: shutil.copy('a..b.txt', p), lambda p: os.link(p, 'mine'),
):
    try: what({path!r})
    except OSError: pass
    else: done.append(what)
"""
    await attack(either, writing)  # the fixture looks whether anything outside has changed


@pytest.mark.parametrize(
    'code',
    [
        'os.listdir("..")',
        'os.listdir("/")',
        'os.listdir("up")',
        'os.listdir("root")',
        'os.chdir("..")',
        'os.chdir("directory")',
        'os.stat("absolute")',
        'os.stat("/etc")',
        'os.symlink("/etc/passwd", "mine")',
        'os.symlink("/", "mine")',
        'os.link("../secret.txt", "mine")',
        'os.rename("../secret.txt", "mine")',
        'os.rename("a..b.txt", "../mine")',
        'os.unlink("../secret.txt")',
        'os.unlink("directory/secret.txt")',
        'os.rmdir("../outside")',
        'os.mkfifo("mine")',
        'os.mknod("mine")',
        'os.open("..", os.O_RDONLY)',
        'os.open("directory", os.O_RDONLY | os.O_DIRECTORY)',
        'os.open("secret.txt", os.O_RDONLY, dir_fd=os.open("up", os.O_RDONLY))',
        'open(3, "rb").read()',
        'import shutil; shutil.copytree("up", "mine")',
        'import shutil; shutil.rmtree("/workspace/..")',
        'import pathlib; pathlib.Path("..").resolve().joinpath("secret.txt").read_text()',
        'import sqlite3; sqlite3.connect("../mine")',
    ],
)
async def test_no_call_reaches_outside(either: Sandbox, code: str) -> None:
    cell = await attack(either, f'import os\n{code}')
    assert cell.error is not None
    assert cell.error.type in REFUSED | {'Error', 'OperationalError', 'IsADirectoryError'}
    assert SECRET not in f'{cell.text}{cell.stdout}{cell.error}'


@pytest.mark.parametrize('path', [*WAYS_OUT, '', '.', '..', '/', '//', 'x\0y', '\ud800', 'folder', 'x' * 5000])
async def test_the_host_reads_and_writes_nothing_outside_of_a_writable_mount(house: Path, path: str) -> None:
    (house / 'quiet').mkdir()
    mounts = [
        Mount(source=house / 'space', target='/out', writable=True),
        Mount(source=house / 'outside', target='/out/deep/er'),
        Mount(source=house / 'quiet', target='/quiet', writable=True),
    ]
    before = {found: found.lstat().st_mtime_ns for found in house.rglob('*')}
    async with await Sandbox.create(mounts=mounts) as sandbox:
        for base in ('/out', '/quiet', '/out/../quiet/..', '/outside', '/out/../outside', '/deep'):
            with pytest.raises(SandboxError):
                await sandbox.download(f'{base}/{path}')
            with pytest.raises(SandboxError):
                await sandbox.upload(f'{base}/../quiet/../{path}', 'mine')
    assert {found: found.lstat().st_mtime_ns for found in house.rglob('*')} == before


async def test_a_file_of_a_writable_mount_that_is_swapped_for_a_link_is_never_followed(house: Path) -> None:
    mount = Mount(source=house / 'space', target='/out', writable=True)
    seen: set[bytes] = set()
    async with await Sandbox.create(mounts=[mount]) as sandbox:
        running = asyncio.create_task(sandbox.run(f'import os\nos.chdir("/out")\n{SWAPPING}'))
        while not running.done():
            try:
                seen.add(await sandbox.download('/out/swapped'))
                await sandbox.upload('/out/swapped', 'harmless')
            except WorkspaceError:
                await asyncio.sleep(0)
        assert (await running).ok
    assert seen <= {b'', b'harmless'}
    assert (house / 'secret.txt').read_text() == SECRET


async def test_a_folder_of_a_writable_mount_that_is_swapped_for_a_link_is_never_followed(house: Path) -> None:
    swapping = """
import os, time
os.chdir('/out')
os.mkdir('real')
end = time.monotonic() + 1
while time.monotonic() < end:
    os.symlink('../outside', 'link')
    os.rename('link', 'way')
    os.unlink('way')
    os.rename('real', 'way')
    os.rename('way', 'real')
"""
    mount = Mount(source=house / 'space', target='/out', writable=True)
    async with await Sandbox.create(mounts=[mount]) as sandbox:
        running = asyncio.create_task(sandbox.run(swapping))
        while not running.done():
            with contextlib.suppress(WorkspaceError):
                await sandbox.upload('/out/way/secret.txt', 'mine')
            with contextlib.suppress(WorkspaceError):
                assert await sandbox.download('/out/way/secret.txt') != SECRET.encode()
            await asyncio.sleep(0)
        await running
    assert (house / 'outside' / 'secret.txt').read_text() == SECRET


@pytest.mark.parametrize(
    'code',
    [
        'open("/data/new", "w")',
        'open("/data/secret.txt", "a")',
        'os.unlink("/data/secret.txt")',
        'os.rename("/data/secret.txt", "/out/mine")',
        'os.rename("/out/a..b.txt", "/data/mine")',
        'os.link("/data/secret.txt", "/out/mine")',
        'os.link("/out/a..b.txt", "/data/mine")',
        'os.symlink("/data/secret.txt", "/out/mine")',
        'os.symlink("../outside/secret.txt", "/out/mine"); open("/out/mine", "a")',
        'os.chdir("/out"); open("../data/secret.txt", "a")',
        'open("/out/inner/new", "w")',
        'os.rename("/out/inner", "/out/other"); open("/out/inner/new", "w")',
    ],
)
async def test_a_writable_mount_is_no_way_into_a_read_only_one(house: Path, code: str) -> None:
    mounts = [
        Mount(source=house / 'outside', target='/data'),
        Mount(source=house / 'space', target='/out', writable=True),
        Mount(source=house / 'outside', target='/out/inner'),
    ]
    async with await Sandbox.create(mounts=mounts) as sandbox:
        cell = await attack(sandbox, f'import os\n{code}')
        assert cell.error is not None
        assert cell.error.type in REFUSED
    assert [(path.name, path.read_text()) for path in (house / 'outside').iterdir()] == [('secret.txt', SECRET)]


@pytest.mark.parametrize('path', [*WAYS_OUT, '', '.', '..', '/', '//', 'x\0y', '\ud800', 'folder', 'x' * 5000])
async def test_the_host_reads_and_writes_nothing_outside_on_behalf_of_a_sandbox(roomy: Sandbox, path: str) -> None:
    with pytest.raises(WorkspaceError):
        await roomy.download(path)
    with pytest.raises(WorkspaceError):
        await roomy.upload(path, 'mine')


async def test_a_link_that_was_made_inside_is_not_followed_by_the_host(roomy: Sandbox) -> None:
    making = 'import os\nos.symlink("../secret.txt", "mine")\nos.symlink("..", "folder/mine")\nos.link("mine", "hard")'
    assert (await attack(roomy, making)).ok
    for path in ('mine', 'hard', 'folder/mine/secret.txt', 'folder/mine/space/a..b.txt'):
        with pytest.raises(WorkspaceError):
            await roomy.download(path)
        with pytest.raises(WorkspaceError):
            await roomy.upload(path, 'mine')
    assert roomy.workspace.files() == ['a..b.txt']


async def test_a_file_swapped_for_a_link_while_the_host_reads_is_never_followed(roomy: Sandbox) -> None:
    running = asyncio.create_task(roomy.run(SWAPPING))
    seen: set[bytes] = set()
    while not running.done():
        try:
            seen.add(await roomy.download('swapped'))
        except WorkspaceError:
            await asyncio.sleep(0)
    assert (await running).ok
    assert seen <= {b'', b'harmless'}


async def test_a_pipe_in_the_workspace_does_not_block(roomy: Sandbox, house: Path) -> None:
    os.mkfifo(house / 'space' / 'pipe')
    async with asyncio.timeout(60):
        with pytest.raises(WorkspaceError):
            await roomy.download('pipe')
        with pytest.raises(WorkspaceError):
            await roomy.upload('pipe', 'x')
    assert 'pipe' not in roomy.workspace.files()


async def test_a_cell_stuck_in_a_pipe_is_left_behind_at_its_time_limit(roomy: Sandbox, house: Path) -> None:
    pipe = house / 'space' / 'pipe'
    os.mkfifo(pipe)
    cell = await attack(roomy, 'open("pipe").read()', seconds=0.3)
    os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))  # lets its thread go
    assert kind_of(cell) == 'time'


@pytest.mark.parametrize(
    'name', ['a..b.txt', 'it\'s "x"\n.txt', '...', '-rf', '~', '$(id)', 'ü', 'x' * 255, '* ?', '%s']
)
async def test_a_file_with_a_strange_name_is_a_file(roomy: Sandbox, name: str) -> None:
    cell = await attack(roomy, f'open({name!r}, "w").write("mine")')
    assert [(change.path, change.size) for change in cell.files] == [(name, 4)]
    assert await roomy.download(name) == b'mine'


async def test_names_and_sizes_out_of_bounds_are_errors(roomy: Sandbox) -> None:
    for code in ('open("x" * 5000, "w")', 'open("a\\0b", "w")', r'open("\udcff", "w")', 'open("a..b.txt/x", "w")'):
        assert kind_of(await attack(roomy, code)) == 'exception'
    assert (await attack(roomy, 'open("sparse", "wb").truncate(1 << 40)')).files[0].size == 1 << 40
    with pytest.raises(WorkspaceError, match='allowed'):
        await roomy.download('sparse')


async def test_folders_without_end_do_not_hold_up_the_host(roomy: Sandbox) -> None:
    deep = 'import os\nfor _ in range(1000): os.mkdir("d" * 200); os.chdir("d" * 200)'
    assert kind_of(await attack(roomy, deep)) == 'exception'
    assert roomy.workspace.files() == ['a..b.txt']


@pytest.mark.parametrize(
    'code',
    [
        'open("new", "w")',
        'open("a..b.txt", "a")',
        'open("a..b.txt", "r+")',
        'os.unlink("a..b.txt")',
        'os.mkdir("new")',
        'os.rmdir("folder")',
        'os.rename("a..b.txt", "new")',
        'os.symlink("a..b.txt", "new")',
        'os.link("a..b.txt", "new")',
        'os.truncate("a..b.txt", 0)',
        'os.utime("a..b.txt", (0, 0))',
        'open("/data/new", "w")',
        'open("/data/secret.txt", "a")',
        'os.unlink("/data/secret.txt")',
        'os.rename("/data/secret.txt", "/workspace/mine")',
        'os.link("/data/secret.txt", "/workspace/mine")',
        'open("/data/../secret.txt")',
        'open("/data/../../etc/passwd")',
    ],
)
async def test_a_read_only_mount_refuses_every_change(house: Path, code: str) -> None:
    before = {path: path.lstat().st_mtime_ns for path in house.rglob('*')}
    mounts = {'/data': house / 'outside'}
    async with await Sandbox.create(workspace=house / 'space', read_only=True, mounts=mounts) as sandbox:
        cell = await attack(sandbox, f'import os\n{code}')
        assert cell.error is not None
        assert cell.error.type in REFUSED
        assert (await sandbox.run('open("a..b.txt").read(), open("/data/secret.txt").read()')).value == ('fine', SECRET)
    assert {path: path.lstat().st_mtime_ns for path in house.rglob('*')} == before


async def test_a_temporary_workspace_is_removed_without_following_its_links(house: Path) -> None:
    sandbox = await Sandbox.create(workspace=True)
    folder = sandbox.workspace.folder
    (folder / 'link').symlink_to(house / 'outside')
    await attack(sandbox, 'import os\nos.mkdir("d"); os.symlink("../..", "d/up"); open("d/x", "w").close()')
    await sandbox.close()
    assert not folder.exists()
    assert (house / 'outside' / 'secret.txt').read_text() == SECRET


async def test_a_module_in_the_workspace_cannot_take_the_place_of_one_the_kernel_uses(roomy: Sandbox) -> None:
    planting = 'for name in ("json", "os", "pickle", "habilis", "wit_world"): open(name + ".py", "w").write("1 / 0")'
    assert (await attack(roomy, planting)).ok
    cell = await attack(roomy, 'import os; os.abort()')
    assert kind_of(cell) == 'broken'
    assert (await roomy.run('import json, os, pickle\njson.dumps([1])')).value == '[1]'
