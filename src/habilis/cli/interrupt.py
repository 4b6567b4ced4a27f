"""Ctrl-C: the first one cancels the work cleanly, the second one ends the process at once."""

import asyncio
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from typing import NoReturn, TypeVar

from habilis.core.status_line import current_status

T = TypeVar('T')

INTERRUPTED = 130
"""Exit code after Ctrl-C."""

GRACE = 0.9
"""Seconds for cleanup after Ctrl-C, where a message for the user is given; a tool that hangs would take forever."""

STOPPING = 'habilis: stopping; press Ctrl-C again to exit at once'
_SHOW_CURSOR = '\033[?25h'


def run_interruptible(
    work: Callable[[], Coroutine[object, object, T]], *, last_words: Callable[[], str] | None = None
) -> T:
    """Run a coroutine. Raises `KeyboardInterrupt` after Ctrl-C has cancelled it and its cleanup is done.

    With `last_words` the process ends soon after Ctrl-C in any case. They make the message that is printed if it ends
    before `KeyboardInterrupt` is raised: at the second Ctrl-C, or because the cleanup takes too long.
    """
    task: asyncio.Task[T] | None = None
    pressed = False
    finished = threading.Event()

    def handle(_number: int, _frame: object) -> None:
        nonlocal pressed
        if pressed:
            _exit_now(last_words)
        pressed = True
        if last_words is not None:
            _say_stopping()
        if task is not None:
            task.get_loop().call_soon_threadsafe(task.cancel)
        if last_words is not None:
            threading.Thread(target=_exit_soon, args=(finished, last_words), daemon=True).start()

    previous = signal.signal(signal.SIGINT, handle)
    try:
        with asyncio.Runner() as runner:
            loop = runner.get_loop()
            _wake_at_signals(loop)
            task = loop.create_task(work())
            if pressed:
                task.cancel()
            return loop.run_until_complete(task)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        finished.set()
        signal.signal(signal.SIGINT, previous)


def _exit_soon(finished: threading.Event, last_words: Callable[[], str]) -> None:
    """End the process if the work does not end, or if threads that it has left keep the process alive."""
    is_finished = finished.wait(GRACE)
    if is_finished:
        time.sleep(GRACE / 3)
    _exit_now(None if is_finished else last_words)


def _wake_at_signals(loop: asyncio.AbstractEventLoop) -> None:
    """Let signals wake the loop: one that arrives just before it sleeps, or at another thread, does not."""
    handler = signal.getsignal(signal.SIGINT)
    with contextlib.suppress(NotImplementedError):  # Windows, whose loop is woken anyway
        loop.add_signal_handler(signal.SIGINT, lambda: None)
        signal.signal(signal.SIGINT, handler)  # it replaced ours, which also works while the loop is busy


def _say_stopping() -> None:
    status = current_status()
    if status.is_live:
        status.set_phase('stopping')
        status.say(STOPPING)
    else:
        _write(f'\n{STOPPING}\n' if sys.stderr.isatty() else f'{STOPPING}\n')  # a terminal has echoed `^C`


def _exit_now(last_words: Callable[[], str] | None) -> NoReturn:
    """Exit without cleanup: a stuck thread may be the reason for the second Ctrl-C."""
    current_status().stop()
    if last_words is not None:
        _write(f'{_SHOW_CURSOR}\nhabilis: {last_words()}\n' if sys.stderr.isatty() else f'habilis: {last_words()}\n')
    os._exit(INTERRUPTED)


def _write(text: str) -> None:
    """Write to stderr itself: the stream may be in the middle of a write."""
    os.write(2, text.encode(errors='backslashreplace'))
