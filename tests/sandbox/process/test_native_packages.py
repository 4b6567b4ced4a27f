"""numpy, pandas and matplotlib in the `process` backend, from the package registry."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from habilis.core.errors import PackageError
from habilis.core.limits import Limits
from habilis.sandbox.contract import PythonTarget
from habilis.sandbox.packages.installation import package_folder
from habilis.sandbox.process.guest import ProcessGuest
from habilis.sandbox.session import Sandbox, SyncSandbox
from tests.requirements import missing
from tests.sandbox.packages.test_installation import make_wheel

PACKAGES = ['numpy', 'pandas', 'matplotlib']


@pytest.fixture(scope='module')
def data() -> Iterator[SyncSandbox]:
    """A sandbox with the packages, in the real cache: they take long to install."""
    try:
        made = Sandbox.create_sync(
            'process', packages=PACKAGES, workspace=True, limits=Limits(seconds=120, memory_mb=512)
        )
    except PackageError as error:
        if 'no network' in str(error):
            missing('registry')
        raise
    with made:
        assert made.run('import numpy as np, pandas as pd, matplotlib.pyplot as plt').ok
        yield made


def test_numpy_computes_and_comes_from_the_mounted_packages(data: SyncSandbox) -> None:
    cell = data.run('float((np.eye(50) @ np.ones(50)).sum()), np.__file__.startswith("/packages/")')
    assert cell.value == (50.0, True)


def test_packages_cannot_be_changed_from_inside(data: SyncSandbox) -> None:
    assert data.run('open(np.__file__, "a")').error is not None


def test_a_table_is_shown_as_html_and_text(data: SyncSandbox) -> None:
    cell = data.run('table = pd.DataFrame({"region": ["north", "south"], "sales": [1, 2]})\ntable')
    assert [display.mime for display in cell.displays] == ['text/html']
    assert '<td>north</td>' in str(cell.displays[0].data)
    assert cell.text is not None
    assert 'region' in cell.text


def test_figures_are_shown_without_being_asked_for_and_again_only_when_they_change(data: SyncSandbox) -> None:
    data.run('plt.close("all")')
    first = data.run('plt.plot([1, 2, 3])')
    assert [(shown.mime, bytes(shown.data)[:4]) for shown in first.displays] == [('image/png', b'\x89PNG')]  # type: ignore[arg-type]
    assert data.run('1').displays == ()
    assert len(data.run('plt.title("changed")\nplt.savefig("plot.png")').displays) == 1
    assert data.download('plot.png')[:4] == b'\x89PNG'
    assert len(data.run('figure, axes = plt.subplots()\naxes.plot([1])\nplt.show()').displays) == 1
    assert data.run('figure.savefig("same.png", dpi=150)').displays == ()
    with data.fork() as twin:
        assert twin.run('1').displays == ()
        assert len(twin.run('axes.plot([2])\nNone').displays) == 1
    assert len(data.run('figure').displays) == 1
    assert data.run('plt.close("all")\nplt.figure()\nNone').displays == ()


def test_arrays_and_tables_survive_a_cell_that_is_stopped(data: SyncSandbox) -> None:
    data.run('kept = np.arange(3)\nframe = pd.DataFrame({"a": [1]})')
    assert data.run('while True: pass', seconds=1).error
    assert data.run('kept.tolist(), len(frame)').value == ([0, 1, 2], 1)


def test_a_fork_has_the_arrays(data: SyncSandbox) -> None:
    data.run('import numpy as np\nshared = np.arange(4)')
    with data.fork() as twin:
        assert twin.run('shared[0] = 9\nshared.tolist()').value == [9, 1, 2, 3]
    assert data.run('shared.tolist()').value == [0, 1, 2, 3]


def test_a_large_array_is_the_limit_of_memory(data: SyncSandbox) -> None:
    cell = data.run('np.ones(1 << 30)')
    assert cell.error is not None
    assert cell.error.kind == 'memory'


async def test_auto_takes_process_for_native_packages_and_wasm_for_the_rest(
    data: SyncSandbox, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level('INFO', 'habilis.sandbox'):
        async with await Sandbox.create('auto', packages=PACKAGES, limits=Limits(seconds=60)) as sandbox:
            assert sandbox.isolation == data.sandbox.isolation
        async with await Sandbox.create('auto') as sandbox:
            assert 'WebAssembly' in sandbox.isolation
    assert [record.message[:29] for record in caplog.records] == ['sandbox="auto" chose process:']


def test_an_unknown_package_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('habilis.sandbox.packages.installation.cache_folder', lambda: tmp_path)
    monkeypatch.setenv('PIP_CONFIG_FILE', os.devnull)
    monkeypatch.setenv('PIP_INDEX_URL', tmp_path.as_uri())
    monkeypatch.delenv('PIP_FIND_LINKS', raising=False)
    with pytest.raises(PackageError, match="there is no package called 'habilis-no-such-package'"):
        Sandbox.create_sync('process', packages=['habilis-no-such-package'])


def test_uv_installs_where_pip_has_no_settings_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """uv reads no settings of pip, so it must not be asked where those name another registry."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 0, '', '')

    own = PythonTarget(version=f'{sys.version_info.major}.{sys.version_info.minor}', platforms=('linux_x86_64',))
    monkeypatch.setattr('habilis.sandbox.packages.installation.cache_folder', lambda: tmp_path)

    def find(name: str) -> str:
        return '/usr/bin/uv'

    monkeypatch.setattr('shutil.which', find)
    monkeypatch.setattr(subprocess, 'run', run)
    for configured in (True, False):
        monkeypatch.setattr(
            'habilis.sandbox.packages.installation._pip_is_configured', lambda configured=configured: configured
        )
        package_folder([f'package{configured}'], own)
    assert ['pip' in command[1:4] and command[0] == '/usr/bin/uv' for command in commands] == [False, True]
    assert all('--only-binary' in command for command in commands)


# Guests that are started ahead ----------------------------------------------------------------------------------------


async def test_who_asks_again_for_the_same_gets_a_guest_with_its_packages_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('habilis.sandbox.packages.installation.cache_folder', lambda: tmp_path / 'cache')
    wheel = make_wheel(tmp_path, 'greet', 'print("imported")\nx = 1')
    seen: list[object] = []
    end = time.monotonic() + 30
    while True not in seen[-1:] and time.monotonic() < end:
        async with await Sandbox.create('process', packages=[wheel]) as sandbox:
            cell = await sandbox.run("import sys\n'greet' in sys.modules")
            seen.append(cell.value)
            assert (cell.stdout, cell.stderr) == ('', '')
            assert (await sandbox.run('import greet\ngreet.x')).value == 1
    assert seen[:2] == [False, False]
    assert seen[-1] is True


async def test_a_package_that_needs_more_memory_than_the_limit_does_not_get_it_ahead_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('habilis.sandbox.packages.installation.cache_folder', lambda: tmp_path / 'cache')
    started: list[ProcessGuest] = []

    def record(guest: ProcessGuest) -> None:
        started.append(guest)
        wait_until_ready(guest)

    wait_until_ready = ProcessGuest.wait_until_ready
    monkeypatch.setattr(ProcessGuest, 'wait_until_ready', record)
    greedy = 'import time\nkept = []\nfor _ in range(8): kept.append(b"x" * (64 << 20))\ntime.sleep(600)'
    wheel = make_wheel(tmp_path, 'greedy', greedy)
    for _ in range(2):
        async with await Sandbox.create('process', packages=[wheel], limits=Limits(memory_mb=128)) as sandbox:
            error = (await sandbox.run('import greedy')).error
            assert error is not None
            assert error.type == 'MemoryError'
    end = time.monotonic() + 60
    while not any(guest._reason for guest in started):  # pyright: ignore[reportPrivateUsage]
        assert time.monotonic() < end
        await asyncio.sleep(0.05)


async def test_a_guest_that_was_started_ahead_is_not_used_for_another_folder_of_that_name(tmp_path: Path) -> None:
    space = tmp_path / 'space'
    for number in range(4):
        space.mkdir()
        (space / 'number').write_text(str(number))
        for _ in range(2):
            async with await Sandbox.create('process', workspace=space) as sandbox:
                assert (await sandbox.run("open('number').read()")).value == str(number)
        await asyncio.sleep(0.3)
        space.rename(tmp_path / f'old-{number}')


async def test_forks_draw_other_numbers_from_numpy(data: SyncSandbox) -> None:
    drawn: list[object] = []
    end = time.monotonic() + 60
    while len(drawn) < 2 and time.monotonic() < end:
        async with await Sandbox.create('process', packages=PACKAGES) as sandbox:
            if (await sandbox.run("import sys\n'numpy' in sys.modules")).value is True:  # of a zygote
                drawn.append((await sandbox.run('import numpy as np\nfloat(np.random.rand())')).value)
    async with await data.sandbox.fork() as twin:
        drawn += [(await box.run('float(np.random.rand())')).value for box in (data.sandbox, twin)]
    assert len(set(drawn)) == len(drawn) == 4
