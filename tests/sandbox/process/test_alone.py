"""The `process` backend where namespaces are refused: as whole as with them, except for other processes."""

import ctypes
import errno
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import habilis
from habilis import Agent
from habilis.core.errors import AgentError, PackageError
from habilis.core.limits import Limits
from habilis.models.scripted import ScriptedModel
from habilis.sandbox.code_rules import CodeRules
from habilis.sandbox.contract import Mount
from habilis.sandbox.process.broker_client import python
from habilis.sandbox.session import Sandbox, SyncSandbox
from habilis.tools import Shell
from tests.requirements import missing

UNWANTED = {'antigravity', 'idlelib', 'test', 'this', 'tkinter', 'turtle', 'turtledemo', '__main__', '__phello__'}
IMPORTS = f"""
import importlib, sys, warnings
warnings.simplefilter('ignore')
imported = []
for name in sorted(sys.stdlib_module_names - {UNWANTED!r}):
    try:
        importlib.import_module(name)
    except ImportError:  # of another system, or not built here
        continue
    imported.append(name)
"""
PACKAGES = ['numpy', 'pandas', 'matplotlib']  # as in the other tests: they take long to install
NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason='needs root')


@pytest.mark.usefixtures('no_namespaces')
def test_the_whole_standard_library_is_there() -> None:
    code = f'{IMPORTS}print(*imported)'
    done = subprocess.run([python(), '-I', '-S', '-c', code], capture_output=True, text=True, check=True, cwd='/')
    with Sandbox.create_sync('process', limits=Limits(seconds=120, memory_mb=512)) as sandbox:
        assert sandbox.run(f'{IMPORTS}imported').value == done.stdout.split()


@pytest.mark.usefixtures('no_namespaces')
def test_native_packages_work_and_read_and_write_files_by_the_paths_of_mounts(tmp_path: Path) -> None:
    (tmp_path / 'table.csv').write_text('a\n1\n2\n')
    limits = Limits(seconds=120, memory_mb=512)
    mounts = {'/inputs': tmp_path}
    try:
        sandbox = Sandbox.create_sync('process', packages=PACKAGES, workspace=True, mounts=mounts, limits=limits)
    except PackageError as error:
        if 'no network' in str(error):
            missing('registry')
        raise
    with sandbox:
        cell = sandbox.run(
            'import numpy as np, pandas as pd, matplotlib.pyplot as plt\n'
            "table = pd.read_csv('/inputs/table.csv')\nplt.plot(table.a)\nplt.savefig('/workspace/plot.png')\n"
            "np.save('/workspace/array', np.eye(3))\nint(table.a.sum()), float(np.load('array.npy').sum())"
        )
        assert cell.value == (3, 3.0), cell.error
        assert [display.mime for display in cell.displays] == ['image/png']
        assert cell.stderr == ''
        assert sandbox.download('plot.png')[:4] == b'\x89PNG'


@pytest.mark.usefixtures('no_namespaces')
def test_mounts_have_their_paths_in_the_functions_of_python(tmp_path: Path) -> None:
    (tmp_path / 'in').mkdir()
    (tmp_path / 'in' / 'file').write_text('text')
    mounts = [Mount(source=tmp_path / 'in', target='/data/in')]
    with Sandbox.create_sync('process', workspace=tmp_path / 'space', mounts=mounts) as sandbox:
        sandbox.run('import glob, os, pathlib, shutil, sqlite3, tempfile')
        values: dict[str, object] = {
            "open('/data/in/file').read()": 'text',
            "open(b'//data/./in/file', 'rb').read()": b'text',
            "pathlib.Path('/workspace/../data/in/file').read_text()": 'text',
            "os.listdir(path='/data/in'), os.path.exists('/data/in/none')": (['file'], False),
            "glob.glob('/data/in/*'), [str(p) for p in pathlib.Path('/data/in').iterdir()]": (['/data/in/file'],) * 2,
            "[str(p) for p in pathlib.Path('/data/in').rglob('f*')], os.scandir('/data/in').__next__().path": (
                ['/data/in/file'],
                '/data/in/file',
            ),
            "next(os.walk('/data/in')), [entry.is_file() for entry in os.scandir('/data/in')]": (
                ('/data/in', [], ['file']),
                [True],
            ),
            "tempfile.NamedTemporaryFile(dir='/workspace').close()": None,
            "shutil.copytree('/data/in', '/workspace/copy'), os.listdir('copy')": ('/workspace/copy', ['file']),
            "os.rename('/workspace/copy', '/workspace/other'), os.listdir('/workspace')": (None, ['other']),
            "os.symlink('/data/in/file', 'link'), open('/workspace/link').read()": (None, 'text'),
            "shutil.rmtree('/workspace/other'), os.path.isdir('other')": (None, False),
            "open('/tmp/a', 'w').write('b'), os.listdir('/tmp'), open('/tmp/a').read()": (1, ['a'], 'b'),
            'os.path.dirname(tempfile.mkstemp()[1]) == tempfile.gettempdir() == os.path.realpath("/tmp")': True,
            "sqlite3.connect('/workspace/base').execute('create table x (y)').fetchall()": [],
            "os.access('/workspace', os.W_OK), os.access('/data/in/file', os.R_OK | os.X_OK)": (True, False),
            "os.path.realpath('/data/in/file')": str(tmp_path / 'in' / 'file'),
        }
        for code, value in values.items():
            cell = sandbox.run(code)
            assert cell.value == value, (code, cell.error)
        for code, message in {
            "open('/data/in/none')": "No such file or directory: '/data/in/none'",
            "open('/data/in/new', 'w')": "Permission denied: '/data/in/new'",
            "os.rename('/data/in/file', '/workspace/file')": "denied: '/data/in/file' -> '/workspace/file'",
        }.items():
            error = sandbox.run(code).error
            assert error is not None
            assert error.message.endswith(message)
        assert sandbox.run('read, find = open, os.stat').ok
        with sandbox.fork() as twin:
            assert twin.run("read('/data/in/file').read(), find('/data/in/file').st_size").value == ('text', 4)
    assert [path.name for path in (tmp_path / 'in').iterdir()] == ['file']


@pytest.mark.usefixtures('no_namespaces')
def test_modules_of_the_workspace_are_the_users_and_packages_are_a_library(tmp_path: Path) -> None:
    (tmp_path / 'space').mkdir()
    (tmp_path / 'space' / 'mine.py').write_text('def fail():\n    raise ValueError\n')
    (tmp_path / 'packages').mkdir()
    (tmp_path / 'packages' / 'theirs.py').write_text('import colorsys\n')
    rules = CodeRules(imports=('mine', 'theirs'))
    space, packages = tmp_path / 'space', [tmp_path / 'packages']
    with Sandbox.create_sync('process', workspace=space, packages=packages, code_rules=rules) as sandbox:
        assert sandbox.run('import theirs').ok
        assert sandbox.run('import colorsys').error is not None
        error = sandbox.run('import mine\nmine.fail()').error
        assert error is not None
        assert 'mine.py", line 2, in fail' in error.traceback


@pytest.mark.usefixtures('no_namespaces')
def test_the_temporary_files_of_a_sandbox_are_its_own_and_go_with_it() -> None:
    with Sandbox.create_sync('process') as one, Sandbox.create_sync('process') as two:
        folder = Path(str(one.run("import os\nopen('/tmp/a', 'w').close()\nos.path.realpath('/tmp')").value))
        assert two.run("import os\nos.listdir('/tmp')").value == []
        assert two.run(f'open({str(folder / "a")!r})').error is not None
        assert (folder / 'a').exists()
    assert not folder.exists()


@pytest.mark.usefixtures('no_namespaces')
@pytest.mark.parametrize('name', ['process', 'auto'])
def test_a_toolset_that_needs_processes_is_refused_with_its_agent(name: str) -> None:
    reason = 'shell needs a sandbox that starts processes: sandbox="process" has no namespaces on this machine'
    with pytest.raises(AgentError, match=f'{reason}: allow them .*, or use sandbox="docker"'):
        Agent(ScriptedModel([]), tools=[Shell()], sandbox=name, packages=['numpy'])


@pytest.mark.usefixtures('no_namespaces')
def test_shared_memory_and_queues_of_other_processes_are_out_of_reach() -> None:
    libc = ctypes.CDLL(None)
    memory, queue = libc.shmget(0, 4096, 0o1666), libc.msgget(0, 0o1666)
    try:
        with Sandbox.create_sync('process') as sandbox:
            sandbox.run('import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nlibc.shmat.restype = ctypes.c_long')
            for call in (f'shmat({memory}, None, 0)', f'shmctl({memory}, 0, None)', f'msgctl({queue}, 0, None)'):
                assert sandbox.run(f'libc.{call}, ctypes.get_errno()').value == (-1, errno.EPERM), call
    finally:
        libc.shmctl(memory, 0, None)
        libc.msgctl(queue, 0, None)


# The user of the guest ------------------------------------------------------------------------------------------------


def status_of(sandbox: SyncSandbox) -> dict[str, list[str]]:
    """What the kernel says of the process of a guest."""
    guest = sandbox.sandbox._interpreter._guest  # pyright: ignore[reportPrivateUsage]
    lines = Path(f'/proc/{guest.pid}/status').read_text().splitlines()  # type: ignore[union-attr]
    return {name: values.split() for name, _, values in (line.partition(':') for line in lines)}


@as_root
@pytest.mark.usefixtures('no_namespaces')
def test_a_guest_of_root_is_another_user_to_processes_and_the_owner_to_files(tmp_path: Path) -> None:
    with Sandbox.create_sync('process', workspace=tmp_path) as one, Sandbox.create_sync('process') as two:
        assert one.run("open('made', 'w').close()").ok
        users = {status_of(one)['Uid'][0], status_of(two)['Uid'][0]}
        assert len(users) == 2
        assert '0' not in users
        for sandbox in (one, two):
            status = status_of(sandbox)
            assert [len(set(status[kind][:3])) for kind in ('Uid', 'Gid')] == [1, 1]
            assert (status['Uid'][3], status['Gid'][3], status['Groups']) == ('0', '0', [])
            assert {int(status[kind][0], 16) for kind in ('CapInh', 'CapPrm', 'CapEff', 'CapAmb')} == {0}
            for attack in ('os.setuid(0)', 'os.setresuid(0, 0, 0)', "open('/etc/shadow')", "open('/etc/new', 'w')"):
                error = sandbox.run(f'import os\n{attack}').error
                assert error is not None, attack
                assert error.type == 'PermissionError'
    assert (tmp_path / 'made').stat().st_uid == 0


@as_root
@pytest.mark.usefixtures('no_namespaces')
def test_a_guest_of_root_passes_closed_folders_to_write_in_that_of_another_user(tmp_path: Path) -> None:
    space, closed = tmp_path / 'space', tmp_path / 'closed'
    for folder in (space, closed, closed / 'in'):
        folder.mkdir(mode=0o700)
    (closed / 'in' / 'file').write_text('text')
    (closed / 'secret').write_text('hunter2')
    os.chown(space, 1234, 1235)
    with Sandbox.create_sync('process', workspace=space, mounts={'/in': closed / 'in'}) as sandbox:
        cell = sandbox.run("import sqlite3, email\nopen('made', 'w').write(open('/in/file').read())")
        assert cell.ok, cell.error
        for path, mode in (('../closed/secret', 'r'), ('../closed/new', 'w'), ('/in/new', 'w')):
            error = sandbox.run(f'open({path!r}, {mode!r})').error
            assert error is not None
            assert error.type == 'PermissionError'
        assert int(status_of(sandbox)['CapEff'][0], 16) == 1 << 1  # CAP_DAC_OVERRIDE, and Landlock decides
    made = (space / 'made').stat()
    assert (made.st_uid, made.st_gid) == (1234, 1235)


# A filter that really refuses namespaces ------------------------------------------------------------------------------

TEST = 'from habilis.cli.doctor.backend_tests import run_process_test\nprint(*run_process_test(), sep="\\n")'
NEEDED = 'import habilis.cli.doctor.backend_tests, pydantic_core, tests.sandbox.process.refusal'


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that other users can reach, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.parametrize('who', ['this user', 'nobody', 'root of a container'])
def test_a_cell_and_a_native_package_run_where_a_filter_refuses_namespaces(who: str, home: Path) -> None:
    program, user = ('/usr/bin/python3', NOBODY) if who == 'nobody' else (sys.executable, None)
    container = ['unshare', '--user', '--map-root-user'] if who == 'root of a container' else []
    if user and os.geteuid() != 0:
        pytest.skip('needs root, to become nobody')
    os.chown(home, user or -1, user or -1)
    roots = [str(Path(__file__).parents[3]), str(Path(habilis.__file__).parents[1]), sysconfig.get_paths()['purelib']]
    env = {'HOME': str(home), 'PYTHONPATH': os.pathsep.join(roots), 'PATH': os.defpath}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*container, program, *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, env=env, cwd='/', user=user, group=user
        )

    if reason := run('-c', NEEDED).stderr:
        pytest.skip(f'{who} must be able to import this checkout: {reason.splitlines()[-1]}')
    done = run('-m', 'tests.sandbox.process.refusal', program, '-c', TEST)
    tested, advice = done.stdout.splitlines() or ['', done.stderr]
    assert tested == 'ran a cell, a native package (pydantic_core); cannot run commands', advice
    assert advice.startswith('sandbox="process" has no namespaces on this machine: allow them (')
