"""Attacks on forks: sandboxes of one zygote, twins, and guests that do not keep to the protocol."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from habilis.core.limits import Limits
from habilis.sandbox.process.backend import ProcessBackend
from habilis.sandbox.process.broker_client import broker
from habilis.sandbox.process.guest import ProcessGuest
from habilis.sandbox.session import Sandbox
from tests.sandbox.process.test_backend import wait_until_nothing_runs
from tests.sandbox.process.test_forks import NUMBERS, guest_of, value

PRELUDE = """
import ctypes, errno, mmap, os, pty, random, signal, socket, ssl, sys, time
def refused(act, *arguments):
    try:
        act(*arguments)
    except OSError:
        return True
    return False
libc = ctypes.CDLL(None, use_errno=True)
modules = {name: sys.modules.get('habilis.sandbox.process.' + name) for name in ('twins', 'confinement')}
"""


async def make(folder: Path) -> Sandbox:
    """A sandbox with a workspace that no other one has."""
    sandbox = await Sandbox.create('process', workspace=folder, limits=Limits(seconds=30))
    assert (await sandbox.run(f'{PRELUDE}\n{NUMBERS}')).ok
    return sandbox


@pytest.fixture(params=['siblings', 'twins'])
async def pair(
    request: pytest.FixtureRequest, zygote: ProcessBackend, tmp_path: Path
) -> AsyncIterator[tuple[Sandbox, Sandbox]]:
    """Two sandboxes: forks of one zygote, or one and its own fork."""
    async with await make(tmp_path / 'one') as one:
        assert isinstance(guest := guest_of(one), ProcessGuest)
        assert guest.origin.depth == 1
        if request.param == 'twins':
            async with await one.fork() as two:
                assert await value(two, 'next(seen)') == 1  # not a snapshot
                yield one, two
        else:
            async with await make(tmp_path / 'two') as two:
                yield one, two


async def test_neither_reaches_sockets_of_the_other(pair: tuple[Sandbox, Sandbox]) -> None:
    one, two = pair
    listen = "t = socket.create_server(('127.0.0.1', 8123)); u = socket.socket(socket.AF_UNIX)"
    listen += "; u.bind('\\0meet'); u.listen()"
    tcp = "socket.create_connection(('127.0.0.1', 8123), 5)"
    unix = "socket.socket(socket.AF_UNIX).connect('\\0meet')"
    for here, there in ((one, two), (two, one)):
        assert (await here.run(listen)).ok
        assert (await here.run(f'{tcp}\n{unix}')).ok  # its own can be reached
        for attack in (tcp, unix):
            assert (await there.run(attack)).error, attack
        assert (await here.run('t.close(); u.close()')).ok
        assert await value(here, 'socket.gethostname()') == 'sandbox'
        seen = "{name for _, _, files in os.walk('/sys') for name in files} <= {'enabled', 'hpage_pmd_size'}"
        assert await value(here, seen) is True


async def test_neither_sees_or_signals_processes_of_the_other(pair: tuple[Sandbox, Sandbox]) -> None:
    one, two = pair
    assert (await one.run("import subprocess\nchild = subprocess.Popen(['sleep', '60'])")).ok
    inside = await value(one, 'sorted((1, os.getpid(), child.pid))')
    assert await value(one, "sorted(int(name) for name in os.listdir('/proc') if name.isdigit())") == inside
    assert await value(two, "sorted(int(name) for name in os.listdir('/proc') if name.isdigit()) == [1, os.getpid()]")
    assert isinstance(guest := guest_of(one), ProcessGuest)
    kill = 'all(refused(os.kill, pid, 0) for pid in range(2, 400) if pid != os.getpid())'
    assert await value(two, kill)
    assert await value(two, f'refused(os.kill, {guest.pid}, 9) and not os.path.exists("/proc/{guest.pid}")')
    assert await value(two, 'refused(os.kill, -1, 9)')  # there is nobody
    assert await value(one, 'child.poll()') is None
    assert await value(one, 'child.kill() or child.wait()') == -9


@pytest.mark.parametrize(
    ('leave', 'find'),
    [
        ("open('/tmp/left', 'w').close()", "os.path.exists('/tmp/left')"),
        ("open('/dev/shm/left', 'w').close()", "os.path.exists('/dev/shm/left')"),
        ('pair = pty.openpty()', "[name for name in os.listdir('/dev/pts') if name != 'ptmx'] != []"),
    ],
    ids=['tmp', 'shm', 'terminals'],
)
async def test_neither_finds_what_the_other_leaves(pair: tuple[Sandbox, Sandbox], leave: str, find: str) -> None:
    one, two = pair
    assert (await one.run(leave)).ok
    assert await value(one, find) is True
    assert await value(two, find) is False


async def test_each_has_only_the_agreed_descriptors(pair: tuple[Sandbox, Sandbox]) -> None:
    for sandbox in pair:
        links = await value(
            sandbox,
            "import glob\n[os.readlink(path) for path in glob.glob('/proc/self/fd/*') if os.path.lexists(path)]",
        )
        kinds = sorted(link.partition(':')[0] for link in cast(list[str], links))
        assert kinds == ['/dev/null'] * 2 + ['pipe'] * 4 + ['socket']


async def test_each_has_random_numbers_of_its_own(zygote: ProcessBackend, tmp_path: Path) -> None:
    draw = 'random.random(), ssl.RAND_bytes(8), __import__("uuid").uuid4().hex, __import__("uuid").uuid1().hex'
    async with await make(tmp_path / 'one') as one, await make(tmp_path / 'two') as two:
        await one.run('ssl.RAND_bytes(8)')
        async with await one.fork() as twin, await one.fork() as third:
            drawn = [await value(sandbox, draw) for sandbox in (one, two, twin, third)]
    for kind in zip(*drawn, strict=True):  # type: ignore[arg-type]
        assert len(set(kind)) == 4


# Guests that do not keep to the protocol ------------------------------------------------------------------------------

LIES = {
    'keeps its capabilities': "modules['twins'].drop_capabilities = lambda: None",
    'leaves a process in the new namespaces': """
drop = modules['twins'].drop_capabilities
def attack():
    if os.fork() == 0: time.sleep(60); os.kill(os.getpid(), 9)
    drop()
modules['twins'].drop_capabilities = attack
""",
    'opens a private file of the origin': """
open('/tmp/file', 'w').close()
drop = modules['twins'].drop_capabilities
modules['twins'].drop_capabilities = lambda: (drop(), os.open('/tmp/file', os.O_RDWR))
""",
    'makes a pipe before it forks': """
clone = modules['twins'].fork_into_namespaces
def attack():
    os.pipe()
    return clone()
modules['twins'].fork_into_namespaces = attack
""",
    'keeps the descriptors of the fork': 'os.close = lambda number: None',
    'leaves a process behind': """
execute = os.execv
def attack(*arguments):
    time.sleep(0.3)  # until the broker knows the process that has moved
    if os.fork() == 0: time.sleep(60); os.kill(os.getpid(), 9)
    execute(*arguments)
os.execv = attack
""",
    'leaves an orphan behind': """
clone = modules['twins'].fork_into_namespaces
def attack():
    if os.fork() == 0:
        if os.fork() == 0: os.closerange(0, 100); time.sleep(60)
        os.kill(os.getpid(), 9)  # the exit of the kernel would tell the host
    time.sleep(0.3)
    return clone()
modules['twins'].fork_into_namespaces = attack
""",
    'does not fork': "modules['twins'].fork_into_namespaces = lambda: (_ for _ in ()).throw(OSError())",
    'answers nonsense': "t = modules['twins']\nsend = t.send\nt.send = lambda socket, data: send(socket, b'{}')",
    'ends': "modules['twins'].fork_into_namespaces = lambda: os.kill(os.getpid(), 9)",
}


@pytest.mark.parametrize('lie', LIES)
async def test_a_guest_that_does_not_keep_to_the_protocol_gets_no_fork(lie: str, tmp_path: Path) -> None:
    async with await make(tmp_path) as box:
        await box.run('kept = 1')
        assert (await box.run(LIES[lie])).ok
        async with await box.fork() as twin:
            assert (await twin.run('next(seen)')).error, lie  # made by a snapshot
            for sandbox in (twin, box):
                assert await value(sandbox, 'kept') == 1
                assert await value(sandbox, "'CapEff:\\t0000000000000000' in open('/proc/self/status').read()")
    wait_until_nothing_runs(tmp_path)


def test_neither_host_nor_broker_keeps_descriptors(tmp_path: Path) -> None:
    with Sandbox.create_sync('process', workspace=tmp_path) as box:
        box.run(NUMBERS)
        box.fork().close()
        process = broker._process  # pyright: ignore[reportPrivateUsage]
        assert process is not None
        pids = ('self', process.pid if os.geteuid() == 0 else 'self')  # that of the broker is hidden from its user
        counts = [len(os.listdir(f'/proc/{pid}/fd')) for pid in pids]
        for _ in range(3):
            box.fork().close()
            Sandbox.create_sync('process').close()
        own, of_broker = [len(os.listdir(f'/proc/{pid}/fd')) for pid in pids]
    assert own - counts[0] <= 3 * 2 + 12  # of each former process of the origin two; a zygote may have been started
    assert of_broker - counts[1] <= (2 if os.geteuid() == 0 else 18)
