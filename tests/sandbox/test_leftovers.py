"""Nothing is left behind: no thread, no memory, no folder, and no process that does not end."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import weakref
from pathlib import Path

import pytest

from habilis import Limits, Sandbox

# In one process -------------------------------------------------------------------------------------------------------


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made, empty at first."""
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
    return tmp_path


def resident_mb() -> float:
    """Memory of this process."""
    status = Path('/proc/self/statm')
    if not status.exists():
        pytest.skip('needs /proc')
    return int(status.read_text().split()[1]) * os.sysconf('SC_PAGE_SIZE') / 1e6


async def one_of_each(number: int) -> None:
    """A sandbox that ends well, fails, is stopped, is cancelled, is closed in the middle, or forks first."""
    sandbox = await Sandbox.create(workspace=True, limits=Limits(seconds=0.05 if number % 6 == 2 else 5))
    await sandbox.run("data = list(range(10_000))\nopen('file', 'w').write('x' * 1000)")
    match number % 6:
        case 0:
            assert (await sandbox.run('len(data)')).value == 10_000
        case 1:
            assert not (await sandbox.run('1/0')).ok
        case 2:
            assert not (await sandbox.run('while True: pass')).ok
        case 3:
            running = asyncio.create_task(sandbox.run('while True: pass'))
            await asyncio.sleep(0.02)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        case 4:
            running = asyncio.create_task(sandbox.run('import time\ntime.sleep(60)'))
            await asyncio.sleep(0.02)
            await sandbox.close()
            await asyncio.gather(running, return_exceptions=True)
        case _:
            async with await sandbox.fork() as twin:
                assert (await twin.run('len(data)')).value == 10_000
    await sandbox.close()


async def mixed_runs(count: int) -> None:
    at_once = asyncio.Semaphore(4)

    async def one(number: int) -> None:
        async with at_once:
            await one_of_each(number)

    await asyncio.gather(*(one(number) for number in range(count)))


async def test_a_hundred_mixed_runs_leave_no_thread_no_memory_and_no_folder(temporary: Path) -> None:
    await mixed_runs(24)
    gc.collect()
    threads, memory = threading.active_count(), resident_mb()
    await mixed_runs(100)
    gc.collect()
    assert threading.active_count() <= threads + 4
    assert resident_mb() - memory < 150
    assert list(temporary.iterdir()) == []
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


async def test_a_sandbox_that_was_not_closed_is_freed_with_its_folder(temporary: Path) -> None:
    left: list[weakref.ref[Sandbox]] = []
    for _ in range(20):
        sandbox = await Sandbox.create(workspace=True)
        left.append(weakref.ref(sandbox))
        assert (await sandbox.run('x = [1]\n1')).value == 1
        del sandbox
    for _ in range(50):
        await asyncio.sleep(0.05)  # the last ones are still being saved
        gc.collect()
        if not any(reference() for reference in left):
            break
    assert [reference() for reference in left if reference()] == []
    assert list(temporary.iterdir()) == []


# The end of a process -------------------------------------------------------------------------------------------------


def start(script: str, folder: Path) -> 'subprocess.Popen[str]':
    environment = {**os.environ, 'TMPDIR': str(folder)}
    command = [sys.executable, '-W', 'error', '-c', textwrap.dedent(script)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


BEGIN = """
import asyncio, sys, threading, time
from habilis import Sandbox
"""
ENDINGS: dict[str, tuple[str, int]] = {
    'a sandbox that was never closed': (
        """
        sandbox = Sandbox.create_sync(workspace=True)
        sandbox.run('x = 1')
        sys.exit(3)
        """,
        3,
    ),
    'exit while another thread runs a cell': (
        """
        sandbox = Sandbox.create_sync(workspace=True)
        sandbox.run('1')
        threading.Thread(target=lambda: sandbox.run('while True: pass'), daemon=True).start()
        time.sleep(0.3)
        sys.exit(4)
        """,
        4,
    ),
    'the end of main while a task runs a cell': (
        """
        async def main():
            sandbox = await Sandbox.create(workspace=True)
            await sandbox.run('1')
            task = asyncio.create_task(sandbox.run('while True: pass'))
            await asyncio.sleep(0.3)
            sys.exit(5)
        asyncio.run(main())
        """,
        5,
    ),
    'a tool that is stuck': (
        """
        def stuck(): time.sleep(60)
        sandbox = Sandbox.create_sync(tools=[stuck])
        threading.Thread(target=lambda: sandbox.run('stuck()'), daemon=True).start()
        time.sleep(0.5)
        sys.exit(6)
        """,
        6,
    ),
    'variables that take for ever to save': (
        """
        sandbox = Sandbox.create_sync()
        assert sandbox.run('class S:\\n  def __reduce__(self):\\n    while True: pass\\ns = S()').ok
        time.sleep(0.1)
        sys.exit(7)
        """,
        7,
    ),
    'many at once': (
        """
        async def main():
            boxes = [await Sandbox.create() for _ in range(20)]
            tasks = [asyncio.create_task(box.run('while True: pass')) for box in boxes]
            await asyncio.sleep(0.3)
        asyncio.run(main())
        sys.exit(8)
        """,
        8,
    ),
    'right after the first sandbox was made': ('Sandbox.create_sync()\nsys.exit(9)', 9),
}


@pytest.mark.parametrize(('script', 'code'), ENDINGS.values(), ids=ENDINGS.keys())
def test_a_process_ends_in_time_with_its_own_code_and_in_silence(script: str, code: int, tmp_path: Path) -> None:
    process = start(BEGIN + textwrap.dedent(script), tmp_path)
    out, err = process.communicate(timeout=600)
    assert (process.returncode, out, err) == (code, '', '')
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_program_is_all_that_is_shown(tmp_path: Path) -> None:
    script = BEGIN + "sandbox = Sandbox.create_sync(workspace=True)\nsandbox.run('1')\nraise KeyError('mine')"
    process = start(script, tmp_path)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 1
    assert err.count('Traceback') == 1
    assert err.endswith("KeyError: 'mine'\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(('sent', 'left'), [(signal.SIGTERM, 1), (signal.SIGKILL, 1)])
def test_a_killed_process_leaves_at_most_its_folder(sent: signal.Signals, left: int, tmp_path: Path) -> None:
    script = (
        BEGIN + 'sandbox = Sandbox.create_sync(workspace=True)\n'
        "sandbox.run('print(1)\\nwhile True: pass', on_output=lambda *_: print('ready', flush=True))"
    )
    process = start(script, tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == 'ready\n'
    process.send_signal(sent)
    process.communicate(timeout=600)
    assert process.returncode == -sent
    assert [path.name.startswith('habilis-workspace-') for path in tmp_path.iterdir()] == [True] * left
