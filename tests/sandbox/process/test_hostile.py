"""Attacks on the `process` backend from inside: what must not be there, must be refused, or must end the cell only."""

import contextlib
import os
import platform
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from habilis.core.errors import WorkspaceError
from habilis.core.limits import Limits
from habilis.sandbox.process import seccomp
from habilis.sandbox.process.watch import TOO_MUCH
from habilis.sandbox.session import Sandbox, SyncSandbox

COLUMN = seccomp.MACHINES[platform.machine()][1]
PRELUDE = """
import ctypes, errno, fcntl, mmap, os, pathlib, resource, signal, socket, stat, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    '''The error of a system call.'''
    ctypes.set_errno(0)
    return ctypes.get_errno() if libc.syscall(*map(ctypes.c_long, arguments)) < 0 else 0
def refused(act, *arguments):
    try:
        act(*arguments)
    except (OSError, ValueError):
        return True
    return False
def seen(folder):
    return {name for _, _, files in os.walk(folder) for name in files}
"""


EATER = """
SIZE = 16 << 20
libc.mmap.restype = ctypes.c_void_p
def take(flags, then=lambda at: None):
    for _ in range(20):
        at = libc.mmap(None, ctypes.c_size_t(SIZE), 3, flags, -1, ctypes.c_long(0))
        if at in (None, 2**64 - 1): raise OSError(ctypes.get_errno(), 'refused')
        ctypes.memset(at, 1, SIZE)
        then(at)
    time.sleep(15)
"""
EATERS = {
    'memory that grows downwards': 'take(0x122)',
    'memory that is read-only later': 'take(0x22, lambda at: libc.mprotect(ctypes.c_void_p(at), SIZE, 1))',
}


@pytest.fixture(scope='module')
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncSandbox]:
    """One sandbox for all attacks that must have no effect at all; its neighbour folder has a secret."""
    folder = tmp_path_factory.mktemp('host')
    (folder / 'secret').write_text('hunter2')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('SECRET_KEY', 'hunter2')
        with Sandbox.create_sync('process', workspace=folder / 'space', limits=Limits(seconds=20)) as made:
            assert made.run(PRELUDE).ok
            yield made
            assert made.run('6 * 7').value == 42


def create(**settings: object) -> SyncSandbox:
    """A sandbox for an attack that ends it."""
    made = Sandbox.create_sync('process', limits=settings.pop('limits', Limits(seconds=5)), **settings)  # type: ignore[arg-type]
    assert made.run(PRELUDE).ok
    return made


def assert_usable(sandbox: SyncSandbox) -> None:
    assert sandbox.run('6 * 7').value == 42


# System calls ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('name', [name for name, numbers in seccomp.DENIED.items() if numbers[COLUMN] is not None])
def test_a_system_call_that_is_not_for_guests_is_refused(box: SyncSandbox, name: str) -> None:
    number = seccomp.DENIED[name][COLUMN]
    assert box.run(f'call({number}, 0, 0, 0, 0, 0) == errno.EPERM').value is True


CLONE, IOCTL, SET_OPTION = ((56, 220)[COLUMN], (16, 29)[COLUMN], (54, 208)[COLUMN])


@pytest.mark.parametrize(
    ('attack', 'error'),
    [
        (f'call({CLONE}, 0x10000000 | 17, 0, 0, 0, 0)', 'EPERM'),  # a user namespace
        (f'call({CLONE}, 0x20000000 | 17, 0, 0, 0, 0)', 'EPERM'),  # process ids
        (f'call({CLONE}, 0x00020000 | 17, 0, 0, 0, 0)', 'EPERM'),  # mounts
        ('call(435, 0, 0)', 'ENOSYS'),  # clone3
        ('call(437, 0, 0, 0, 0)', 'ENOSYS'),  # openat2
        ('call(5000)', 'ENOSYS'),
        (f'call({IOCTL}, 0, 0x5412, 0)', 'EPERM'),  # type into a terminal
        (f'call({IOCTL}, socket.socket().detach(), 0x89F0, 0)', 'EPERM'),  # ask a network driver
        (f'call({IOCTL}, socket.socket().detach(), 0x8B00, 0)', 'EPERM'),  # change a wireless network
        (f'call({SET_OPTION}, socket.socket().detach(), 0, 64, 0, 0)', 'EPERM'),  # packet filters of IPv4
        (f'call({SET_OPTION}, socket.socket().detach(), 41, 64, 0, 0)', 'EPERM'),  # and of IPv6
        (f'call({IOCTL}, 0, 0x100005412, 0)', 'EPERM'),  # the kernel ignores the upper half
    ],
)
def test_a_system_call_with_these_arguments_is_refused(box: SyncSandbox, attack: str, error: str) -> None:
    assert box.run(f'{attack} == errno.{error}').value is True


# One sandbox, many attacks: each is an expression that must be true ---------------------------------------------------

HARMLESS = {
    'the ssh keys': "not os.path.exists(os.path.expanduser('~/.ssh')) and not os.path.exists('/root/.ssh')",
    'accounts': "not any(os.path.exists(f'/etc/{name}') for name in ('passwd', 'shadow', 'group', 'hosts', 'sudoers'))",
    'homes': "not os.path.exists('/home') and not os.path.exists('/var') and not os.path.exists('/run')",
    'the environment of the first process': "refused(open, '/proc/1/environ')",
    'the own environment': "'hunter2' not in str(os.environ) and refused(open, '/proc/self/environ')",
    'the command line of the host': "b'pytest' not in pathlib.Path('/proc/1/cmdline').read_bytes()",
    'system information': "not os.path.exists('/boot') and seen('/sys') <= {'enabled', 'hpage_pmd_size'}",
    'change the system': "refused(open, '/sys/kernel/mm/transparent_hugepage/enabled', 'w')",
    'write to the system': "all(refused(open, f'{folder}/x', 'w') for folder in ('', '/usr', '/usr/bin', '/etc'))",
    'write to Python': "refused(open, os.__file__, 'a') and refused(open, sys.executable, 'ab')",
    'write to the guest': "refused(open, '/guest/habilis/core/codec.py', 'a') and refused(os.mkdir, '/guest/x')",
    'write to /dev': "refused(open, '/dev/x', 'w') and refused(os.remove, '/dev/null')",
    'system requests': "refused(open, '/proc/sysrq-trigger', 'w')",
    'a writable /proc': "refused(open, '/proc/self/comm', 'w') and refused(open, '/proc/self/oom_score_adj', 'w')",
    'settings of the kernel': "refused(open, '/proc/sys/kernel/core_pattern', 'w')",
    'memory through /proc': "refused(open, '/proc/self/mem', 'r+b') and refused(open, '/proc/1/mem', 'rb')",
    'memory of the kernel': "refused(open, '/proc/kcore', 'rb') and refused(open, '/dev/mem', 'rb')",
    'disks': "not [name for name in os.listdir('/dev') if name.startswith(('sd', 'vd', 'nvme', 'loop', 'dm-'))]",
    'the root of the first process': "refused(os.listdir, '/proc/1/root') or 'home' not in os.listdir('/proc/1/root')",
    'map users': "refused(open, '/proc/self/uid_map', 'w') and refused(open, '/proc/self/setgroups', 'w')",
    'out-of-memory score': "refused(open, '/proc/1/oom_score_adj', 'w')",
    'become root': 'refused(os.setuid, 0) and refused(os.setresuid, 0, 0, 0) and refused(os.setgid, 0)',
    'is not root': 'os.getuid() != 0 and os.geteuid() != 0 and os.getgid() != 0 and 0 not in os.getgroups()',
    'has no capability': "'CapEff:\\t0000000000000000' in open('/proc/self/status').read()",
    'cannot gain privileges': "'NoNewPrivs:\\t1' in open('/proc/self/status').read()",
    'is filtered': "'Seccomp:\\t2' in open('/proc/self/status').read()",
    'children are filtered': "b'Seccomp:\\t2' in subprocess.check_output(['cat', '/proc/self/status'])",
    'setuid programs': "subprocess.run(['su', '-c', 'id'], capture_output=True).returncode != 0",
    'make a file setuid': "open('s', 'w').close() or refused(os.chmod, 's', 0o4755) and refused(os.chmod, 's', 0o2755)",
    'create a file setuid': "refused(os.open, 's2', os.O_CREAT | os.O_WRONLY, 0o4755)",
    'create a pipe setuid': "refused(os.mknod, 's3', stat.S_IFREG | 0o4755)",
    'create a file setuid and name it later': "refused(os.open, '.', os.O_TMPFILE | os.O_RDWR, 0o6755)",
    'a file without a name, which is harmless': "os.close(os.open('.', os.O_TMPFILE | os.O_RDWR, 0o755)) is None",
    'a folder that gives files its group': "os.mkdir('g', 0o7777) or not os.stat('g').st_mode & 0o6000",
    'semaphores and queues, which take memory': 'libc.semget(0, 32000, 0o600) < 0 and libc.msgget(0, 0o600) < 0',
    'shared memory that can be hidden': 'refused(mmap.mmap, -1, 4096)',
    'the same by way of a device': "refused(mmap.mmap, os.open('/dev/zero', os.O_RDWR), 4096)",
    'zeros, which are harmless': "open('/dev/zero', 'rb').read(3) == bytes(3)",
    'lease a file, which makes others wait': (
        "refused(fcntl.fcntl, os.open('lease', os.O_CREAT | os.O_RDWR), fcntl.F_SETLEASE, fcntl.F_WRLCK)"
    ),
    'a character device': "refused(os.mknod, 'd', stat.S_IFCHR | 0o666, os.makedev(1, 1))",
    'a block device': "refused(os.mknod, 'd', stat.S_IFBLK | 0o666, os.makedev(254, 0))",
    'give files away': "open('o', 'w').close() or refused(os.chown, 'o', 0, 0)",
    'kill the first process': 'refused(os.kill, 1, 9) or os.path.exists("/proc/1")',
    'processes of the host': "len([name for name in os.listdir('/proc') if name.isdigit()]) < 10",
    'raise limits': 'refused(resource.setrlimit, resource.RLIMIT_DATA, (-1, -1))',
    'schedule in real time': 'refused(os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1))',
    'higher priority': 'refused(os.setpriority, os.PRIO_PROCESS, 0, -20)',
    'a terminal': "refused(open, '/dev/tty') and not os.path.exists('/dev/console')",
    'raw sockets': 'refused(socket.socket, socket.AF_INET, socket.SOCK_RAW, 1)',
    'packet sockets': 'refused(socket.socket, socket.AF_PACKET, socket.SOCK_RAW)',
    'netlink': 'refused(socket.socket, socket.AF_NETLINK, socket.SOCK_RAW)',
    'the hypervisor': 'refused(socket.socket, 40, socket.SOCK_STREAM)',
    'cryptography of the kernel': 'refused(socket.socket, 38, socket.SOCK_SEQPACKET)',
    'names': "refused(socket.getaddrinfo, 'example.org', 80)",
    'datagrams': "refused(socket.socket(type=socket.SOCK_DGRAM).sendto, b'x', ('8.8.8.8', 53))",
    'version 6': "refused(socket.create_connection, ('2001:4860:4860::8888', 53), 2)",
    'the numbers of interfaces, which are harmless': "socket.if_nametoindex('lo') == 1",
    'interfaces': "{line.split(':')[0].strip() for line in open('/proc/net/dev') if ':' in line} <= {'lo'}",
    'the name of the host': "socket.gethostname() == 'sandbox'",
    'packages of the host': "all(refused_import(name) for name in ('pip', 'pydantic', 'habilis.agent', 'pytest'))",
    'a large sparse file': "refused(open('sparse', 'wb').truncate, 1 << 40)",
    'leave the workspace': "refused(open, '/workspace/../secret') and refused(open, '../secret')",
    'hard links out': "refused(os.link, '/usr/bin/id', 'id')",
    'lock system files': "refused(os.rename, '/usr/bin/id', '/usr/bin/di')",
    'the cgroups of the host': "not os.path.exists('/sys/fs/cgroup')",
}


@pytest.mark.parametrize('attack', HARMLESS)
def test_an_attack_gets_nothing(box: SyncSandbox, attack: str) -> None:
    box.run(
        'def refused_import(name):\n    try: __import__(name)\n    except ImportError: return True\n    return False'
    )
    cell = box.run(HARMLESS[attack])
    assert cell.error is None, cell.error
    assert cell.value is True


def test_the_users_of_the_guests_processes_are_not_root_for_the_host_either(box: SyncSandbox, tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip('this host is not root')
    with create(workspace=tmp_path) as other:
        users = [sandbox.run('os.getuid()').value for sandbox in (box, other)]
        assert 0 not in users
        assert users[0] != users[1]
        other.run("open('made', 'w').close()")
    assert (tmp_path / 'made').stat().st_uid == 0  # on disk it is the owner's of the folder


# Things of the host that a guest could reach --------------------------------------------------------------------------


def test_services_of_the_host_are_out_of_reach(box: SyncSandbox, tmp_path: Path) -> None:
    abstract = f'habilis-test-{os.getpid()}'
    with socket.create_server(('127.0.0.1', 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(f'\0{abstract}')
        unix.listen()
        port = tcp.getsockname()[1]
        addresses = ('127.0.0.1', 'localhost', '::1', '0.0.0.0', socket.gethostname())
        for address in addresses:
            assert box.run(f'refused(socket.create_connection, ({address!r}, {port}), 2)').value is True
        assert box.run(f"refused(socket.socket(socket.AF_UNIX).connect, '\\0{abstract}')").value is True
        tcp.settimeout(0)
        with pytest.raises(BlockingIOError):
            tcp.accept()


def test_two_guests_cannot_reach_each_other(box: SyncSandbox) -> None:
    with create() as other:
        other.run("s = socket.socket(socket.AF_UNIX); s.bind('\\0meet'); s.listen()\nopen('/tmp/left', 'w').close()")
        other.run("t = socket.create_server(('127.0.0.1', 8123))")
        assert box.run("refused(socket.socket(socket.AF_UNIX).connect, '\\0meet')").value is True
        assert box.run("refused(socket.create_connection, ('127.0.0.1', 8123), 2)").value is True
        assert box.run("os.path.exists('/tmp/left')").value is False
        assert other.run('6 * 7').value == 42


def test_the_host_process_cannot_be_signalled_or_traced(box: SyncSandbox) -> None:
    assert box.run(f'refused(os.kill, {os.getpid()}, 0) or os.path.exists("/proc/1")').value is True
    assert box.run(f"not os.path.exists('/proc/{os.getpid()}/environ') or {os.getpid()} < 10").value is True


def test_a_race_with_links_never_leads_the_host_out_of_the_workspace(box: SyncSandbox) -> None:
    secret = box.sandbox.workspace.folder.parent
    box.run(f'os.makedirs("real", exist_ok=True); open("real/secret", "w").write("harmless"); target = {str(secret)!r}')
    race = """
end = time.monotonic() + 1
while time.monotonic() < end:
    for kind in (lambda: os.rename('real', 'swap'), lambda: os.symlink(target, 'swap')):
        kind()
        if os.path.islink('swap'): os.remove('swap')
        else: os.rename('swap', 'real')
"""
    racer = threading.Thread(target=box.run, args=(race,))
    racer.start()
    seen: set[bytes] = set()
    while racer.is_alive():
        with contextlib.suppress(WorkspaceError):
            seen.add(box.sandbox.workspace.read('swap/secret'))
        with contextlib.suppress(WorkspaceError):
            box.sandbox.workspace.write('swap/written', 'x')
    racer.join()
    assert seen <= {b'harmless'}
    assert not (secret / 'written').exists()


# Resources ------------------------------------------------------------------------------------------------------------


def test_a_fork_bomb_ends_and_the_sandbox_continues() -> None:
    with create(limits=Limits(seconds=3)) as sandbox:
        sandbox.run('while True:\n    try: os.fork()\n    except OSError: pass')
        assert_usable(sandbox)


def test_a_bomb_of_shells_ends() -> None:
    with create(limits=Limits(seconds=3)) as sandbox:
        sandbox.run("os.system('b() { b | b & }; b; sleep 9')")
        assert_usable(sandbox)


def test_children_share_the_memory_limit() -> None:
    with create(limits=Limits(seconds=20, memory_mb=128)) as sandbox:
        eat = 'import time; x = bytearray(60 << 20); time.sleep(15)'
        cell = sandbox.run(f"p = [subprocess.Popen([sys.executable, '-c', {eat!r}]) for _ in range(8)]\np[0].wait()")
        assert cell.error is not None
        assert cell.error.kind == 'memory'
        assert_usable(sandbox)


@pytest.mark.parametrize('attack', EATERS)
def test_memory_that_no_limit_of_a_process_counts_ends_the_cell(attack: str) -> None:
    with create(limits=Limits(seconds=20, memory_mb=128)) as sandbox:
        cell = sandbox.run(EATER + EATERS[attack])
        assert cell.error is not None
        assert (cell.error.kind, cell.error.message) == (
            'memory',
            f'{TOO_MUCH}: the memory limit of 128 MB was reached',
        )
        assert_usable(sandbox)


def test_sockets_of_all_processes_are_counted_because_their_buffers_are_not() -> None:
    with create(limits=Limits(seconds=20)) as sandbox:
        attack = 'for _ in range(3): os.fork()\npairs = [socket.socketpair() for _ in range(200)]\ntime.sleep(15)'
        cell = sandbox.run(attack)
        assert cell.error is not None
        assert (cell.error.kind, cell.error.message) == ('broken', 'the code has opened more than 1024 sockets')
        assert_usable(sandbox)
        assert sandbox.run(f'{PRELUDE}pairs = [socket.socketpair() for _ in range(400)]\ntime.sleep(1)').ok


@pytest.mark.parametrize('folder', ['/tmp', '/dev/shm'])
def test_the_private_folders_have_a_size(folder: str) -> None:
    with create(limits=Limits(seconds=20, memory_mb=64)) as sandbox:
        cell = sandbox.run(f"with open('{folder}/big', 'wb') as f:\n    for _ in range(100): f.write(bytes(1 << 20))")
        assert cell.error is not None
        assert 'No space' in cell.error.message or cell.error.kind == 'memory'


@pytest.mark.parametrize(
    ('attack', 'message'),
    [
        ('for _ in range(10 ** 6): threading.Thread(target=time.sleep, args=(99,), daemon=True).start()', 'thread'),
        ("opened = [open('/dev/null') for _ in range(10 ** 5)]", 'Too many open files'),
        ("with open('big', 'wb') as f:\n    f.seek((1 << 30) - 10)\n    f.write(bytes(100))", 'File too large'),
    ],
)
def test_other_bombs_meet_a_limit(attack: str, message: str) -> None:
    with create(workspace=True, limits=Limits(seconds=60)) as sandbox:
        cell = sandbox.run(attack)
        assert cell.error is not None
        assert message in cell.error.message


def test_output_of_children_counts_and_arrives() -> None:
    with create(limits=Limits(seconds=10, output_bytes=1000)) as sandbox:
        cell = sandbox.run("os.system('echo out; echo err >&2')")
        assert (cell.stdout, cell.stderr) == ('out\n', 'err\n')
        cell = sandbox.run("os.system('yes')")
        assert cell.error is not None
        assert (cell.error.kind, len(cell.stdout)) == ('output', 1000)
        assert_usable(sandbox)


def test_the_time_limit_ends_children_too_and_keeps_what_they_printed(tmp_path: Path) -> None:
    with create(workspace=tmp_path, limits=Limits(seconds=2)) as sandbox:
        cell = sandbox.run("os.system('echo started; while true; do echo . >> beat; sleep 0.05; done')")
        assert cell.error is not None
        assert (cell.error.kind, cell.stdout) == ('time', 'started\n')
        assert_silent(tmp_path / 'beat')
        assert_usable(sandbox)


def test_a_daemon_does_not_outlive_the_sandbox(tmp_path: Path) -> None:
    with create(workspace=tmp_path) as sandbox:
        assert sandbox.run("""
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            open('beat', 'a').write('.')
            time.sleep(0.05)
    os._exit(0)
while not os.path.exists('beat'): time.sleep(0.01)
""").ok
        assert_usable(sandbox)
    assert_silent(tmp_path / 'beat')


def assert_silent(beat: Path) -> None:
    """Nobody writes to the file any more."""
    size = beat.stat().st_size
    time.sleep(0.4)
    assert beat.stat().st_size == size


# A guest that harms itself --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'attack',
    [
        'os.kill(os.getpid(), signal.SIGKILL)',
        'os.abort()',
        'ctypes.string_at(0)',
        'os.closerange(0, 1024)',
        'os.kill(0, signal.SIGKILL)',
        'os.kill(-1, signal.SIGKILL)\nos.kill(os.getpid(), signal.SIGKILL)',
        "for fd in range(3, 20):\n    try: os.write(fd, b'nonsense\\n')\n    except OSError: pass\ntime.sleep(9)",
        "for fd in range(3, 20):\n    try: os.write(fd, b'a' + b'x' * 10 ** 6)\n    except OSError: pass\nos._exit(0)",
        "os.execv('/usr/bin/yes', ['yes'])",
    ],
)
def test_a_guest_that_breaks_itself_is_replaced_and_leaves_no_core(attack: str, tmp_path: Path) -> None:
    with create(workspace=tmp_path) as sandbox:
        assert sandbox.run("keep = 'kept'").ok
        cell = sandbox.run(attack)
        assert cell.error is not None
        assert sandbox.run('keep').value == 'kept'
    assert list(tmp_path.iterdir()) == []


def test_a_guest_that_stops_itself_is_ended_by_the_time_limit() -> None:
    with create(limits=Limits(seconds=3)) as sandbox:
        cell = sandbox.run('os.kill(os.getpid(), signal.SIGSTOP)')
        assert cell.error is not None
        assert cell.error.kind == 'time'
        assert_usable(sandbox)


def test_a_forked_child_cannot_answer_for_its_parent(box: SyncSandbox) -> None:
    cell = box.run("pid = os.fork()\nprint('child' if pid == 0 else 'parent')\nif pid: os.waitpid(pid, 0)\n'done'")
    assert cell.value == 'done'
    assert sorted(cell.stdout.split()) == ['child', 'parent']
    assert box.run('1 + 1').value == 2


def test_escape_sequences_and_bytes_that_are_no_text_arrive_as_text(box: SyncSandbox) -> None:
    cell = box.run("n = os.write(1, b'\\x1b[2J\\x1b]0;title\\x07\\xff\\x00')")
    assert cell.stdout == '\x1b[2J\x1b]0;title\x07\ufffd\x00'


def test_deep_folders_and_many_files_are_removed_with_the_sandbox() -> None:
    with create(workspace=True, limits=Limits(seconds=30)) as sandbox:
        folder = sandbox.sandbox.workspace.folder
        assert sandbox.run("for _ in range(1500):\n    os.mkdir('d' * 9)\n    os.chdir('d' * 9)").ok
        assert sandbox.run("for n in range(20_000): os.close(os.open(f'/workspace/{n}', os.O_CREAT))").ok
        assert sandbox.run("os.mkdir('/workspace/closed', 0); os.symlink('/etc', '/workspace/link')").ok
    assert not folder.exists()
