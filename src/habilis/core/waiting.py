"""Waiting for asynchronous work on a thread, for everything that has a form without `await`."""

import asyncio
import functools
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from habilis.core.errors import HabilisError

T = TypeVar('T')
LOOK = 0.1
"""Seconds after which a thread that waits looks whether somebody pressed Ctrl-C."""

_lock = threading.Lock()


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the background loop and wait. Ctrl-C cancels it."""
    loop = _background_loop()
    if asyncio._get_running_loop() is loop:  # pyright: ignore[reportPrivateUsage]
        work.close()
        msg = 'an async tool cannot wait here without await, it would wait for itself; make the tool a plain def'
        raise HabilisError(msg)
    outcome: Future[T] = Future()  # made first: Ctrl-C may come as soon as the loop has the work
    try:
        loop.call_soon_threadsafe(_begin, work, outcome, loop)
        return result_of(outcome)
    except BaseException:
        outcome.cancel()
        raise


def result_of(outcome: 'Future[T]') -> T:
    """Its result as soon as there is one, and Ctrl-C as soon as it is pressed.

    Python can miss Ctrl-C in a wait without end: where the signal arrives just before the thread falls asleep, or at
    another thread, nothing wakes it. So nobody sleeps for long.
    """
    while True:
        try:
            return outcome.result(LOOK)
        except TimeoutError:
            if outcome.done():  # it may be the work that says so
                return outcome.result()


def _background_loop() -> asyncio.AbstractEventLoop:
    """An event loop in a thread of its own, so that this works inside a running loop too (Jupyter)."""
    with _lock:
        return _make_loop()


@functools.cache
def _make_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name='habilis-sync', daemon=True).start()
    return loop


if hasattr(os, 'register_at_fork'):
    os.register_at_fork(after_in_child=_make_loop.cache_clear)  # a thread does not survive the fork


def _begin(work: Coroutine[Any, Any, T], outcome: 'Future[T]', loop: asyncio.AbstractEventLoop) -> None:
    task = loop.create_task(work)

    def tell(done: 'asyncio.Task[T]') -> None:
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        if not outcome.set_running_or_notify_cancel():
            return
        if error is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(done.result())

    def stop(told: 'Future[T]') -> None:
        if told.cancelled():
            loop.call_soon_threadsafe(task.cancel)

    task.add_done_callback(tell)
    outcome.add_done_callback(stop)
