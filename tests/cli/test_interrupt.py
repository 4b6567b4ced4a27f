import asyncio
import signal
import subprocess
import sys

from habilis.cli.interrupt import run_interruptible

PROGRAM = """
import asyncio, signal, threading
from habilis.cli.interrupt import run_interruptible

def press() -> None:
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)

async def work() -> None:
    loop = asyncio.get_running_loop()
    threading.Timer(0.2, press).start()
    await loop.create_future()

run_interruptible(work)
"""


def test_ctrl_c_wakes_a_sleeping_loop_whichever_thread_gets_the_signal() -> None:
    done = subprocess.run([sys.executable, '-c', PROGRAM], capture_output=True, text=True, check=False, timeout=600)
    assert done.stderr.endswith('KeyboardInterrupt\n'), done.stderr
    assert done.returncode == -signal.SIGINT


def test_the_handler_of_before_is_back_after_the_work() -> None:
    before = signal.getsignal(signal.SIGINT)

    async def work() -> int:
        await asyncio.sleep(0)
        return 1

    assert run_interruptible(work) == 1
    assert signal.getsignal(signal.SIGINT) is before
    assert signal.set_wakeup_fd(-1) == -1
