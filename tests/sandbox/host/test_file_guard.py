"""Files that other programs obey: what code inside does to them is undone, and what the user does is not."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from habilis.agent.options import sandbox_settings_from
from habilis.core.errors import WorkspaceError
from habilis.core.settings import load_settings
from habilis.sandbox import Sandbox, backends
from habilis.sandbox.conformance.files import ATTACKS, make_repository, obeyed_files
from habilis.sandbox.process import levels
from tests.place import Place
from tests.requirements import require_namespaces
from tests.waiting import until

BREAK_IN = "open('.git/config', 'a').write('x')"


@pytest.fixture
def space(tmp_path: Path) -> Path:
    folder = tmp_path / 'space'
    make_repository(folder)
    return folder


async def test_an_undone_change_is_kept_in_a_file_that_git_does_not_read(space: Path) -> None:
    async with await Sandbox.create(workspace=space) as sandbox:
        for _ in range(2):
            await sandbox.run(BREAK_IN)
    kept = sorted((space / '.git').glob('config*.undone'))
    assert [path.read_text()[-1] for path in kept] == ['x', 'x']
    assert (space / '.git' / 'config').stat().st_mode == (space / 'sub' / '.git' / 'config').stat().st_mode


@pytest.mark.parametrize('backend', ['wasm', 'process'])
async def test_changes_of_the_user_between_cells_stay(backend: str, space: Path) -> None:
    async with await Sandbox.create(backend, workspace=space) as sandbox:
        await sandbox.run('1')
        (space / '.git' / 'config').write_text('of the user')
        (space / '.envrc').write_text('of the user')
        assert (await sandbox.run('2')).ok
        await sandbox.run(BREAK_IN)
    assert (space / '.git' / 'config').read_text() == (space / '.envrc').read_text() == 'of the user'


async def test_sandboxes_that_share_a_folder_do_not_take_each_others_changes_for_those_of_the_user(space: Path) -> None:
    before = obeyed_files(space)
    is_written, may_end = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        is_written.set()
        await may_end.wait()

    async with await Sandbox.create(workspace=space, tools=[wait]) as one, await Sandbox.create(workspace=space) as two:
        first = asyncio.create_task(one.run(f'{BREAK_IN}\nawait wait()'))
        await is_written.wait()
        cells = [await two.run('1')]
        may_end.set()
        cells.append(await first)
        assert any('is protected' in str(cell.error) for cell in cells)
    assert obeyed_files(space) == before


async def test_a_cell_that_is_stopped_is_undone_too(space: Path) -> None:
    before = obeyed_files(space)
    async with await Sandbox.create(workspace=space) as sandbox:
        cell = await sandbox.run(f'{BREAK_IN}\nwhile True: pass', seconds=0.5)
        assert cell.error is not None
        assert cell.error.kind == 'time'
        assert 'is protected' in cell.error.message
        running = asyncio.create_task(sandbox.run(f"{BREAK_IN}\nopen('started', 'w')\nwhile True: pass"))
        await until((space / 'started').exists)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert obeyed_files(space) == before


async def test_code_that_continues_between_cells_is_undone_when_the_sandbox_is_closed(space: Path) -> None:
    require_namespaces()
    before = obeyed_files(space)
    loop = 'while [ ! -e go ]; do sleep 0.01; done; echo x >> .git/config; echo x > .git/hooks/pre-push; touch done'
    async with await Sandbox.create('process', workspace=space) as sandbox:
        assert (await sandbox.run(f"import subprocess\nsubprocess.Popen(['sh', '-c', {loop!r}])\n0")).ok
        (space / 'go').touch()
        await until((space / 'done').exists)
    assert obeyed_files(space) == before


async def test_a_fork_is_undone_too(space: Path) -> None:
    require_namespaces()
    before = obeyed_files(space)
    sandbox = await Sandbox.create('process', workspace=space)
    await sandbox.run('1')
    twin = await sandbox.fork()
    await sandbox.close()
    (space / '.git' / 'config').write_text('perhaps by the fork')
    await twin.run('2')
    await twin.close()
    assert obeyed_files(space) == before


async def test_a_shell_command_is_undone(space: Path) -> None:
    require_namespaces()
    before = obeyed_files(space)
    async with await Sandbox.create('process', workspace=space) as sandbox:
        with pytest.raises(WorkspaceError, match=r"'.git/config' is protected"):
            await sandbox.do_work(
                {'command': 'echo x >> .git/config', 'workdir': None, 'seconds': 20, 'limit': 1000}, seconds=30
            )
        cell = await sandbox.run(
            "import os\nos.system('echo x > .git/hooks/pre-push; chmod -R 0 .git; echo x > .zshrc')"
        )
        assert cell.error is not None
    assert obeyed_files(space) == before


@pytest.fixture
def fresh_backend() -> Iterator[None]:
    """A backend finds out once what the machine offers."""
    backends.backend.cache_clear()
    yield
    backends.backend.cache_clear()


async def test_without_namespaces_it_is_the_same(
    space: Path, monkeypatch: pytest.MonkeyPatch, fresh_backend: None
) -> None:
    def refused(_program: str) -> str:
        return 'No permissions to create a new namespace'

    monkeypatch.setattr(levels, 'why_unusable', refused)
    before = obeyed_files(space)
    async with await Sandbox.create('process', workspace=space) as sandbox:
        assert 'no namespaces' in sandbox.isolation
        for attack in ATTACKS:
            if "rename('.git'," not in attack:
                await sandbox.run(f'import os\n{attack}')
                assert obeyed_files(space) == before, attack
        wait = (
            'import os, threading, time\n'
            'def later():\n'
            "    while not os.path.exists('go'): time.sleep(0.01)\n"
            f'    {BREAK_IN}\n'
            "    open('done', 'w')\n"
            'threading.Thread(target=later).start()'
        )
        assert (await sandbox.run(wait)).ok
        (space / 'go').touch()
        await until((space / 'done').exists)
    assert obeyed_files(space) == before


async def test_git_works_in_a_workspace(tmp_path: Path) -> None:
    require_namespaces()

    def git(*words: str) -> str:
        done = subprocess.run(['git', *words], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout

    git('init', '-q', '-b', 'main')
    (tmp_path / 'a').write_text('1')
    commands = (
        'git add a',
        'git commit -qm first',
        'git status --short',
        'git checkout -q -b other',
        'echo 2 >> a',
        'git commit -qam second',
        'git checkout -q main',
        'git merge -q other',
        'git stash list',
        'git gc -q',
    )
    env = {'GIT_CONFIG_COUNT': '3', 'HOME': '/tmp'}
    pairs = (('user.name', 'x'), ('user.email', 'x@example.com'), ('safe.directory', '*'))
    for number, (name, value) in enumerate(pairs):
        env |= {f'GIT_CONFIG_KEY_{number}': name, f'GIT_CONFIG_VALUE_{number}': value}
    async with await Sandbox.create('process', workspace=tmp_path, env=env) as sandbox:
        for command in commands:
            cell = await sandbox.run(
                f'import subprocess\nsubprocess.run({command!r}, shell=True, check=True, capture_output=True).stderr'
            )
            assert cell.error is None, (command, cell.error)
    assert git('-c', 'safe.directory=*', 'log', '--format=%s').split() == ['second', 'first']


@pytest.mark.parametrize('path', ['.git/config', '.git/index', 'sub/.GIT/x', '.Bashrc', '.vscode/a/b', 'a/.envrc'])
async def test_the_host_does_not_write_them_either(space: Path, path: str) -> None:
    async with await Sandbox.create(workspace=space) as sandbox:
        with pytest.raises(WorkspaceError, match='is protected'):
            await sandbox.upload(path, 'x')
        await sandbox.upload('.github/workflows/x.yml', 'x')
    async with await Sandbox.create(workspace=space, protect=False) as sandbox:
        await sandbox.upload('.envrc', 'x')


@pytest.mark.parametrize(
    'paths',
    [
        ['HEAD', 'objects/x', 'refs/x'],
        ['config', 'refs/x', 'objects/x', 'HEAD'],
        ['b/objects/x', 'b/HEAD', 'b/config', 'b/refs/heads/x'],
    ],
)
async def test_the_host_makes_no_bare_repository(tmp_path: Path, paths: list[str]) -> None:
    async with await Sandbox.create(workspace=tmp_path) as sandbox:
        *before, last = paths
        for path in before:
            await sandbox.upload(path, 'x')
        with pytest.raises(WorkspaceError, match='is protected'):
            await sandbox.upload(last, 'x')


@pytest.mark.parametrize(
    ('source', 'protects'), [('environment', False), ('user', False), ('.env', True), ('project', True)]
)
def test_a_file_of_the_project_cannot_allow_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, protects: bool
) -> None:
    place = Place(tmp_path, monkeypatch)
    if source == 'environment':
        place.environment(HABILIS_SANDBOX_PROTECT='false')
    elif source == '.env':
        place.dotenv('HABILIS_SANDBOX_PROTECT=false\n')
    else:
        (place.user if source == 'user' else place.project)('sandbox_protect = false\n')
    assert sandbox_settings_from({}, {}, 'wasm', load_settings()).get('protect') is protects


async def test_nothing_outside_is_touched_through_links(space: Path, tmp_path: Path) -> None:
    outside = tmp_path / 'outside'
    outside.mkdir()
    (outside / 'config').write_text('mine')
    (outside / '.bashrc').write_text('mine')
    async with await Sandbox.create('process', workspace=space) as sandbox:
        await sandbox.run(f"import os\nos.rename('.git', 'old')\nos.symlink({str(outside)!r}, '.git')")
        await sandbox.run(f"import os\nos.rename('sub', 's')\nos.symlink({str(outside)!r}, 'sub')")
    assert {path.name: path.read_text() for path in outside.iterdir()} == {'config': 'mine', '.bashrc': 'mine'}
    assert not os.path.lexists(space / '.git')
