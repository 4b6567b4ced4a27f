"""Packages for the inside: from a folder, a wheel or a registry, fetched once, and never half."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from habilis import Sandbox
from habilis.core.errors import PackageError
from habilis.sandbox.packages import package_folder


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of packages, beside the real one of the interpreter."""
    monkeypatch.setattr('habilis.sandbox.packages.cache_folder', lambda: tmp_path / 'cache')
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
            pytest.skip('needs the package registry')
        raise


def make_wheel(folder: Path, name: str, code: str, *, more: dict[str, str] | None = None) -> Path:
    """A wheel with one module."""
    info = f'{name}-1.0.dist-info'
    path = folder / f'{name}-1.0-py3-none-any.whl'
    files = {
        f'{name}.py': code,
        f'{info}/METADATA': f'Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n',
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
    code = f'from habilis.sandbox.packages import package_folder; print(package_folder([{str(wheel)!r}]))'
    environment = {**os.environ, 'HABILIS_CACHE': str(cache.parent)}
    command = [sys.executable, '-c', code]
    processes = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outcomes = [process.communicate(timeout=60) for process in processes]
    assert [error for _, error in outcomes] == ['', '']
    [folder] = {Path(output.strip()) for output, _ in outcomes}
    assert (folder / 'greet.py').read_text() == 'x = 1'
    assert list(cache.iterdir()) == [folder]


# What cannot be had ---------------------------------------------------------------------------------------------------


def test_a_package_with_native_code_is_refused_with_the_reason(cache: Path) -> None:
    with pytest.raises(PackageError, match=r'numpy is not pure Python.* backend with native packages'):
        fetch('numpy')
    assert list(cache.iterdir()) == []


def test_native_code_in_a_wheel_that_claims_to_have_none_is_found(tmp_path: Path, cache: Path, offline: None) -> None:
    wheel = make_wheel(tmp_path, 'liar', '', more={'inner/fast.so': 'ELF'})
    with pytest.raises(PackageError, match=r'not pure Python \(inner/fast\.so\)'):
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
