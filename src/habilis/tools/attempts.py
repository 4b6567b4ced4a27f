"""Calls of host functions: on the event loop or on a thread, with a timeout and retries. Used by tools and by steps."""

import asyncio
import contextlib
import contextvars
import functools
import inspect
import math
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar, cast

from habilis.core.errors import ToolCallError, ToolDenied, ToolTimeout
from habilis.core.integers import error_text
from habilis.sandbox.host.functions import is_async
from habilis.sandbox.host.workers import WORKERS
from habilis.tools.contract import NeedsAnswer, ToolOptions
from habilis.tools.logs import log
from habilis.tools.permits import Permit, check_open

T = TypeVar('T')
Work = Callable[[], object]
FIRST_DELAY = 0.1
"""Seconds before the first retry of a tool; doubled before each further one."""

MAX_DELAY = 2.0


# Calls ----------------------------------------------------------------------------------------------------------------


async def on_thread(work: Callable[[], T]) -> T:
    """Run a blocking function on a thread, with the context variables of the caller.

    It does not begin if the caller is cancelled first.
    """
    permit = Permit()
    with permit.entered():
        context = contextvars.copy_context()
    try:
        return await WORKERS.submit(functools.partial(context.run, functools.partial(_guarded, work)))
    except asyncio.CancelledError:
        permit.close()
        raise


async def call(work: Work, *, thread: Callable[[Work], Awaitable[object]] = on_thread) -> object:
    """The result of a function: an `async def` runs on the event loop, any other on a thread. Awaitables are awaited.

    Args:
        work: the function, with its arguments bound by `functools.partial`.
        thread: runs a function that may block.
    """
    result = work() if is_async(work) else await thread(work)
    return await result if inspect.isawaitable(result) else result


def _guarded(work: Callable[[], T]) -> T:
    """A future cannot carry a `StopIteration`: awaiting it would never return."""
    check_open()
    try:
        return work()
    except StopIteration as error:
        msg = 'the function raised StopIteration'
        raise RuntimeError(msg) from error


# Attempts -------------------------------------------------------------------------------------------------------------


async def with_attempts(
    attempt: Callable[[], Awaitable[T]],
    *,
    timeout: float | None = None,
    timed_out: Callable[[], Exception] = TimeoutError,
    retries: int = 0,
    delay: float = FIRST_DELAY,
    max_delay: float = math.inf,
    before_retry: Callable[[int, Exception], Awaitable[None]] | None = None,
    fatal: tuple[type[Exception], ...] = (),
) -> T:
    """The result of the first attempt that succeeds; raises what the last one raises.

    Args:
        attempt: makes one attempt. A function on a thread is not interrupted by the timeout.
        timeout: seconds for each attempt; `timed_out` makes the error of one that takes longer.
        retries: maximum number of attempts after the first; none after a `fatal` error.
        delay: seconds before the first retry; doubled before each further one, up to `max_delay`.
        before_retry: called with the number of the attempt that failed, and its error.
    """
    number = 1
    while True:
        limit = contextlib.nullcontext() if timeout is None else asyncio.timeout(timeout)  # which needs a task
        try:
            async with limit:
                return await attempt()
        except fatal:
            raise
        except Exception as error:
            is_late = isinstance(error, TimeoutError) and isinstance(limit, asyncio.Timeout) and limit.expired()
            if number > retries and is_late:
                raise timed_out() from None
            if number > retries:
                raise
            failure = timed_out() if is_late else error
        if before_retry is not None:
            await before_retry(number, failure)
        del failure  # it would keep the frames of the failed attempt alive
        await asyncio.sleep(delay)
        number, delay = number + 1, min(max_delay, delay * 2)


# Tools ----------------------------------------------------------------------------------------------------------------


def call_tool(
    name: str, work: Work, *, options: ToolOptions, finish: Callable[[object], object], here: bool = False
) -> Coroutine[object, object, object]:
    """Call the function of a tool with the timeout and the retries of its options.

    Args:
        name: the name of the tool, for messages.
        work: the function, with its arguments bound by `functools.partial`.
        options: the options of the tool.
        finish: validates the result of each attempt.
        here: run a plain function on the caller's thread.
    """

    async def attempt() -> object:
        try:
            if is_async(work):
                check_open()
                return finish(await cast('Awaitable[object]', work()))
            result = _guarded(work) if here else await on_thread(work)
        except SystemExit as error:  # it would end the program that uses the tool
            msg = f'{name} tried to end the program (exit code {error.code})'
            raise ToolCallError(msg) from None
        if inspect.iscoroutine(result):
            result.close()
            msg = f'{name} returned a coroutine that nothing awaits: define it with `async def`'
            raise ToolCallError(msg)
        return finish(result)

    return with_attempts(
        attempt,
        timeout=options.timeout,
        timed_out=lambda: ToolTimeout(f'{name} took longer than {options.timeout:g} s'),
        retries=options.retries,
        max_delay=MAX_DELAY,
        before_retry=_log_retry,
        fatal=(NeedsAnswer, ToolDenied),
    )


async def _log_retry(number: int, error: Exception) -> None:
    log(f'attempt {number} failed: {error_text(error)}; retrying')
