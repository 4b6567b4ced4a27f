"""The sandbox without `await`: in scripts, in notebooks, in threads, and under Ctrl-C."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from habilis import Limits, Sandbox
from habilis.core.errors import HabilisError, SandboxClosed, SandboxError
from habilis.sandbox.session import SyncSandbox


def test_everything_works_without_await(tmp_path: Path) -> None:
    heard: list[str] = []
    with Sandbox.create_sync(workspace=tmp_path, variables={'x': 1}) as sandbox:
        assert sandbox.run("print('hi')\nx + 1", on_output=lambda stream, text: heard.append(text)).value == 2
        sandbox.set_variables({'y': [1]})
        assert sandbox.get_variables('x', 'y') == {'x': 1, 'y': [1]}
        sandbox.upload('a.txt', 'text')
        assert sandbox.download('a.txt') == b'text'
        with sandbox.fork() as twin:
            assert twin.run('y').value == [1]
        snapshot = sandbox.snapshot()
    with SyncSandbox.restore(snapshot) as again:
        assert again.run('x, y').value == (1, [1])
    assert heard == ['hi\n']
    with pytest.raises(SandboxClosed):
        sandbox.run('1')
    sandbox.close()


async def test_it_works_inside_a_running_event_loop() -> None:
    with Sandbox.create_sync() as sandbox:
        assert sandbox.run('import asyncio\nawait asyncio.sleep(0, 5)').value == 5


async def test_both_kinds_work_side_by_side() -> None:
    async with await Sandbox.create() as one:
        with Sandbox.create_sync() as two:
            both = await asyncio.gather(one.run('1'), asyncio.to_thread(two.run, '2'))
    assert [cell.value for cell in both] == [1, 2]


def test_a_sandbox_goes_on_in_a_second_event_loop_once_the_first_has_ended() -> None:
    """Also where requests wait for each other, and for the variables to be saved in the background."""

    async def use(sandbox: Sandbox) -> list[object]:
        return [cell.value for cell in await asyncio.gather(*(sandbox.run('big = bytes(1 << 24)\n1') for _ in 'abc'))]

    sandbox = asyncio.run(Sandbox.create())
    assert [asyncio.run(use(sandbox)) for _ in range(3)] == [[1, 1, 1]] * 3
    asyncio.run(sandbox.install())
    asyncio.run(sandbox.close())


def test_large_variables_outlive_the_event_loop_that_was_saving_them() -> None:
    async def make(count: int) -> None:
        assert (await sandbox.run(f'big = [str(i) for i in range({count})]')).ok
        for _ in range(3):
            await asyncio.sleep(0)
        assert sandbox.busy, 'they are not being saved'

    sandbox = asyncio.run(Sandbox.create())
    for count in (200_000, 300_000):
        asyncio.run(make(count))
        assert asyncio.run(sandbox.run('len(big)')).value == count
    asyncio.run(sandbox.close())


def test_a_sandbox_that_another_event_loop_uses_refuses_until_it_is_free() -> None:
    entered, go = threading.Event(), threading.Event()

    def wait() -> None:
        entered.set()
        go.wait(60)

    with Sandbox.create_sync(tools=[wait]) as sandbox, ThreadPoolExecutor(1) as threads:
        running = threads.submit(sandbox.run, 'wait()\n1')
        entered.wait(60)
        for request in (sandbox.sandbox.run('2'), sandbox.sandbox.close()):
            with pytest.raises(SandboxError, match='another event loop'):
                asyncio.run(request)
        go.set()
        assert running.result().value == 1
        assert asyncio.run(sandbox.sandbox.run('2')).value == 2


def test_threads_may_have_their_own_and_may_share_one() -> None:
    def own(number: int) -> object:
        with Sandbox.create_sync() as sandbox:
            return sandbox.run(f'import time\ntime.sleep(0.05)\n{number}').value

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(own, range(16))) == list(range(16))
        with Sandbox.create_sync(variables={'seen': []}) as shared:
            list(threads.map(shared.run, [f'seen.append({number})' for number in range(16)]))
            assert shared.run('sorted(seen)').value == list(range(16))


def test_a_cell_can_be_cancelled_from_another_thread() -> None:
    with Sandbox.create_sync() as sandbox:
        threading.Timer(0.2, sandbox.cancel).start()
        error = sandbox.run('while True: pass').error
        assert error is not None
        assert error.kind == 'cancelled'
        assert sandbox.cancel() is False


def test_an_asynchronous_tool_that_would_wait_for_itself_gets_an_error() -> None:
    other = Sandbox.create_sync()
    outcome: list[str] = []

    async def ask() -> None:
        try:
            other.run('1')
        except HabilisError as error:
            outcome.append(str(error))

    def ask_plainly() -> object:
        return other.run('1 + 1').value

    with other, Sandbox.create_sync(tools=[ask, ask_plainly], limits=Limits(seconds=5)) as sandbox:
        assert sandbox.run('await ask()').ok
        assert 'make the tool a plain def' in outcome[0]
        assert sandbox.run('ask_plainly()').value == 2


FORKING = """
import concurrent.futures, multiprocessing
from habilis import Sandbox
def work(number):
    with Sandbox.create_sync() as sandbox:
        sandbox.run('while True: pass', seconds=0.2)
        return sandbox.run(f'{number} + 1').value
print(work(1))
with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context('fork')) as processes:
    print(list(processes.map(work, range(4))))
print(work(2))
"""


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='needs fork')
def test_processes_forked_from_one_that_used_sandboxes_have_their_own() -> None:
    done = subprocess.run([sys.executable, '-c', FORKING], capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, '2\n[1, 2, 3, 4]\n3\n', '')


def test_threads_that_use_the_first_sandbox_at_the_same_moment_share_one_loop() -> None:
    code = (
        'import threading\nfrom concurrent.futures import ThreadPoolExecutor\nfrom habilis import Sandbox\n'
        'ready = threading.Barrier(8)\n'
        'def work(number):\n    ready.wait()\n    with Sandbox.create_sync() as sandbox:\n'
        '        return sandbox.run(str(number)).value\n'
        'with ThreadPoolExecutor(8) as threads: print(list(threads.map(work, range(8))))\n'
        "print(sum(thread.name == 'habilis-sync' for thread in threading.enumerate()))"
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, timeout=600, check=False)
    assert (done.stdout, done.stderr) == ('[0, 1, 2, 3, 4, 5, 6, 7]\n1\n', '')


# Ctrl-C ---------------------------------------------------------------------------------------------------------------

SCRIPT = """
from habilis import Sandbox
with Sandbox.create_sync() as sandbox:
    sandbox.run('x = 1')
    try:
        sandbox.run(CELL, on_output=lambda stream, text: print(text, end='', flush=True))
    except KeyboardInterrupt:
        print('interrupted', sandbox.run('x').value, flush=True)
        raise
"""
ASYNC_SCRIPT = """
import asyncio
from habilis import Sandbox
async def main():
    async with await Sandbox.create() as sandbox:
        await sandbox.run(CELL, on_output=lambda stream, text: print(text, end='', flush=True))
asyncio.run(main())
"""
CELLS: dict[str, str] = {
    'busy': "print('ready')\nwhile True: pass",
    'asleep': "print('ready')\nimport time\ntime.sleep(60)",
}


def interrupt(script: str, cell: str) -> tuple[int, str, str]:
    """Run a script, send it SIGINT when its cell says so; its exit code and output."""
    command = [sys.executable, '-c', f'CELL = {cell!r}\n{script}']
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == 'ready\n'
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=600)
            return process.returncode, out, err
        finally:
            process.kill()


@pytest.mark.parametrize('cell', CELLS.values(), ids=CELLS.keys())
def test_ctrl_c_in_a_script_ends_the_cell_at_once_and_keeps_the_sandbox(cell: str) -> None:
    code, out, err = interrupt(SCRIPT, cell)
    assert (code, out) == (-signal.SIGINT, 'interrupted 1\n')
    assert err.rstrip().endswith('KeyboardInterrupt')
    assert err.count('Traceback') == 1


def test_ctrl_c_in_asynchronous_code_ends_it_cleanly() -> None:
    code, out, err = interrupt(ASYNC_SCRIPT, CELLS['busy'])
    assert (code, out) == (-signal.SIGINT, '')
    assert err.rstrip().endswith('KeyboardInterrupt')
    assert 'Fatal' not in err
