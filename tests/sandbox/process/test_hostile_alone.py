"""Attacks on the `process` backend without namespaces: on other processes of the user, and what they share."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from habilis.core.limits import Limits
from habilis.sandbox import backends
from habilis.sandbox.process import levels
from habilis.sandbox.process.watch import TOO_MUCH
from habilis.sandbox.session import Sandbox, SyncSandbox
from tests.sandbox.process.test_hostile import EATER, EATERS, PRELUDE, assert_usable
from tests.sandbox.process.test_watch import wait_for_end_between_cells

NUMBERS = """
column = {'x86_64': 0, 'aarch64': 1}[os.uname().machine]
SHMAT, MSGRCV, MQ_UNLINK = (30, 196)[column], (70, 188)[column], (241, 181)[column]
SET_PARAM, SET_ATTRIBUTES, EXIT = (142, 118)[column], (314, 274)[column], (60, 93)[column]
"""


@pytest.fixture(scope='module', autouse=True)
def _no_namespaces() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """As on a machine that refuses user namespaces."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(levels, 'why_unusable', lambda program: 'refused')  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        backends.backend.cache_clear()
        yield
    backends.backend.cache_clear()


def create(folder: Path | bool = True, *, memory_mb: int = 256) -> SyncSandbox:
    made = Sandbox.create_sync('process', workspace=folder, limits=Limits(seconds=20, memory_mb=memory_mb))
    assert 'no namespaces' in made.sandbox.isolation
    assert made.run(PRELUDE + NUMBERS).ok
    return made


@pytest.fixture(scope='module')
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncSandbox]:
    """One sandbox for all attacks that must have no effect at all."""
    with create(tmp_path_factory.mktemp('host') / 'space') as made:
        yield made
        assert_usable(made)


VICTIM = """
import os, sys, time
from habilis.sandbox.process.confinement import drop_capabilities
if os.getuid() == 0: os.setresuid(*[int(sys.argv[1])] * 3)
drop_capabilities()
print('ready', flush=True)
time.sleep(600)
"""


@pytest.fixture
def victim(box: SyncSandbox) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the same user as the guest, with no more rights."""
    process = subprocess.Popen(
        [sys.executable, '-c', VICTIM, str(box.run('os.getuid()').value)], stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b'ready\n'
        yield process
        process.kill()


# Other processes ------------------------------------------------------------------------------------------------------


def test_other_processes_of_the_user_are_not_scheduled(box: SyncSandbox, victim: subprocess.Popen[bytes]) -> None:
    before = os.sched_getaffinity(victim.pid)
    assert box.run("parameters = ctypes.create_string_buffer(b'\\x30' + bytes(47))").ok
    for attack in (
        f'refused(os.sched_setaffinity, {victim.pid}, [0])',
        f'call(SET_PARAM, {victim.pid}, ctypes.addressof(parameters)) == errno.EPERM',
        f'call(SET_ATTRIBUTES, {victim.pid}, ctypes.addressof(parameters), 0) == errno.EPERM',
        f'refused(os.setpriority, os.PRIO_PROCESS, {victim.pid}, 19)',
        f'refused(os.sched_setscheduler, {victim.pid}, os.SCHED_IDLE, os.sched_param(0))',
        f'refused(resource.prlimit, {victim.pid}, resource.RLIMIT_NOFILE, (1, 1))',
    ):
        assert box.run(attack).value is True, attack
    assert os.sched_getaffinity(victim.pid) == before
    assert os.getpriority(os.PRIO_PROCESS, victim.pid) == os.getpriority(os.PRIO_PROCESS, 0)
    assert box.run('os.sched_setaffinity(0, os.sched_getaffinity(0))').ok
    assert box.run('os.sched_setaffinity(os.getpid(), os.sched_getaffinity(0))').ok


def test_no_descriptor_sends_signals_to_others(box: SyncSandbox, victim: subprocess.Popen[bytes]) -> None:
    box.run('import fcntl\na, b = socket.socketpair()')
    for attack in (
        f'refused(fcntl.fcntl, a, fcntl.F_SETOWN, {victim.pid})',
        f'refused(fcntl.ioctl, a, 0x8901, ({victim.pid}).to_bytes(4, sys.byteorder))',
        f'refused(fcntl.ioctl, a, 0x8902, ({victim.pid}).to_bytes(4, sys.byteorder))',
        f'refused(os.pidfd_open, {victim.pid})',
        f'refused(os.kill, {victim.pid}, 9)',
    ):
        assert box.run(attack).value is True, attack
    assert victim.poll() is None


DEATH = {
    'the signal is switched off': 'libc.prctl(1, 0, 0, 0, 0)',
    'the first thread ends': '',
}


@pytest.mark.parametrize('attack', DEATH)
def test_a_guest_does_not_outlive_a_host_that_was_killed(attack: str, tmp_path: Path) -> None:
    beat = "while True:\n    open('beat', 'a').write('.')\n    time.sleep(0.02)"
    cell = f'{PRELUDE}{NUMBERS}{DEATH[attack]}\ndef beat():\n    {beat.replace(chr(10), chr(10) + "    ")}\n'
    cell += 'threading.Thread(target=beat).start()\n'
    last = 'libc.syscall(EXIT, 0)' if attack == 'the first thread ends' else 'while True: pass'
    code = (
        'import sys\nfrom habilis import Sandbox\nfrom habilis.sandbox.process import levels\n'
        "levels.why_unusable = lambda program: 'refused'\n"
        f'with Sandbox.create_sync("process", workspace={str(tmp_path)!r}) as s:\n'
        f'    assert s.run({cell!r}).ok\n    print("ready", flush=True)\n    s.run({last!r})\n'
    )
    host = subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE)
    assert host.stdout is not None
    assert host.stdout.readline() == b'ready\n'
    wait_until((tmp_path / 'beat').exists)
    host.send_signal(signal.SIGKILL)
    host.wait()
    host.stdout.close()
    sizes = [-1, (tmp_path / 'beat').stat().st_size]

    def is_silent() -> bool:
        time.sleep(0.5)
        sizes.append((tmp_path / 'beat').stat().st_size)
        return sizes[-1] == sizes[-2]

    wait_until(is_silent)


def wait_until(condition: object) -> None:
    assert callable(condition)
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


# What processes share -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('kind', ['SOCK_DGRAM', 'SOCK_RAW', 'SOCK_SEQPACKET', 'SOCK_STREAM'])
def test_no_socket_of_the_host_is_reached_through_a_pair(box: SyncSandbox, kind: str) -> None:
    folder = box.sandbox.workspace.folder  # which the guest may enter, whoever it is
    for address in (str(folder / kind), f'\0habilis-{os.getpid()}-{kind}'):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as host:
            host.bind(address)
            if not address.startswith('\0'):
                os.chmod(address, 0o777)
            host.setblocking(False)
            attack = f"""
def send(act):
    try: act()
    except OSError as error: return error.errno
a = None
try: a, b = socket.socketpair(socket.AF_UNIX, socket.{kind})
except PermissionError: pass
address = {address!r}
rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, (0).to_bytes(4, sys.byteorder))]
a and (send(lambda: a.sendto(b'x', address)), send(lambda: a.sendmsg([b'x'], rights, 0, address)),
       send(lambda: a.connect(address)), a.send(b'x'), b.close(), send(lambda: a.connect(address)))
"""
            cell = box.run(attack)
            assert cell.ok, cell.error
            with pytest.raises(BlockingIOError):
                host.recv(10)
    assert box.run('a is None').value is (kind != 'SOCK_STREAM')
    assert box.run("refused(socket.socketpair()[0].bind, '\\0taken') and refused(socket.socket, 1)").value is True


def test_pairs_for_the_own_threads_work(box: SyncSandbox) -> None:
    code = "a, b = socket.socketpair()\na.setblocking(False)\na.send(b'hello')\nb.recv(9)"
    assert box.run(code).value == b'hello'
    code = 'from multiprocessing import Pipe\na, b = Pipe()\na.send([1])\nb.recv()'
    assert box.run(code).value == [1]
    assert box.run('import asyncio\nawait asyncio.to_thread(lambda: 3)').value == 3


def test_shared_memory_and_queues_of_the_host_are_not_reached(box: SyncSandbox) -> None:
    libc = ctypes.CDLL(None)
    segment, queue = libc.shmget(0, 4096, 0o1666), libc.msgget(0, 0o1666)
    name = f'/habilis-{os.getpid()}'.encode()
    opened = ctypes.CDLL('librt.so.1').mq_open(name, os.O_CREAT | os.O_RDWR, 0o666, None)
    try:
        assert segment >= 0
        assert queue >= 0
        assert box.run(f'call(SHMAT, {segment}, 0, 0) == errno.EPERM').value is True
        message = 'b = ctypes.create_string_buffer(64)\n'
        assert (
            box.run(f'{message}call(MSGRCV, {queue}, ctypes.addressof(b), 8, 0, 0o4000) == errno.EPERM').value is True
        )
        text = f'n = ctypes.create_string_buffer({name[1:]!r})\ncall(MQ_UNLINK, ctypes.addressof(n)) == errno.EPERM'
        assert box.run(text).value is True
    finally:
        libc.shmctl(segment, 0, None)
        libc.msgctl(queue, 0, None)
        ctypes.CDLL('librt.so.1').mq_unlink(name)
        if opened >= 0:
            os.close(opened)


# Files ----------------------------------------------------------------------------------------------------------------


def test_what_landlock_does_not_cover_is_refused(box: SyncSandbox) -> None:
    outside = box.sandbox.workspace.folder.parent / 'outside'
    outside.mkdir(exist_ok=True)
    (outside / 'file').write_text('text')
    os.setxattr(outside / 'file', 'user.origin', b'secret')
    inode = os.stat(outside / 'file').st_mode
    for attack in (
        f"refused(os.getxattr, '{outside}/file', 'user.origin')",
        f"refused(os.listxattr, '{outside}/file')",
        f"libc.inotify_add_watch(libc.inotify_init1(0), b'{outside}', 0xfff) < 0",
        f"refused(os.link, '{outside}/file', 'link')",
        f"refused(os.rename, '{outside}/file', 'moved')",
        f"refused(os.truncate, '{outside}/file', 0)",
        f"refused(os.mkfifo, '{outside}/fifo')",
        f"refused(os.setxattr, '{outside}/file', 'user.origin', b'')",
        f"os.chmod('{outside}/file', 0) is None and os.utime('{outside}/file', (0, 0)) is None",
        "refused(open, '/dev/zero', 'rb')",
        "refused(os.open, '.', os.O_TMPFILE | os.O_RDWR, 0o6755)",
        "refused(os.open, 's', os.O_CREAT | os.O_RDWR, 0o4755) and refused(os.mknod, 's', stat.S_IFREG | 0o4755)",
    ):
        cell = box.run(attack)
        assert cell.value is True, (attack, cell.error)
    assert os.getxattr(outside / 'file', 'user.origin') == b'secret'
    assert (outside / 'file').read_text() == 'text'
    assert os.stat(outside / 'file').st_mode == inode
    assert os.stat(outside / 'file').st_mtime > 0
    code = (
        "import shutil\nopen('a', 'w').write('text')\nshutil.copy2('a', 'b')\nshutil.move('b', 'c')\nopen('c').read()"
    )
    assert box.run(code).value == 'text'


# Memory ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('attack', EATERS)
@pytest.mark.parametrize('later', [False, True])
def test_memory_that_no_limit_of_the_kernel_counts_ends_the_cell(attack: str, later: bool) -> None:
    with create(memory_mb=128) as sandbox:
        assert sandbox.run("keep = 'kept'").ok
        if later:
            assert sandbox.run(f'{EATER}\nthreading.Thread(target=lambda: {EATERS[attack]}, daemon=True).start()').ok
            wait_for_end_between_cells(sandbox)
        cell = sandbox.run('1' if later else EATER + EATERS[attack])
        assert cell.error is not None
        assert cell.error.kind == 'memory', cell.error
        between = 'between two cells: ' if later else ''
        assert cell.error.message == f'{between}{TOO_MUCH}: the memory limit of 128 MB was reached'
        assert sandbox.run('keep').value == 'kept'


def test_shared_memory_is_refused(box: SyncSandbox) -> None:
    assert box.run('import mmap\nrefused(mmap.mmap, -1, 4096)').value is True
    assert box.run("f = open('m', 'w+b')\nf.truncate(4096)\nlen(mmap.mmap(f.fileno(), 4096))").value == 4096


def test_a_bomb_of_threads_ends() -> None:
    with create() as sandbox:
        bomb = 'for _ in range(2000): threading.Thread(target=time.sleep, args=(15,)).start()'
        cell = sandbox.run(f'threading.stack_size(1 << 16)\n{bomb}\ntime.sleep(15)')
        assert cell.error is not None
        assert cell.error.kind in ('broken', 'exception'), cell.error
        assert_usable(sandbox)
