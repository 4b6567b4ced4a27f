"""Ctrl-C: the first one ends the work cleanly, the second one ends the process at once."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, TypeVar

T = TypeVar('T')

INTERRUPTED = 130
_SHOW_CURSOR = '\033[?25h'


def run_interruptible(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end. Raises `KeyboardInterrupt` once Ctrl-C has cancelled it and it has tidied up."""
    task: asyncio.Task[T] | None = None
    pressed = False

    async def begin() -> T:
        nonlocal task
        task = asyncio.current_task()
        if pressed:
            raise asyncio.CancelledError
        return await work()

    def press(_number: int, _frame: object) -> None:
        nonlocal pressed
        if pressed:
            _end_now()
        pressed = True
        if task is not None:
            task.get_loop().call_soon_threadsafe(task.cancel)

    before = signal.signal(signal.SIGINT, press)
    try:
        with asyncio.Runner() as runner:
            return runner.run(begin())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, before)


def _end_now() -> NoReturn:
    """Without waiting for anything: a thread may be stuck, and that may be why Ctrl-C was pressed twice."""
    if sys.stderr.isatty():
        os.write(2, f'{_SHOW_CURSOR}\n'.encode())
    os._exit(INTERRUPTED)
