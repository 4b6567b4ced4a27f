"""Ways out of a container, and ways to harm its host: none works, and the sandbox is right afterwards."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest
import pytest_asyncio

from habilis.core.errors import WorkspaceError
from habilis.core.limits import Limits
from habilis.sandbox.session import Sandbox
from tests.sandbox.docker.engine import BACKEND, docker
from tests.sandbox.hostile import attack, kind_of

SYSCALL = """
import ctypes, os, platform
def syscall(*arguments):
    result = ctypes.CDLL(None, use_errno=True).syscall(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
arm = platform.machine() == 'aarch64'
"""


@pytest_asyncio.fixture(scope='module', loop_scope='module')
async def shared() -> AsyncIterator[Sandbox]:
    """One container for all that leaves it usable."""
    async with await Sandbox.create(BACKEND, limits=Limits(seconds=10)) as made:
        yield made


REFUSED = {
    # The system
    'read the shadow file': "open('/etc/shadow').read()",
    'read the keys of root': "open('/root/.ssh/id_rsa').read()",
    'write a program': "open('/usr/bin/python3', 'wb')",
    'write the users': "open('/etc/passwd', 'a')",
    'write the guest': "open('/opt/habilis/habilis/sandbox/guest/kernel.py', 'a')",
    'write beside the guest': "open('/opt/habilis/evil.py', 'w')",
    'write the root': "open('/file', 'w')",
    'make a device': "import os, stat; os.mknod('/tmp/disk', stat.S_IFBLK | 0o666, os.makedev(8, 0))",
    'read memory of the machine': "open('/dev/mem', 'rb').read(1)",
    'read memory of the kernel': "open('/proc/kcore', 'rb').read(1)",
    'ask the kernel to reboot': "open('/proc/sysrq-trigger', 'w').write('b')",
    'set the program for core dumps': "open('/proc/sys/kernel/core_pattern', 'w').write('|/tmp/x')",
    'load a module': "open('/proc/sys/kernel/modprobe', 'w').write('/tmp/x')",
    'change a limit of its group': (
        "import glob\nfor path in glob.glob('/sys/fs/cgroup/**/*max*', recursive=True) or ['/none']:\n"
        "    open(path, 'w').write('max')"
    ),
    'write to /sys': "open('/sys/kernel/uevent_helper', 'w').write('/tmp/x')",
    'mount a disk': SYSCALL + "syscall(40 if arm else 165, b'none', b'/tmp', b'tmpfs', 0, 0)",
    'unmount /tmp': SYSCALL + "syscall(39 if arm else 166, b'/tmp', 0)",
    'change its root': "import os; os.chroot('/tmp')",
    'pivot its root': SYSCALL + "syscall(41 if arm else 155, b'/tmp', b'/tmp')",
    # Rights
    'become root': 'import os; os.setuid(0)',
    'become the group of root': 'import os; os.setgroups([0])',
    'raise its priority': 'import os; os.nice(-5)',
    'raise a limit': 'import resource; resource.setrlimit(resource.RLIMIT_CORE, (1, 1))',
    'make a user namespace': SYSCALL + 'syscall(97 if arm else 272, 0x10000000)',
    'make a mount namespace': SYSCALL + 'syscall(97 if arm else 272, 0x00020000)',
    'enter a namespace of the first process': 'import os\n'
    + SYSCALL
    + "syscall(268 if arm else 308, os.open('/proc/1/ns/net', os.O_RDONLY), 0)",
    'load a program into the kernel': SYSCALL + 'syscall(280 if arm else 321, 5, 0, 0)',
    'use the keys of the kernel': SYSCALL + 'syscall(219 if arm else 250, 0, -3, 1)',
    'handle page faults': SYSCALL + 'syscall(282 if arm else 323, 0)',
    'measure performance': SYSCALL + 'syscall(241 if arm else 298, 0, 0, -1, -1, 0)',
    'set the clock': 'import time; time.clock_settime(time.CLOCK_REALTIME, 0)',
    'set the name of the host': "import socket; socket.sethostname('x')",
    'trace the first process': SYSCALL + 'syscall(117 if arm else 101, 16, 1, 0, 0)\nos.kill(1, 9)\n1 / 0',
    # The network
    'reach the internet': "import socket; socket.create_connection(('93.184.216.34', 80), 1)",
    'reach the service of a cloud': "import socket; socket.create_connection(('169.254.169.254', 80), 1)",
    'resolve a name': "import socket; socket.getaddrinfo('example.org', 80)",
    'open a raw socket': 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)',
    'open a packet socket': 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)',
    'find the engine': "import socket; socket.socket(socket.AF_UNIX).connect('/var/run/docker.sock')",
    'find containerd': "import socket; socket.socket(socket.AF_UNIX).connect('/run/containerd/containerd.sock')",
}


@pytest.mark.asyncio(loop_scope='module')
@pytest.mark.parametrize('code', REFUSED.values(), ids=REFUSED.keys())
async def test_it_is_refused(shared: Sandbox, code: str) -> None:
    cell = await attack(shared, code)
    assert kind_of(cell) == 'exception', cell


@pytest.mark.asyncio(loop_scope='module')
async def test_services_of_the_host_on_loopback_and_in_abstract_sockets_cannot_be_reached(shared: Sandbox) -> None:
    with socket.create_server(('127.0.0.1', 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind('\0habilis-test')
        abstract.listen()
        port = server.getsockname()[1]
        cell = await attack(shared, f"import socket; socket.create_connection(('127.0.0.1', {port}), 1)")
        assert kind_of(cell) == 'exception'
        cell = await attack(shared, "import socket; socket.socket(socket.AF_UNIX).connect('\\0habilis-test')")
        assert kind_of(cell) == 'exception'


@pytest.mark.asyncio(loop_scope='module')
async def test_it_has_no_rights_and_cannot_get_any(shared: Sandbox) -> None:
    status = "dict(line.split(':\\t', 1) for line in open('/proc/self/status').read().splitlines() if ':\\t' in line)"
    shown = cast('dict[str, str]', (await shared.run(status)).value)
    assert {shown[name].strip() for name in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb')} == {'0' * 16}
    assert (shown['NoNewPrivs'], shown['Seccomp'], shown['Uid'].split()[0]) == ('1', '2', '65534')
    assert (
        await shared.run("import os; [os.path.exists(p) for p in ('/dev/sda', '/dev/kvm', '/dev/fuse')]")
    ).value == [False] * 3


@pytest.mark.asyncio(loop_scope='module')
async def test_nothing_of_the_host_is_in_its_environment(shared: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('SECRET_KEY', 'hunter2')
    environment = (await shared.run("open('/proc/1/environ').read() + open('/proc/self/environ').read()")).value
    assert 'hunter2' not in str(environment)
    assert 'HOSTNAME' in str(environment)


CHILD = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', '{}'])"
BOMBS = {
    'processes': 'import os\nwhile True:\n    try: os.fork() or os._exit\n    except OSError: pass',
    'threads': 'import threading as t\nwait = t.Event().wait\nwhile True: t.Thread(target=wait, daemon=True).start()',
    'memory of a child': CHILD.format('x = []\\nwhile 1: x.append(bytearray(1 << 22))'),
    'files in memory': "n = 0\nwhile True:\n    n += 1\n    open(f'/tmp/{n}', 'wb').write(bytes(1 << 20))",
    'shared memory': "open('/dev/shm/x', 'wb').write(bytes(1 << 28))",
    'output of a child': CHILD.format('while 1: print("x" * 9999)'),
    'signals to all': 'import os\nos.kill(-1, 9)',
    'closed files': 'import os\nos.closerange(0, 100)',
    'messages of its own': (
        'import os\nfor fd in range(3, 30):\n    try: os.write(fd, b"junk\\n" * 10)\n    except OSError: pass'
    ),
    'a core dump': 'import ctypes; ctypes.string_at(0)',
    'a stopped interpreter': 'import os, signal; os.kill(os.getpid(), signal.SIGSTOP)',
    'descriptors': "import os\nheld = []\nwhile True: held.append(os.open('/dev/null', 0))",
}


@pytest.mark.parametrize('code', BOMBS.values(), ids=BOMBS.keys())
async def test_a_bomb_ends_its_own_cell_at_most(code: str) -> None:
    async with await Sandbox.create(BACKEND, limits=Limits(seconds=4, memory_mb=128)) as sandbox:
        await attack(sandbox, code)


async def test_a_daemon_that_left_its_session_ends_with_the_sandbox() -> None:
    async with await Sandbox.create(BACKEND, limits=Limits(seconds=10)) as sandbox:
        daemon = 'import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\ntime.sleep(999)'
        cell = await sandbox.run(
            f'import socket, subprocess, sys\nsubprocess.run([sys.executable, "-c", {daemon!r}])\nsocket.gethostname()'
        )
        assert 'time.sleep(999)' in docker('top', str(cell.value), '-eo', 'pid,args')
    for _ in range(100):
        if not docker('ps', '-aq', '--filter', f'id={cell.value}'):
            return
        await asyncio.sleep(0.1)
    pytest.fail('the container is still there')


async def test_links_and_strange_files_in_the_workspace_do_not_lead_the_host_out(tmp_path: Path) -> None:
    (tmp_path / 'secret').write_text('secret')
    space = tmp_path / 'space'
    space.mkdir()
    async with await Sandbox.create(BACKEND, workspace=space, limits=Limits(seconds=10)) as sandbox:
        cell = await sandbox.run(
            "import os, socket\nos.symlink('../secret', 'link')\nos.symlink('/etc/shadow', 'shadow')\n"
            "os.mkfifo('pipe')\nsocket.socket(socket.AF_UNIX).bind('socket')\n"
            "open('a\\nb\"', 'w').write('x')\nos.makedirs('/'.join(['d'] * 500))"
        )
        assert cell.error is None, cell.error
        assert [change.path for change in cell.files] == ['a\nb"']
        for name in ('link', 'shadow', 'pipe', 'socket', '../secret'):
            with pytest.raises(WorkspaceError, match=name):
                await sandbox.download(name)


async def test_a_link_swapped_while_the_host_reads_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / 'secret').write_text('secret')
    space = tmp_path / 'space'
    space.mkdir()
    async with await Sandbox.create(BACKEND, workspace=space, limits=Limits(seconds=10)) as sandbox:
        swap = (
            'import os, time\nend = time.monotonic() + 2\nwhile time.monotonic() < end:\n'
            "    open('t', 'w').write('mine')\n    os.replace('t', 'file')\n"
            "    os.symlink('../secret', 't')\n    os.replace('t', 'file')"
        )
        racing = asyncio.create_task(sandbox.run(swap))
        read: set[bytes] = set()
        while not racing.done():
            with contextlib.suppress(WorkspaceError):
                read.add(sandbox.workspace.read('file'))
            await asyncio.sleep(0.001)
        assert (await racing).error is None
    assert read <= {b'mine', b''}
