"""Event loops on background threads; synchronous functions run coroutines on one of them."""

import asyncio
import functools
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import TypeVar

from habilis.core.errors import HabilisError

T = TypeVar('T')
POLL_SECONDS = 0.1
"""Seconds between two checks for Ctrl-C."""

_lock = threading.Lock()


def run_blocking(work: Coroutine[object, object, T]) -> T:
    """Run a coroutine on the background loop and return its result. Ctrl-C cancels it."""
    loop = background_loop('habilis-sync')
    if asyncio._get_running_loop() is loop:  # pyright: ignore[reportPrivateUsage]
        work.close()
        msg = 'a synchronous call inside an async tool would deadlock; use await, or make the tool a plain def'
        raise HabilisError(msg)
    outcome: Future[T] = Future()  # created first: Ctrl-C may arrive as soon as the loop has the work
    try:
        loop.call_soon_threadsafe(_start, work, outcome, loop)
        return wait_for_result(outcome)
    except BaseException:
        outcome.cancel()
        raise


def wait_for_result(outcome: 'Future[T]') -> T:
    """Wait for the result, and react to Ctrl-C.

    A wait without timeout can miss Ctrl-C: a signal that arrives just before the thread sleeps, or at another thread,
    does not wake it. So it wakes regularly.
    """
    while True:
        try:
            return outcome.result(POLL_SECONDS)
        except TimeoutError:
            if outcome.done():  # raised by the work itself
                return outcome.result()


def background_loop(name: str) -> asyncio.AbstractEventLoop:
    """The event loop of a separate thread of this name, so that it works inside a running loop too (Jupyter)."""
    with _lock:
        return _make_loop(name)


@functools.cache
def _make_loop(name: str) -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name=name, daemon=True).start()
    return loop


if hasattr(os, 'register_at_fork'):
    os.register_at_fork(after_in_child=_make_loop.cache_clear)  # threads do not survive a fork


def _start(work: Coroutine[object, object, T], outcome: 'Future[T]', loop: asyncio.AbstractEventLoop) -> None:
    task = loop.create_task(work)

    def set_outcome(done: 'asyncio.Task[T]') -> None:
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        if not outcome.set_running_or_notify_cancel():
            return
        if error is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(done.result())

    def cancel_task(cancelled: 'Future[T]') -> None:
        if cancelled.cancelled():
            loop.call_soon_threadsafe(task.cancel)

    task.add_done_callback(set_outcome)
    outcome.add_done_callback(cancel_task)
