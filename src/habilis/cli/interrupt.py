"""Ctrl-C: the first one cancels the work cleanly, the second one ends the process at once."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, TypeVar

T = TypeVar('T')

INTERRUPTED = 130
"""Exit code after Ctrl-C."""

_SHOW_CURSOR = '\033[?25h'


def run_interruptible(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine. Raises `KeyboardInterrupt` after Ctrl-C has cancelled it and its cleanup is done."""
    task: asyncio.Task[T] | None = None
    pressed = False

    async def start() -> T:
        nonlocal task
        task = asyncio.current_task()
        if pressed:
            raise asyncio.CancelledError
        return await work()

    def handle(_number: int, _frame: object) -> None:
        nonlocal pressed
        if pressed:
            _exit_now()
        pressed = True
        if task is not None:
            task.get_loop().call_soon_threadsafe(task.cancel)

    previous = signal.signal(signal.SIGINT, handle)
    try:
        with asyncio.Runner() as runner:
            return runner.run(start())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, previous)


def _exit_now() -> NoReturn:
    """Exit without cleanup: a stuck thread may be the reason for the second Ctrl-C."""
    if sys.stderr.isatty():
        os.write(2, f'{_SHOW_CURSOR}\n'.encode())
    os._exit(INTERRUPTED)
