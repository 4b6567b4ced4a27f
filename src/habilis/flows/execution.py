"""Execution of a step or flow that is called inside a flow: what the journal runs if it has no record of it."""

import asyncio
import contextlib
import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import TypeVar, cast

from habilis.core.codec import Json
from habilis.core.errors import JournalError
from habilis.flows.context import FlowContext, active_flow, active_step, inside_flow, inside_step
from habilis.flows.contract import FlowError, StepTimeout
from habilis.flows.recorded import RecordedFunction
from habilis.flows.tasks import stop_tasks
from habilis.journal import Scope, current_scope
from habilis.journal.failures import failed_paths
from habilis.sandbox.host.functions import is_async
from habilis.tools import attempts

R = TypeVar('R')
SLOW_SECONDS = 0.05
"""A step that runs longer is recorded as opened, so that readers of the run see it."""


async def run_step(step: RecordedFunction[..., R], bound: inspect.BoundArguments, key: str) -> R:
    """Call the function of a step in the current scope, with its timeout and retries."""
    scope, options = _own_scope(), step.options

    def timed_out() -> StepTimeout:
        label = scope.path.rpartition('/')[2] or step.name
        return StepTimeout(f'step {label} took longer than {options.timeout:g} s')

    async def before_retry(_: int, error: Exception) -> None:
        failed = failed_paths(error)
        await stop_tasks(scope)
        await scope.journal.rewind(scope.path, failed)

    start = SlowStart(scope, key, functools.partial(step.inputs.opening, bound))
    try:
        with inside_step(scope):
            return await attempts.with_attempts(
                call_of(step.function, *bound.args, **bound.kwargs),
                timeout=options.timeout,
                timed_out=timed_out,
                retries=options.retries,
                delay=options.retry_delay,
                before_retry=before_retry,
                fatal=(JournalError,),
            )
    finally:
        await start.finish()


async def run_body(flow: RecordedFunction[..., R], bound: inspect.BoundArguments) -> R:
    """Run the function of a flow in the current scope. Tasks that it started are stopped when it ends."""
    scope = _own_scope()
    limit = asyncio.timeout(flow.options.timeout)
    at_once = False
    try:
        with inside_flow(FlowContext(flow.name, scope)):
            async with limit:
                return await call_of(flow.function, *bound.args, **bound.kwargs)()
    except asyncio.CancelledError:
        at_once = True
        raise
    except TimeoutError:
        if not limit.expired():
            raise
        at_once = True
        msg = f'flow {flow.name} took longer than {flow.options.timeout:g} s'
        raise StepTimeout(msg) from None
    finally:
        await stop_tasks(scope, at_once=at_once)


def call_of(function: Callable[..., Awaitable[R] | R], *args: object, **kwargs: object) -> Callable[[], Awaitable[R]]:
    """A call of a function: an `async def` runs on the event loop, any other on a thread."""
    work = functools.partial(function, *args, **kwargs)
    if not is_async(function):
        work = functools.partial(attempts.call, work, thread=_on_thread)
    return cast('Callable[[], Awaitable[R]]', work)


def run_in_step(work: Callable[[], Coroutine[object, object, R]]) -> 'Future[R] | None':
    """Run work as a part of the step whose plain function runs on this thread; None if there is no such step."""
    context, step = active_flow(), active_step()
    if context is None or step is None:
        return None

    async def in_step() -> R:
        with step.entered():
            return await work()

    return asyncio.run_coroutine_threadsafe(in_step(), context.loop)


# Parts ----------------------------------------------------------------------------------------------------------------


async def _on_thread(work: Callable[[], object]) -> object:
    """Run a plain function without the journal, which only the event loop may write."""
    scope = current_scope()
    with contextlib.nullcontext() if scope is None else scope.outside():
        return await attempts.on_thread(work)


class SlowStart:
    """Records the start of a step only if it takes long enough to be seen, because each record costs time."""

    def __init__(self, scope: Scope, key: str, opening: Callable[[], Json]) -> None:
        self._scope = scope
        self._key = key
        self._opening = opening
        self._writing: asyncio.Task[object] | None = None
        self._timer = asyncio.get_running_loop().call_later(SLOW_SECONDS, self._write)

    def _write(self) -> None:
        journal, path = self._scope.journal, self._scope.path
        self._writing = asyncio.create_task(journal.write('opened', path, key=self._key, value=self._opening()))

    async def finish(self) -> None:
        """Wait until the start is recorded, if it is being recorded."""
        self._timer.cancel()
        if self._writing is not None:
            await asyncio.wait({self._writing})
            self._writing.exception()  # if this write failed, so will the record of the result


def _own_scope() -> Scope:
    scope = current_scope()
    if scope is None:
        msg = 'the function of a step was called outside of its journal'
        raise FlowError(msg)
    return scope
