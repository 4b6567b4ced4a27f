"""Forks of the `process` backend: zygotes, and `fork(2)` of live sandboxes, which are separate from then on."""

import asyncio
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from habilis.core.limits import Limits
from habilis.sandbox.contract import Guest, GuestSpec
from habilis.sandbox.process import kernel_calls as calls
from habilis.sandbox.process.backend import ProcessBackend
from habilis.sandbox.process.fork_checks import only_process
from habilis.sandbox.process.guest import ProcessGuest
from habilis.sandbox.process.zygotes import Zygotes
from habilis.sandbox.session import Sandbox
from tests.sandbox.process.conftest import backend_with_zygote
from tests.sandbox.process.test_backend import wait_until_nothing_runs
from tests.waiting import until

NUMBERS = 'def numbers():\n    for n in range(100): yield n\nseen = numbers()\nnext(seen)'
NUMBER = calls.CLONE[platform.machine()]
CLONE = f'import ctypes\nctypes.CDLL(None, use_errno=True).syscall({NUMBER}, {{flags}}, 0, 0, 0, 0)'
SETTLE = """
while True:
    try: assert open('/proc/1/environ').read() == ''
    except PermissionError: break
    time.sleep(0.01)
"""


@pytest.fixture
async def box(tmp_path: Path) -> AsyncIterator[Sandbox]:
    """A sandbox that has run code."""
    async with await Sandbox.create('process', workspace=tmp_path, limits=Limits(seconds=30)) as sandbox:
        assert (await sandbox.run(f'import os, time\n{NUMBERS}')).ok
        yield sandbox


def guest_of(sandbox: Sandbox) -> Guest | None:
    return sandbox._interpreter._guest  # pyright: ignore[reportPrivateUsage]


async def value(sandbox: Sandbox, code: str) -> object:
    cell = await sandbox.run(code)
    assert cell.error is None, cell.error
    return cell.value


# Live sandboxes -------------------------------------------------------------------------------------------------------


async def test_a_fork_has_what_no_snapshot_can_hold_and_both_continue_alone(box: Sandbox) -> None:
    async with await box.fork() as twin:
        assert [await value(box, 'next(seen)') for _ in range(3)] == [1, 2, 3]
        assert await value(twin, 'next(seen)') == 1
        async with await twin.fork() as third:
            assert await value(third, 'next(seen)') == 2
        assert await value(twin, 'next(seen)') == 2
    assert await value(box, 'next(seen)') == 4


async def test_large_memory_has_large_pages_so_that_a_fork_copies_few(box: Sandbox) -> None:
    if '[madvise]' not in Path('/sys/kernel/mm/transparent_hugepage/enabled').read_text():
        pytest.skip('this kernel gives large pages to everybody, or to nobody')
    assert (await box.run('large = bytearray(64 << 20)')).ok
    guest = guest_of(box)
    assert isinstance(guest, ProcessGuest)
    *_, interpreter = only_process(guest.pid, guest.origin.depth)
    assert any('hg' in line.split() for line in interpreter.read('smaps').splitlines() if line.startswith('VmFlags'))


async def test_a_fork_outlives_its_origin(tmp_path: Path) -> None:
    async with await Sandbox.create('process', workspace=tmp_path) as origin:
        await origin.run(NUMBERS)
        twin = await origin.fork()
    async with twin:
        assert await value(twin, 'next(seen)') == 1
        assert await value(twin, "open('made', 'w').write('text')") == 4
    assert (tmp_path / 'made').read_text() == 'text'
    wait_until_nothing_runs(tmp_path)


async def test_the_death_of_an_origin_is_noticed_while_its_fork_continues(box: Sandbox) -> None:
    await box.run(NUMBERS)
    async with await box.fork() as twin:
        cell = await box.run('import os, signal\nos.kill(os.getpid(), signal.SIGKILL)', seconds=10)
        assert cell.error is not None
        assert cell.error.message == 'the interpreter ended (signal 9)'
        assert await value(twin, 'next(seen)') == 1


async def test_twins_see_neither_processes_nor_private_files_of_each_other(box: Sandbox) -> None:
    await box.run("open('/tmp/before', 'w').write('x'); open('/dev/shm/before', 'w').write('x')")
    processes = "sorted(int(name) for name in os.listdir('/proc') if name.isdigit()) == [1, os.getpid()]"
    async with await box.fork() as twin:
        for sandbox in (box, twin):
            assert await value(sandbox, processes)
        assert await value(twin, "os.listdir('/tmp') + os.listdir('/dev/shm')") == []
        await twin.run("open('/tmp/after', 'w').write('y')")
        assert await value(box, "os.listdir('/tmp') + os.listdir('/dev/shm')") == ['before', 'before']


async def test_a_twin_is_confined_like_its_origin(box: Sandbox) -> None:
    async with await box.fork() as twin:
        for sandbox in (box, twin):
            status = await value(sandbox, "open('/proc/self/status').read()")
            assert isinstance(status, str)
            fields = dict(line.split(':\t') for line in status.splitlines() if ':\t' in line)
            assert fields['NoNewPrivs'] == '1'
            assert fields['Seccomp'] == '2'
            assert {int(fields[name], 16) for name in ('CapInh', 'CapPrm', 'CapEff', 'CapAmb')} == {0}
            assert (await sandbox.run(SETTLE)).ok
            for attack in (
                "open('/usr/made', 'w')",
                "open('/proc/1/environ').read()[0]",  # empty while the first process is replaced
                "os.kill(1, 9) or open('/proc/1/mem')",
                "os.mkdir('/private/new')",
                "os.umask(0) and os.chroot('/tmp')",
                'os.setuid(0)',
            ):
                assert (await sandbox.run(attack)).error, attack
            assert await value(sandbox, f'{CLONE.format(flags=0x1000_0011)}') == -1


async def test_no_code_gets_namespaces_without_a_request_of_the_host(tmp_path: Path) -> None:
    limits = Limits(seconds=1)
    async with await Sandbox.create('process', limits=limits) as sandbox:
        cell = await sandbox.run(CLONE.format(flags=int(calls.FORK_FLAGS)))
        assert cell.error is not None or cell.value == -1  # nobody decides: it waits until its time is over
        assert await value(sandbox, '6 * 7') == 42


async def test_a_call_that_waits_when_the_host_forks_is_refused(box: Sandbox) -> None:
    attack = CLONE.format(flags=int(calls.FORK_FLAGS))
    code = f"import subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', {attack!r}])"
    await box.run(f'{code}\ntime.sleep(0.5)')
    async with await box.fork() as twin:
        assert await value(twin, '6 * 7') == 42
        assert (await twin.run('seen')).error  # it was made by a snapshot


@pytest.mark.parametrize(
    'channel',
    [
        'pair = os.pipe()',
        'import socket\npair = socket.socketpair()',
        "import mmap\nf = open('/dev/shm/f', 'w+b')\nf.truncate(9)\nshared = mmap.mmap(f.fileno(), 9)\nf.close()",
        "import mmap\nf = open('/tmp/f', 'w+')\nf.write('x')\nf.flush()\nm = mmap.mmap(f.fileno(), 1, 2)\nf.close()",
        "file = open('/workspace/file', 'w')",
        "file = open('/proc/self/status')",
        'import pty\npair = pty.openpty()',
        "file = open('/tmp/file', 'w')",
        "os.chdir('/tmp')",
        "folder = os.open('/workspace', os.O_RDONLY)",
        'import threading\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()',
        "import subprocess\nchild = subprocess.Popen(['sleep', '60'])",
    ],
)
async def test_what_would_be_shared_with_the_origin_makes_a_snapshot_of_the_fork(box: Sandbox, channel: str) -> None:
    await box.run(channel)
    async with await box.fork() as twin:
        assert (await twin.run('seen')).error  # it was made by a snapshot
        assert await value(twin, 'type(os).__name__') == 'module'
    assert await value(box, 'next(seen)') == 1


async def test_each_twin_has_a_memory_limit_of_its_own() -> None:
    async with await Sandbox.create('process', limits=Limits(seconds=30, memory_mb=128)) as box:
        await box.run(f'{NUMBERS}\nlarge = bytearray(60 << 20)')
        async with await box.fork() as twin:
            cell = await twin.run('more = bytearray(100 << 20)')
            assert cell.error is not None
            assert cell.error.kind == 'memory'
        async with await box.fork() as twin:
            processes = (
                'import subprocess, sys, time\ncode = "x = bytearray(90 << 20); import time; time.sleep(9)"\n'
                'made = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]\ntime.sleep(9)'
            )
            cell = await twin.run(processes)
            assert cell.error is not None
            assert cell.error.kind == 'memory'
        assert await value(box, 'len(large), next(seen)') == (60 << 20, 1)


async def test_daemons_of_a_twin_end_with_it_and_those_of_the_origin_stay(box: Sandbox, tmp_path: Path) -> None:
    beat = "import subprocess\nsubprocess.Popen(['sh', '-c', 'while true; do echo . >> {}; sleep 0.05; done'], "
    beat += 'start_new_session=True)'
    async with await box.fork() as twin:
        await twin.run(beat.format('twin'))
        await box.run(f'{beat.format("origin")}\ntime.sleep(0.5)')
    sizes = [(tmp_path / 'twin').stat().st_size, (tmp_path / 'origin').stat().st_size]
    await box.run('time.sleep(1)')
    assert (tmp_path / 'twin').stat().st_size == sizes[0]
    assert (tmp_path / 'origin').stat().st_size > sizes[1]


async def test_a_twin_that_ends_is_reported_and_replaced(box: Sandbox) -> None:
    await box.run('x = 1')
    async with await box.fork() as twin:
        cell = await twin.run('os.kill(os.getpid(), 9)')
        assert cell.error is not None
        assert cell.error.kind == 'broken'
        assert 'signal 9' in cell.error.message
        assert await value(twin, 'x') == 1
    assert await value(box, 'next(seen)') == 1


def test_a_host_that_is_killed_leaves_no_twin_no_zygote_and_no_broker(tmp_path: Path) -> None:
    code = f"""
import asyncio
from habilis import Sandbox
from habilis.sandbox.process.broker_client import broker
from tests.sandbox.process.conftest import wait_for_zygote
from habilis.sandbox import backends
async def main():
    for _ in range(2):
        await (await Sandbox.create('process', workspace={str(tmp_path)!r})).close()
    wait_for_zygote(backends.backend('process'))
    s = await Sandbox.create('process', workspace={str(tmp_path)!r})
    await s.run('x = 1')
    t = await s.fork()
    zygotes = backends.backend('process')._zygotes._zygotes.values()
    print(broker._process.pid, *(zygote.guest.pid for zygote in zygotes), flush=True)
    await t.run('while True: pass')
asyncio.run(main())
"""
    host = subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE)
    assert host.stdout is not None
    pids = [int(pid) for pid in host.stdout.readline().split()]
    assert len(pids) == 2
    host.send_signal(signal.SIGKILL)
    host.wait()
    host.stdout.close()
    wait_until_nothing_runs(tmp_path)
    end = time.monotonic() + 20
    while any(Path('/proc', str(pid)).exists() for pid in pids):
        assert time.monotonic() < end
        time.sleep(0.05)


# Zygotes --------------------------------------------------------------------------------------------------------------


async def test_sandboxes_of_one_zygote_are_separate(zygote: ProcessBackend, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ('one', 'two')]
    one, two = [await Sandbox.create('process', workspace=folder) for folder in folders]
    async with one, two:
        guests = [guest_of(sandbox) for sandbox in (one, two)]
        assert all(isinstance(guest, ProcessGuest) and guest.origin.depth == 1 for guest in guests)
        write = "import os\nfor f in ('/tmp/f', '/dev/shm/f', 'f'): open(f, 'w').write('{}')"
        await one.run(write.format('one'))
        await two.run(write.format('two'))
        for sandbox, name in ((one, 'one'), (two, 'two')):
            assert await value(sandbox, "[open(f).read() for f in ('/tmp/f', '/dev/shm/f', 'f')]") == [name] * 3
            seen = await value(sandbox, "sorted(int(p) for p in os.listdir('/proc') if p.isdigit())")
            assert seen == [1, await value(sandbox, 'os.getpid()')]
            assert (await sandbox.run("open('/usr/made', 'w')")).error
            assert (await sandbox.run("open('/etc/shadow')")).error
        assert [(folder / 'f').read_text() for folder in folders] == ['one', 'two']
        owner = folders[0].stat().st_uid
        assert (folders[0] / 'f').stat().st_uid == owner
        async with await two.fork() as twin:
            assert await value(twin, "open('f').read()") == 'two'


async def test_a_sandbox_outlives_its_zygote_and_the_zygote_ends_with_the_last(
    zygote: ProcessBackend, tmp_path: Path
) -> None:
    async with await Sandbox.create('process', workspace=tmp_path) as sandbox:
        await sandbox.run('x = 1')
        zygote._zygotes.interrupt()  # pyright: ignore[reportPrivateUsage]
        assert await value(sandbox, 'x') == 1
    wait_until_nothing_runs(tmp_path)


async def test_the_third_sandbox_of_a_kind_is_made_ahead_and_is_like_any_other(zygote_without_folders: Zygotes) -> None:
    kept = [await Sandbox.create('process') for _ in range(2)]
    spare = await spare_of(zygote_without_folders)
    async with await Sandbox.create('process') as sandbox:
        assert guest_of(sandbox) is spare
        seen = await value(sandbox, "import os\nsorted(int(p) for p in os.listdir('/proc') if p.isdigit())")
        assert seen == [1, await value(sandbox, 'os.getpid()')]
    async with await Sandbox.create('process', limits=Limits(memory_mb=300)) as other:
        assert guest_of(other) is not await spare_of(zygote_without_folders)  # which has another limit
        code = f'import resource\n(resource.getrlimit(resource.RLIMIT_AS)[0] >> 20) - {Limits().memory_mb}'
        usual = await value(kept[0], code)
        assert await value(other, f'{code} + {Limits().memory_mb - 300}') == usual
    for sandbox in kept:
        await sandbox.close()


async def test_a_spare_that_was_killed_is_not_used(zygote_without_folders: Zygotes) -> None:
    for _ in range(2):
        await (await Sandbox.create('process')).close()
    spare = await spare_of(zygote_without_folders)
    os.kill(spare.pid, signal.SIGKILL)
    await until(lambda: spare.has_ended)
    async with await Sandbox.create('process') as sandbox:
        assert await value(sandbox, '1 + 1') == 2


async def test_sandboxes_whose_zygote_was_killed_are_started_without_it(zygote: ProcessBackend, tmp_path: Path) -> None:
    [found] = zygote._zygotes._zygotes.values()  # pyright: ignore[reportPrivateUsage]
    found.guest.interrupt()
    made = await asyncio.gather(*(Sandbox.create('process', workspace=tmp_path) for _ in range(3)))
    for sandbox in made:
        async with sandbox:
            assert await value(sandbox, '1 + 1') == 2


async def test_a_spare_ends_with_its_zygote(zygote_without_folders: Zygotes) -> None:
    for _ in range(2):
        await (await Sandbox.create('process')).close()
    spare = await spare_of(zygote_without_folders)
    zygote_without_folders.interrupt()
    await until(lambda: not Path('/proc', str(spare.pid)).exists())


async def test_nothing_is_made_ahead_from_a_zygote_that_is_used_no_longer(zygote_without_folders: Zygotes) -> None:
    zygotes, spec = zygote_without_folders, GuestSpec()
    [(found, zygote)] = zygotes._zygotes.items()  # pyright: ignore[reportPrivateUsage]
    zygotes.interrupt()
    for _ in range(2):  # as a request that was under way at that moment
        zygotes._make_spare_soon(zygote, found, spec, (found, spec.limits))  # pyright: ignore[reportPrivateUsage]
    assert zygote.spare_for is None


async def spare_of(zygotes: Zygotes) -> ProcessGuest:
    """The guest that is made ahead, as soon as it is there."""
    [zygote] = zygotes._zygotes.values()  # pyright: ignore[reportPrivateUsage]
    await until(lambda: zygote.spare is not None)
    assert zygote.spare is not None
    return zygote.spare


@pytest.fixture
async def zygote_without_folders() -> AsyncIterator[Zygotes]:
    """The zygotes of a backend that has one for sandboxes without folders."""
    async with backend_with_zygote() as backend:
        yield backend._zygotes  # pyright: ignore[reportPrivateUsage]
