"""Packages for the inside: from a folder, a wheel or a registry, fetched once, and never half."""

import asyncio
import html
import http.server
import os
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from habilis import Sandbox
from habilis.core.errors import PackageError, SandboxError, SnapshotError
from habilis.sandbox.options import choose_backend
from habilis.sandbox.packages.installation import native_reason, package_folder
from habilis.sandbox.snapshot import from_bytes, to_bytes
from tests.requirements import missing


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of packages, beside the real one of the interpreter."""
    monkeypatch.setattr('habilis.sandbox.packages.installation.cache_folder', lambda: tmp_path / 'cache')
    return tmp_path / 'cache' / 'packages'


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry is an address where nobody answers."""
    for name in ('PIP_NO_INDEX', 'PIP_FIND_LINKS', 'PIP_EXTRA_INDEX_URL'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv('PIP_CONFIG_FILE', os.devnull)
    monkeypatch.setenv('PIP_INDEX_URL', 'http://127.0.0.1:9/')
    monkeypatch.setenv('PIP_RETRIES', '0')


def fetch(*packages: str) -> Path:
    """The folder of the packages; the test is left out where there is no network."""
    try:
        return package_folder(list(packages))
    except PackageError as error:
        if 'no network' in str(error):
            missing('registry')
        raise


def make_wheel(folder: Path, name: str, code: str, *, version: str = '1.0', more: dict[str, str] | None = None) -> Path:
    """A wheel with one module."""
    info = f'{name}-{version}.dist-info'
    path = folder / f'{name}-{version}-py3-none-any.whl'
    files = {
        f'{name}.py': code,
        f'{info}/METADATA': f'Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n',
        f'{info}/WHEEL': 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
        **(more or {}),
    }
    with zipfile.ZipFile(path, 'w') as wheel:
        for file, text in files.items():
            wheel.writestr(file, text)
        wheel.writestr(f'{info}/RECORD', ''.join(f'{file},,\n' for file in [*files, f'{info}/RECORD']))
    return path


def no_pip(*_: object, **__: object) -> None:
    raise AssertionError('pip was called')


# Where they come from -------------------------------------------------------------------------------------------------


async def test_a_folder_is_used_as_it_is(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, 'run', no_pip)
    (tmp_path / 'mine' / 'helper').mkdir(parents=True)
    (tmp_path / 'mine' / 'helper' / '__init__.py').write_text('from .part import answer')
    (tmp_path / 'mine' / 'helper' / 'part.py').write_text('answer = 42')
    async with await Sandbox.create(packages=[tmp_path / 'mine']) as sandbox:
        assert (await sandbox.run('import helper\nhelper.answer')).value == 42
    assert not cache.exists()


async def test_a_wheel_and_a_folder_go_together_without_network(tmp_path: Path, offline: None) -> None:
    wheel = make_wheel(tmp_path, 'greet', "def hello(): return 'hello'")
    (tmp_path / 'mine').mkdir()
    (tmp_path / 'mine' / 'other.py').write_text('import greet\nword = greet.hello()')
    async with await Sandbox.create(packages=[wheel, str(tmp_path / 'mine')]) as sandbox:
        cell = await sandbox.run("import other, importlib.metadata\nother.word, importlib.metadata.version('greet')")
        assert cell.value == ('hello', '1.0')


async def test_a_requirement_comes_from_the_registry() -> None:
    fetch('six==1.16.0')
    async with await Sandbox.create(packages='six==1.16.0') as sandbox:
        assert (await sandbox.run('import six\nsix.__version__, six.moves.range(2)[1]')).value == ('1.16.0', 1)


async def test_a_package_with_native_code_is_looked_up_once(
    tmp_path: Path, cache: Path, offline: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = str(make_wheel(tmp_path, 'fast', 'speed = 3', more={'inner.so': ''}))
    assert await choose_backend({'packages': [wheel]}) == 'process'
    monkeypatch.setattr(subprocess, 'run', no_pip)
    assert await choose_backend({'packages': [wheel]}) == 'process'
    assert 'not pure Python (inner.so)' in native_reason([wheel])
    (tmp_path / 'mine').mkdir()
    assert await choose_backend({'packages': [tmp_path / 'mine']}) == 'wasm'


async def test_packages_are_read_only_inside(tmp_path: Path) -> None:
    (tmp_path / 'module.py').write_text('x = 1')
    async with await Sandbox.create(packages=[tmp_path]) as sandbox:
        for code in (
            "open('/packages/module.py', 'w')",
            "open('/packages/new.py', 'w')",
            "import os; os.remove('/packages/module.py')",
            "import os; os.rename('/packages/module.py', '/packages/gone.py')",
        ):
            assert not (await sandbox.run(code)).ok
        assert (await sandbox.run('import module\nmodule.x')).value == 1
    assert [path.name for path in tmp_path.iterdir()] == ['module.py']


async def test_an_error_inside_a_package_shows_its_line(tmp_path: Path) -> None:
    (tmp_path / 'module.py').write_text("def f():\n    raise ValueError('deep')  # here\n")
    async with await Sandbox.create(packages=[tmp_path]) as sandbox:
        error = (await sandbox.run('import module\n\nmodule.f()')).error
    assert error is not None
    assert "raise ValueError('deep')  # here" in error.traceback
    assert error.line == 3


# The cache ------------------------------------------------------------------------------------------------------------


def test_what_was_fetched_once_is_not_fetched_again(
    tmp_path: Path, cache: Path, offline: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = make_wheel(tmp_path, 'greet', 'x = 1')
    folder = package_folder([str(wheel)])
    assert [path.name for path in cache.iterdir()] == [folder.name]
    monkeypatch.setattr(subprocess, 'run', no_pip)
    assert package_folder([str(wheel)]) == folder
    make_wheel(tmp_path, 'greet', 'x = 2')
    with pytest.raises(AssertionError, match='pip was called'):
        package_folder([str(wheel)])


def test_two_processes_that_fetch_at_once_both_get_it(tmp_path: Path, cache: Path, offline: None) -> None:
    wheel = make_wheel(tmp_path, 'greet', 'x = 1')
    code = f'from habilis.sandbox.packages.installation import package_folder; print(package_folder([{str(wheel)!r}]))'
    environment = {**os.environ, 'HABILIS_CACHE': str(cache.parent)}
    command = [sys.executable, '-c', code]
    processes = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outcomes = [process.communicate(timeout=600) for process in processes]
    said = [line for _, error in outcomes for line in error.splitlines()]
    assert [line for line in said if not line.startswith('habilis: ')] == [], 'progress only'
    [folder] = {Path(output.strip()) for output, _ in outcomes}
    assert (folder / 'greet.py').read_text() == 'x = 1'
    assert list(cache.iterdir()) == [folder]


# Why a registry has no file that fits ---------------------------------------------------------------------------------


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes a registry on disk, the only one that pip may ask, and adds files to it."""
    for name in ('PIP_NO_INDEX', 'PIP_FIND_LINKS', 'PIP_EXTRA_INDEX_URL'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv('PIP_CONFIG_FILE', os.devnull)
    monkeypatch.setenv('PIP_INDEX_URL', (tmp_path / 'registry').as_uri())

    def add(project: str, *files: str, python: str = '', sha256: str = '', content: bytes = b'') -> None:
        folder = tmp_path / 'registry' / project
        folder.mkdir(parents=True, exist_ok=True)
        mark = f'#sha256={sha256}' if sha256 else ''
        needs = f' data-requires-python="{html.escape(python)}"' if python else ''
        with (folder / 'index.html').open('a') as index:
            for file in files:
                (folder / file).write_bytes(content)
                index.write(f'<a href="{file}{mark}"{needs}>{file}</a>\n')

    return add


def reason(*packages: str) -> str:
    with pytest.raises(PackageError) as caught:
        package_folder(list(packages))
    return str(caught.value)


def test_a_version_that_does_not_exist_is_answered_with_the_newest_ones(registry: Callable[..., None]) -> None:
    registry('tool', *(f'tool-{version}-py3-none-any.whl' for version in ('1.9', '1.10', '2.0rc1', '0.9')))
    registry('tool', 'tool-0.1-py2-none-any.whl', 'tool-1.8.tar.gz', 'tool-1.10-cp314-cp314-win32.whl')
    assert reason('tool==99.1') == 'there is no tool==99.1; the newest versions of tool are 1.10, 1.9, 1.8, 0.9, 0.1'
    assert 'there is no tool<0.1;' in reason('tool<0.1')


def test_native_wheels_are_distinguished_and_the_newest_pure_version_is_named(registry: Callable[..., None]) -> None:
    registry('fast', 'fast-3.0-cp314-cp314-manylinux_2_28_x86_64.whl', 'fast-3.0.tar.gz')
    native = (
        'fast is not pure Python: version 3.0 has only native wheels, which cannot run here; this needs native code'
    )
    assert reason('fast') == f"{native}: Agent(sandbox='process', packages=['fast'])"
    registry('fast', 'fast-1.0-py3-none-any.whl', 'fast-2.0-py3-none-any.whl')
    assert reason('fast>=3').endswith("packages=['fast']); the newest version that works here is 2.0")


def test_a_package_for_another_python_says_which(registry: Callable[..., None]) -> None:
    registry('late', 'late-2.0-py3-none-any.whl', python='>=3.99')
    assert reason('late') == 'late 2.0 needs Python >=3.99, and the sandbox runs Python 3.14'
    registry('late', 'late-1.0-py3-none-any.whl', python='>=3.8')
    assert reason('late==2.0').endswith('Python 3.14; the newest version that works here is 1.0')


def test_a_package_that_is_only_source_says_so(registry: Callable[..., None]) -> None:
    registry('old', 'old-1.0.tar.gz')
    assert reason('old') == 'old 1.0 is published only as source; build a wheel of it (pip wheel) and give its path'


def test_a_package_that_is_not_there_is_not_taken_for_another_reason(registry: Callable[..., None]) -> None:
    registry('tool', 'tool-1.0-py3-none-any.whl')
    assert reason('tools') == "there is no package called 'tools'"


def test_the_package_that_needs_the_missing_one_is_named(registry: Callable[..., None], tmp_path: Path) -> None:
    registry('fast', 'fast-3.0-cp314-cp314-win_amd64.whl')
    meta = 'Metadata-Version: 2.1\nName: outer\nVersion: 1.0\nRequires-Dist: fast>=2\n'
    wheel = make_wheel(tmp_path, 'outer', '', more={'outer-1.0.dist-info/METADATA': meta})
    assert reason(str(wheel)).startswith('fast (needed by outer) is not pure Python')


def test_a_file_with_another_hash_is_refused(registry: Callable[..., None], tmp_path: Path, cache: Path) -> None:
    wheel = make_wheel(tmp_path, 'greet', 'x = 1')
    registry('greet', wheel.name, sha256='0' * 64, content=wheel.read_bytes())
    assert reason('greet').startswith('the hash of a file of greet does not match')
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize('status', [401, 403, 500, 503])
def test_a_registry_that_refuses_is_not_taken_for_one_without_the_package(
    status: int, monkeypatch: pytest.MonkeyPatch, offline: None
) -> None:
    class Refuse(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(status)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.HTTPServer(('127.0.0.1', 0), Refuse) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv('PIP_INDEX_URL', f'http://127.0.0.1:{server.server_port}/registry')
        assert f'HTTP {status}' in reason('six')
        server.shutdown()


# What cannot be had ---------------------------------------------------------------------------------------------------


def test_a_package_with_native_code_is_refused_with_the_reason(cache: Path) -> None:
    with pytest.raises(PackageError, match=r"numpy is not pure Python.*Agent.sandbox='process', packages=.'numpy'"):
        fetch('numpy')
    assert list(cache.iterdir()) == []


def test_native_code_in_a_wheel_that_claims_to_have_none_is_found(tmp_path: Path, cache: Path, offline: None) -> None:
    wheel = make_wheel(tmp_path, 'liar', '', more={'inner/fast.so': 'ELF'})
    with pytest.raises(PackageError, match=r"not pure Python \(inner/fast\.so\); .*sandbox='process'"):
        package_folder([str(wheel)])
    assert list(cache.iterdir()) == []


def test_an_unknown_package_is_named() -> None:
    with pytest.raises(PackageError, match="there is no package called 'habilis-no-such-package'"):
        fetch('habilis-no-such-package')


def test_an_unknown_version_is_answered_with_those_there_are() -> None:
    with pytest.raises(PackageError, match=r'six==99[\s\S]*1\.16\.0'):
        fetch('six==99')


def test_without_network_the_message_says_so(cache: Path, offline: None) -> None:
    with pytest.raises(PackageError, match=r'no network to fetch six==1\.16\.0; give a wheel or a folder instead'):
        package_folder(['six==1.16.0'])
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize('package', ['missing-1.0-py3-none-any.whl', './missing', '/no/such/folder'])
def test_a_file_that_is_not_there_is_named(package: str) -> None:
    with pytest.raises(PackageError, match='there is no file'):
        package_folder([package])


@pytest.mark.parametrize('package', ['--help', 'a b c'])
def test_what_is_not_a_requirement_is_an_error_and_never_an_option(package: str, cache: Path, offline: None) -> None:
    with pytest.raises(PackageError):
        package_folder([package])
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize('package', ['', ' '])
def test_an_empty_name_is_not_the_current_folder(package: str) -> None:
    with pytest.raises(PackageError, match='a package needs a name'):
        package_folder([package])


def test_a_broken_wheel_leaves_nothing_behind(tmp_path: Path, cache: Path, offline: None) -> None:
    wheel = make_wheel(tmp_path, 'greet', 'x = 1')
    wheel.write_bytes(wheel.read_bytes()[:-40])
    with pytest.raises(PackageError, match='greet'):
        package_folder([str(wheel)])
    assert list(cache.iterdir()) == []


def test_an_interrupted_fetch_leaves_nothing_behind(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(command: list[str], **_: object) -> None:
        target = Path(command[command.index('--target') + 1])
        (target / 'half.py').write_text('x =')
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, 'run', interrupted)
    with pytest.raises(KeyboardInterrupt):
        package_folder(['six'])
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize('form', ['{folder}', '{archive}', 'file://{archive}', 'evil @ file://{archive}'])
def test_source_is_refused_before_any_of_its_code_runs_on_the_host(form: str, tmp_path: Path) -> None:
    folder = tmp_path / 'evil'
    folder.mkdir()
    (folder / 'setup.py').write_text(
        f'open({str(tmp_path / "ran")!r}, "w")\nfrom setuptools import setup\nsetup(name="evil")'
    )
    archive = tmp_path / 'evil-1.0.tar.gz'
    with tarfile.open(archive, 'w:gz') as packed:
        packed.add(folder, 'evil-1.0')
    with pytest.raises(PackageError, match='is source'):
        package_folder([form.format(folder=folder, archive=archive)])
    assert not (tmp_path / 'ran').exists()


# In a running sandbox -------------------------------------------------------------------------------------------------


@pytest.fixture(scope='module')
def fetched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache for these tests together: each package is fetched by pip once, which takes a second."""
    return tmp_path_factory.mktemp('fetched')


@pytest.fixture
def greetings(registry: Callable[..., None], fetched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry that has two versions of one package and one of another."""
    monkeypatch.setattr('habilis.sandbox.packages.installation.cache_folder', lambda: fetched)
    offer_greetings(registry, tmp_path)


def offer_greetings(registry: Callable[..., None], tmp_path: Path) -> None:
    (tmp_path / 'wheels').mkdir()
    for name, version in (('greet', '1.0'), ('greet', '2.0'), ('other', '1.0')):
        made = make_wheel(tmp_path / 'wheels', name, f'version = {version!r}\nclass Greeting: pass', version=version)
        registry(name, made.name, content=made.read_bytes())


async def test_a_package_is_installed_in_a_running_sandbox_that_keeps_its_variables(greetings: None) -> None:
    async with await Sandbox.create(variables={'gone': 1}) as sandbox:
        await sandbox.run('def double(n): return 2 * n\nsome = same = [1]\ndel gone')
        assert not (await sandbox.run('import greet')).ok
        await sandbox.install('greet==1.0')
        assert (await sandbox.run('import greet\ngreet.version, double(21), some is same')).value == ('1.0', 42, True)
        assert 'gone' not in await sandbox.get_variables()
        await sandbox.install('other')
        assert (await sandbox.run('import other\nother.version, greet.version')).value == ('1.0', '1.0')


async def test_a_later_version_takes_the_place_of_an_earlier_one(greetings: None) -> None:
    async with await Sandbox.create(packages=['greet==1.0']) as sandbox:
        await sandbox.run('import greet')
        await sandbox.install('greet')  # there already
        assert (await sandbox.run('greet.version')).value == '1.0'
        await sandbox.install('greet>=2')
        assert (await sandbox.run('greet.version')).value == '2.0'


async def test_a_fork_and_a_restored_snapshot_have_the_packages(greetings: None) -> None:
    async with await Sandbox.create() as sandbox:
        await sandbox.install('greet<2')
        await sandbox.run('import greet\nhello = greet.Greeting()')
        async with await sandbox.fork() as twin:
            assert (await twin.run('type(hello).__module__, greet.version')).value == ('greet', '1.0')
        data = await sandbox.snapshot()
    async with await Sandbox.restore(data) as restored:
        assert (await restored.run('type(hello).__module__, greet.version')).value == ('greet', '1.0')
        again = await restored.snapshot()
    async with await Sandbox.create() as other:
        await other.load_snapshot(again)
        assert (await other.run('greet.version')).value == '1.0'
    async with await Sandbox.restore(data, packages=['greet==2.0']) as newer:  # what was asked for goes first
        assert (await newer.run('greet.version')).value == '2.0'


async def test_packages_survive_a_cell_that_is_stopped_by_force(greetings: None) -> None:
    async with await Sandbox.create() as sandbox:
        await sandbox.install('greet==1.0')
        await sandbox.run('import greet\nx = greet.Greeting()')
        assert (await sandbox.run('while True: pass', seconds=0.2)).error
        assert (await sandbox.run('type(x).__name__, greet.version')).value == ('Greeting', '1.0')


async def test_a_package_that_cannot_be_installed_changes_nothing(greetings: None) -> None:
    async with await Sandbox.create() as sandbox:
        await sandbox.run('import asyncio\nrunning = iter([1, 2])\ngenerator = (n for n in range(3))\nnext(generator)')
        with pytest.raises(PackageError, match='there is no package'):
            await sandbox.install('missing')
        with pytest.raises(SandboxError, match=r'cannot be saved: generator; delete them first'):
            await sandbox.install('greet')
        assert (await sandbox.run('next(generator)')).value == 1
        await sandbox.run('del generator')
        await sandbox.install('greet')
        assert (await sandbox.run('next(running)')).value == 1


async def test_variables_that_a_new_version_cannot_restore_are_kept_with_the_old_one(
    greetings: None, registry: Callable[..., None], tmp_path: Path
) -> None:
    made = make_wheel(tmp_path, 'greet', 'version = 3', version='3.0')  # without the class
    registry('greet', made.name, content=made.read_bytes())
    async with await Sandbox.create(packages=['greet==1.0']) as sandbox:
        await sandbox.run('import greet\nx = greet.Greeting()')
        with pytest.raises(SandboxError, match='Greeting'):
            await sandbox.install('greet==3.0')
        assert (await sandbox.run('type(x).__name__, greet.version')).value == ('Greeting', '1.0')


async def test_packages_that_are_installed_at_the_same_time_are_all_there(
    registry: Callable[..., None], tmp_path: Path
) -> None:
    offer_greetings(registry, tmp_path)
    async with await Sandbox.create() as sandbox:
        await asyncio.gather(sandbox.install('greet'), sandbox.install('other'), sandbox.run('x = 1'))
        assert (await sandbox.run('import greet, other\nx')).value == 1


def test_a_sandbox_without_await_installs_too(greetings: None) -> None:
    with Sandbox.create_sync() as sandbox:
        sandbox.install('greet')
        assert sandbox.run('import greet\ngreet.version').value == '2.0'


@pytest.mark.parametrize('name', ['/etc', '..', 'file:///etc', 'x @ file:///etc/x-1.0-py3-none-any.whl', '-r', 'greet'])
async def test_a_forged_snapshot_cannot_name_files_of_the_host(name: str) -> None:
    async with await Sandbox.create() as sandbox:
        checkpoint = from_bytes(await sandbox.snapshot())
    forged = to_bytes(replace(checkpoint, packages=(name,)))
    with pytest.raises(SnapshotError, match='malformed'):
        await Sandbox.restore(forged)


async def test_links_in_a_folder_of_packages_lead_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / 'secret').mkdir()
    (tmp_path / 'secret' / 'key.txt').write_text('swordfish')
    (tmp_path / 'mine').mkdir()
    (tmp_path / 'mine' / 'key.txt').symlink_to(tmp_path / 'secret' / 'key.txt')
    wheel = make_wheel(tmp_path, 'greet', 'x = 1')
    for packages in ([tmp_path / 'mine'], [tmp_path / 'mine', wheel]):
        async with await Sandbox.create(packages=packages) as sandbox:
            cell = await sandbox.run("open('/packages/key.txt').read()")
            assert cell.error is not None
            assert cell.error.type in {'PermissionError', 'FileNotFoundError'}


async def test_a_link_that_a_sandbox_made_is_not_taken_for_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / 'key.txt').write_text('swordfish')
    (tmp_path / 'space').mkdir()
    monkeypatch.chdir(tmp_path / 'space')
    async with await Sandbox.create(workspace='.') as sandbox:
        assert (await sandbox.run("import os\nos.symlink('..', 'greet')")).ok
        with pytest.raises(PackageError, match='is a link in the current folder'):
            await sandbox.install('greet')
