"""Doing a step once or several times, within its time."""

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from habilis.core.errors import JournalError
from habilis.flows.contract import StepOptions, StepTimeout
from habilis.flows.ending import settle
from habilis.journal import Scope, current_scope
from habilis.journal.failures import failed_paths
from habilis.tools.attempts import on_thread

T = TypeVar('T')


async def call(function: Callable[..., Any], bound: inspect.BoundArguments) -> Any:
    """Call a function: a coroutine function here, any other on a thread. What can be awaited is."""
    made = functools.partial(function, *bound.args, **bound.kwargs)
    if is_async(function):
        return await made()
    scope = current_scope()
    if scope is None:
        result = await on_thread(made)
    else:
        with scope.outside():  # a journal belongs to the event loop: code on a thread must not write to it
            result = await on_thread(made)
    return await cast('Awaitable[object]', result) if inspect.isawaitable(result) else result


def is_async(function: object) -> bool:
    """Whether calling it only makes a coroutine."""
    method: object = getattr(type(function), '__call__', None)  # noqa: B004
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(method)


async def in_time(work: Callable[[], Awaitable[T]], seconds: float | None, what: str) -> T:
    """Do it within so many seconds, or raise `StepTimeout`."""
    if seconds is None:
        return await work()
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await work()
    except TimeoutError:
        if not limit.expired():
            raise
        msg = f'{what} took longer than {seconds:g} s'
        raise StepTimeout(msg) from None


async def attempted(work: Callable[[], Awaitable[T]], options: StepOptions, *, name: str, scope: Scope) -> T:
    """Do the work of a step as often as its options allow; only what comes of the last attempt is recorded."""
    delay = options.retry_delay
    what = f'step {scope.path.rpartition("/")[2] or name}'
    for _ in range(options.retries):
        try:
            return await in_time(work, options.timeout, what)
        except JournalError:
            raise
        except Exception as error:
            failed = failed_paths(error)
        await settle(scope)
        await scope.journal.rewind(scope.path, failed)
        await asyncio.sleep(delay)
        delay *= 2
    return await in_time(work, options.timeout, what)
