"""The `process` backend: its layers and what they say, and what is left when the host is killed."""

import http.server
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from habilis.core.errors import SandboxError
from habilis.core.limits import Limits
from habilis.sandbox import backends
from habilis.sandbox.contract import Mount
from habilis.sandbox.process import bubblewrap, levels
from habilis.sandbox.process.broker_client import broker
from habilis.sandbox.session import Sandbox


@pytest.fixture(autouse=True)
def _fresh_backend() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """A backend finds out once what the machine offers."""
    backends.backend.cache_clear()
    yield
    backends.backend.cache_clear()


# Levels of isolation --------------------------------------------------------------------------------------------------


async def test_the_isolation_names_the_layers() -> None:
    async with await Sandbox.create('process') as sandbox:
        for layer in ('bubblewrap', 'seccomp', 'own mounts, process ids and network', 'Landlock'):
            assert layer in sandbox.isolation


async def test_without_namespaces_landlock_and_seccomp_isolate_and_the_isolation_says_so(
    no_namespaces: None, tmp_path: Path
) -> None:
    (tmp_path / 'secret').write_text('hunter2')
    async with await Sandbox.create('process', workspace=tmp_path / 'space') as sandbox:
        assert 'no namespaces (No permissions' in sandbox.isolation
        assert 'no other processes' in sandbox.isolation
        assert (await sandbox.run("open('made', 'w').write('text')\nopen('made').read()")).value == 'text'
        assert (await sandbox.run('import shutil\nshutil.copy2("made", "copy")')).ok
        for attack in (
            "open('/etc/passwd')",
            f'open({str(tmp_path / "secret")!r})',
            "open('../secret')",
            "open('../new', 'w')",
            "__import__('os').truncate('../secret', 0)",
            "__import__('os').chmod('../secret', 0) or open('../secret')",
            "__import__('os').listdir('/proc')",
            "__import__('os').kill(__import__('os').getppid(), 0)",
            "__import__('os').fork()",
            "__import__('subprocess').run(['id'])",
            "__import__('socket').socket(1)",
            "__import__('socket').create_connection(('127.0.0.1', 80), 2)",
            "open('/proc/self/environ')",
            "open('/dev/mem')",
        ):
            cell = await sandbox.run(attack)
            assert cell.error is not None, attack
            assert cell.error.type in ('PermissionError', 'FileNotFoundError'), attack
    assert (tmp_path / 'secret').read_text() == 'hunter2'
    assert (tmp_path / 'secret').stat().st_mode & 0o777


async def test_without_namespaces_asyncio_has_threads_and_no_connections(no_namespaces: None) -> None:
    async with await Sandbox.create('process', workspace=True, network=['localhost']) as sandbox:
        assert (await sandbox.run('import asyncio\nawait asyncio.to_thread(lambda: 3)')).value == 3
        refused = (await sandbox.run("await asyncio.open_connection('localhost', 1)")).error
        assert refused is not None
        assert 'asyncio cannot connect from this sandbox; use a client without' in refused.message


async def test_without_any_isolation_nothing_starts_unless_that_is_allowed(
    no_namespaces: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levels, 'landlock_version', lambda: 0)
    with pytest.raises(SandboxError, match=r'no isolation for the process sandbox: .*allow them'):
        await Sandbox.create('process')
    async with await Sandbox.create('process', allow_weak=True) as sandbox:
        assert sandbox.isolation.startswith('none but limits')
        assert (await sandbox.run('6 * 7')).value == 42


@pytest.mark.parametrize(
    ('version', 'works', 'is_taken'), [('99.0', True, True), ('0.4.1', True, False), ('99.0', False, False)]
)
def test_a_bubblewrap_on_the_path_is_taken_if_it_is_newer_than_the_packaged_one_and_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, works: bool, is_taken: bool
) -> None:
    monkeypatch.setenv('PATH', os.defpath)
    packaged = bubblewrap.find_bubblewrap()
    assert packaged is not None
    program = tmp_path / 'bwrap'
    command = f'exec {packaged} "$@"' if works else 'exit 1'
    program.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then echo bubblewrap {version}; exit; fi\n{command}\n')
    program.chmod(0o755)
    monkeypatch.setenv('PATH', f'{tmp_path}:{os.defpath}')
    assert bubblewrap.find_bubblewrap() == (str(program) if is_taken else packaged)


async def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, 'find_bubblewrap', lambda: None)
    monkeypatch.setattr(levels, 'landlock_version', lambda: 2)
    with pytest.raises(SandboxError, match=r'bubblewrap is not installed; Landlock has the version 2 here'):
        await Sandbox.create('process')


async def test_on_other_systems_the_error_suggests_wasm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, 'platform', 'darwin')
    with pytest.raises(SandboxError, match='needs Linux'):
        await Sandbox.create('process')


async def test_what_keeps_bubblewrap_from_starting_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match=r'the sandbox could not start: bwrap: .*/usr/lib/new'):
        await Sandbox.create('process', mounts=[Mount(source=tmp_path, target='/usr/lib/new')])


async def test_a_limit_that_cannot_be_kept_is_refused() -> None:
    with pytest.raises(SandboxError, match=r'leave Limits\.cpu at 1'):
        await Sandbox.create('process', limits=Limits(cpu=0.5))


HOST = """
import asyncio, logging, sys
from habilis import Sandbox
logging.basicConfig(level='INFO', format='%(message)s', stream=sys.stdout)
async def main():
    for _ in range(3):
        async with await Sandbox.create('process', workspace=sys.argv[1]) as sandbox:
            await sandbox.run('generator = iter([1, 2])\\nx = 1')
            await asyncio.sleep(1)
            async with await sandbox.fork() as twin:
                cell = await twin.run("x, 'CapEff:\\\\t0000000000000000' in open('/proc/self/status').read()")
                print(cell.value, sandbox._interpreter._guest.origin.depth)
asyncio.run(main())
"""
LISTEN = """
import ctypes, struct
from habilis.sandbox.process import kernel_calls as calls
calls.check(calls.libc.prctl(38, 1, 0, 0, 0))
kept = calls.install_filter(struct.pack('=HBBI', 6, 0, 0, 0x7FFF0000), listen=True)
"""


def test_in_a_filter_with_a_listener_sandboxes_start_alone_and_forks_are_snapshots(tmp_path: Path) -> None:
    command = [sys.executable, '-c', LISTEN + HOST, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ['(1, True) 2'] * 3, done.stderr


def test_where_user_namespaces_run_out_sandboxes_start_alone_and_forks_are_snapshots(tmp_path: Path) -> None:
    limit = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    command = ['unshare', '--user', '--map-root-user', '--mount', 'sh', '-c', limit, 'sh', sys.executable, '-c', HOST]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, check=False)
    if 'unshare:' in done.stderr:
        pytest.skip('this user may not make user namespaces')
    assert done.stdout.splitlines() == ['(1, True) 2'] * 3, done.stderr


def test_root_of_a_container_with_few_users_can_start_sandboxes() -> None:
    command = ['unshare', '--user', '--map-root-user', '--mount', sys.executable, '-c']
    code = "from habilis import Sandbox\nwith Sandbox.create_sync('process') as s: print(s.run('6 * 7').value)"
    done = subprocess.run([*command, code], capture_output=True, text=True, check=False)
    if 'unshare:' in done.stderr:
        pytest.skip('this user may not make user namespaces')
    assert done.stdout == '42\n', done.stderr


# Files, threads, network ----------------------------------------------------------------------------------------------


async def test_files_of_the_guest_belong_to_the_owner_of_the_folder(tmp_path: Path) -> None:
    if os.getuid() == 0:
        os.chown(tmp_path, 1234, 1234)
    tmp_path.chmod(0o700)
    async with await Sandbox.create('process', workspace=tmp_path) as sandbox:
        assert (await sandbox.run("import os\nos.mkdir('sub', 0o700)\nopen('sub/file', 'w').write('text')")).ok
    assert (tmp_path / 'sub' / 'file').stat().st_uid == tmp_path.stat().st_uid


async def test_the_standard_library_is_there_and_nothing_else() -> None:
    async with await Sandbox.create('process') as sandbox:
        code = 'import sqlite3, pathlib, decimal, zoneinfo, multiprocessing\nsqlite3.sqlite_version > "3"'
        assert (await sandbox.run(code)).value is True
        assert (await sandbox.run('import cloudpickle_of_the_host')).error
        assert (await sandbox.run('import sys\n"/packages" in sys.path')).value is False


async def test_threads_print_and_call_tools_while_their_cell_runs_and_may_outlive_it() -> None:
    def double(n: int) -> int:
        return 2 * n

    async with await Sandbox.create('process', tools=[double]) as sandbox:
        cell = await sandbox.run(
            'import threading, time\nfrom concurrent.futures import ThreadPoolExecutor\n'
            'with ThreadPoolExecutor(4) as pool: got = list(pool.map(double, range(50)))\n'
            "def later():\n    time.sleep(0.2)\n    print('late')\n    double(1)\n"
            'threading.Thread(target=later).start()\ngot'
        )
        assert cell.value == [2 * n for n in range(50)]
        cell = await sandbox.run('time.sleep(0.5)\n6 * 7')
        assert (cell.value, cell.stdout) == (42, 'late\n')
        assert len(cell.calls) == 1


async def test_processes_of_multiprocessing_work() -> None:
    async with await Sandbox.create('process') as sandbox:
        code = 'import multiprocessing as m\nwith m.get_context("fork").Pool(2) as pool: got = pool.map(abs, [-1])\ngot'
        assert (await sandbox.run(code)).value == [1]


async def test_the_network_goes_through_the_host_to_granted_names_only() -> None:
    class Hello(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'hello')

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), Hello) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        fetch = "import urllib.request\nurllib.request.urlopen('http://{}:{}/', timeout=5).read()"
        async with await Sandbox.create('process', network=['localhost']) as sandbox:
            assert (await sandbox.run(fetch.format('localhost', server.server_port))).value == b'hello'
            refused = (await sandbox.run(fetch.format('127.0.0.1', server.server_port))).error
            assert refused is not None
            assert 'may not connect' in refused.message
            raw = f"import _socket\n_socket.socket().connect(('127.0.0.1', {server.server_port}))"
            assert (await sandbox.run(raw)).error
        server.shutdown()


async def test_variables_that_are_too_large_to_save_stay_in_the_live_sandbox() -> None:
    async with await Sandbox.create('process', limits=Limits(memory_mb=1024)) as sandbox:
        await sandbox.run('import array\nlarge = array.array("d", bytes(100 << 20))\nsmall = [1]')
        assert (await sandbox.run('len(large), small')).value == (100 << 17, [1])
        assert (await sandbox.snapshot()).lost == ('large',)


# What is left ---------------------------------------------------------------------------------------------------------


def test_a_host_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    code = (
        'import asyncio, sys\nfrom habilis import Sandbox\nasync def main():\n'
        f'    s = await Sandbox.create("process", workspace={str(tmp_path)!r})\n'
        "    await s.run(\"import subprocess\\nsubprocess.Popen(['sh', '-c', "
        "'while true; do echo . >> beat; sleep 0.05; done'], start_new_session=True)\")\n"
        '    print("ready", flush=True)\n    await s.run("while True: pass")\nasyncio.run(main())'
    )
    host = subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE)
    assert host.stdout is not None
    assert host.stdout.readline() == b'ready\n'
    host.send_signal(signal.SIGKILL)
    host.wait()
    host.stdout.close()
    time.sleep(0.5)
    size = (tmp_path / 'beat').stat().st_size
    time.sleep(0.4)
    assert (tmp_path / 'beat').stat().st_size == size


def test_a_broker_that_was_killed_takes_its_guests_along_and_is_replaced(tmp_path: Path) -> None:
    with Sandbox.create_sync('process', workspace=tmp_path) as sandbox:
        assert sandbox.run('x = 1').ok
        process = broker._process  # pyright: ignore[reportPrivateUsage]
        assert process is not None
        process.kill()
        process.wait()
        wait_until_nothing_runs(tmp_path)
        error = sandbox.run('x').error
        assert error is not None
        assert error.kind == 'broken'
        assert sandbox.run('x').value == 1


def test_a_closed_sandbox_leaves_no_process_and_no_descriptor() -> None:
    with Sandbox.create_sync('process') as sandbox:  # the first one starts the threads
        sandbox.run('1')
    before = len(os.listdir('/proc/self/fd'))
    with Sandbox.create_sync('process', workspace=True) as sandbox:
        sandbox.run('1')
        folder = sandbox.sandbox.workspace.folder
        [first] = [pid for pid in Path('/proc').glob('[0-9]*') if str(folder).encode() in mounts_of(pid)][:1]
    assert not folder.exists()
    while first.exists():  # it is ended; its parent may need a moment
        time.sleep(0.01)
    end = time.monotonic() + 10  # a guest that another test has caused may be starting ahead
    while len(os.listdir('/proc/self/fd')) > before and time.monotonic() < end:
        time.sleep(0.05)
    assert len(os.listdir('/proc/self/fd')) <= before


def wait_until_nothing_runs(folder: Path) -> None:
    """Wait for the end of all processes that have mounted a folder."""
    end = time.monotonic() + 20
    while left := [pid for pid in Path('/proc').glob('[0-9]*') if str(folder).encode() in mounts_of(pid)]:
        assert time.monotonic() < end, left
        time.sleep(0.05)


def mounts_of(process: Path) -> bytes:
    """What a process has mounted; empty for one that has ended."""
    try:
        return (process / 'mountinfo').read_bytes()
    except OSError:
        return b''
