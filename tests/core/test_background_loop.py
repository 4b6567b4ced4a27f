"""How a thread waits for asynchronous work."""

import asyncio
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future

import pytest

from habilis.core.background_loop import POLL_SECONDS, run_blocking, wait_for_result
from habilis.core.errors import HabilisError

MISSED = """
import asyncio, os, signal, threading
from habilis.core.background_loop import run_blocking

run_blocking(asyncio.sleep(0))  # its thread takes signals
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # this one is not woken by them

async def work():
    print('ready', flush=True)
    await asyncio.sleep(60)

try:
    run_blocking(work())
except KeyboardInterrupt:
    print('seen')
"""


@pytest.mark.skipif(not hasattr(signal, 'pthread_sigmask'), reason='needs signals of POSIX')
def test_ctrl_c_is_seen_even_if_the_signal_did_not_wake_the_thread_that_waits() -> None:
    command = [sys.executable, '-c', MISSED]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == 'ready\n'
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=600) == ('seen\n', '')
        finally:
            process.kill()


def test_work_may_take_longer_than_one_look() -> None:
    async def work() -> str:
        await asyncio.sleep(2.5 * POLL_SECONDS)
        return 'done'

    assert run_blocking(work()) == 'done'


def test_a_timeout_of_the_work_is_its_error() -> None:
    async def work() -> None:
        msg = 'the server is slow'
        raise TimeoutError(msg)

    with pytest.raises(TimeoutError, match='the server is slow'):
        run_blocking(work())


def test_a_timeout_of_the_work_after_some_looks_is_its_error_too() -> None:
    outcome: Future[None] = Future()
    threading.Timer(2.5 * POLL_SECONDS, outcome.set_exception, [TimeoutError('at last')]).start()
    with pytest.raises(TimeoutError, match='at last'):
        wait_for_result(outcome)


def test_a_deadlock_is_refused() -> None:
    async def outer() -> None:
        run_blocking(asyncio.sleep(0))

    with pytest.raises(HabilisError, match='would deadlock'):
        run_blocking(outer())


async def test_it_works_inside_a_running_event_loop() -> None:
    async def work() -> int:
        return 7

    assert run_blocking(work()) == 7
