"""Execution of a step or flow that is called inside a flow: replay it from the record, or run and record it."""

import asyncio
import contextlib
import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from habilis.core.codec import Json
from habilis.core.errors import JournalError
from habilis.flows.context import FlowContext, active_flow, active_step, inside_flow, inside_step
from habilis.flows.contract import FlowError, StepTimeout
from habilis.flows.recorded import RecordedFunction
from habilis.flows.tasks import stop_tasks
from habilis.journal import Scope, current_scope, recording_scope
from habilis.journal.failures import failed_paths
from habilis.tools import attempts

R = TypeVar('R')
SLOW_SECONDS = 0.05
"""A step that runs longer is recorded as opened, so that readers of the run see it."""


async def run_step(step: RecordedFunction[..., R], args: tuple[object, ...], kwargs: Mapping[str, object]) -> R:
    """The result of a step, from the record or by running it. Outside of a journal it is only called."""
    scope = recording_scope()
    if scope is None:
        return await _call(step.function, inspect.signature(step.function).bind(*args, **kwargs))
    bound = step.inputs.bind(args, kwargs)
    key, once = step.inputs.key(bound), not step.options.idempotent
    opening = step.inputs.opening(bound) if once else None

    async def work() -> R:
        own = _own_scope()
        with inside_step(own):
            return await _opened_if_slow(own, key, lambda: step.inputs.opening(bound), _attempts(step, bound, own))

    return await _with_output(
        step.name,
        lambda: scope.step(step.name, work, key=key, codec=step.inputs.result, opening=opening, once=once),
    )


async def run_nested_flow(flow: RecordedFunction[..., R], scope: Scope, bound: inspect.BoundArguments) -> R:
    """The result of a flow inside another: a step whose own steps are recorded below it."""
    return await _with_output(
        flow.name,
        lambda: scope.step(
            flow.name, lambda: run_body(flow, bound), key=flow.inputs.key(bound), codec=flow.inputs.result, opening=True
        ),
    )


async def run_body(flow: RecordedFunction[..., R], bound: inspect.BoundArguments) -> R:
    """Run the function of a flow in the current scope. Tasks that it started are stopped when it ends."""
    scope, timeout = _own_scope(), flow.options.timeout
    expired = StepTimeout(f'flow {flow.name} took longer than {timeout:g} s' if timeout else '')
    at_once = False
    try:
        with inside_flow(FlowContext(flow.name, scope)):
            return await attempts.with_timeout(lambda: _call(flow.function, bound), timeout, lambda: expired)
    except asyncio.CancelledError:
        at_once = True
        raise
    except StepTimeout as error:
        at_once = error is expired
        raise
    finally:
        await stop_tasks(scope, at_once=at_once)


def run_in_step(work: Callable[[], Coroutine[Any, Any, R]]) -> 'Future[R] | None':
    """Run work as a part of the step whose plain function runs on this thread; None if there is no such step."""
    context, step = active_flow(), active_step()
    if context is None or step is None:
        return None

    async def in_step() -> R:
        with step.entered():
            return await work()

    return asyncio.run_coroutine_threadsafe(in_step(), context.loop)


# Parts ----------------------------------------------------------------------------------------------------------------


async def _attempts(step: RecordedFunction[..., R], bound: inspect.BoundArguments, scope: Scope) -> R:
    """Call the function of a step, with retries. Only the result of the last attempt is recorded."""
    options = step.options

    async def attempt() -> R:
        return await attempts.with_timeout(lambda: _call(step.function, bound), options.timeout, timed_out)

    def timed_out() -> StepTimeout:
        label = scope.path.rpartition('/')[2] or step.name
        return StepTimeout(f'step {label} took longer than {options.timeout:g} s')

    async def before_retry(_: int, error: Exception) -> None:
        failed = failed_paths(error)
        await stop_tasks(scope)
        await scope.journal.rewind(scope.path, failed)

    return await attempts.with_retries(
        attempt, retries=options.retries, delay=options.retry_delay, before_retry=before_retry, fatal=(JournalError,)
    )


async def _call(function: Callable[..., Any], bound: inspect.BoundArguments) -> Any:
    return await attempts.call(functools.partial(function, *bound.args, **bound.kwargs), thread=_on_thread)


async def _on_thread(work: Callable[[], object]) -> object:
    """Run a plain function without the journal, which only the event loop may write."""
    scope = current_scope()
    with contextlib.nullcontext() if scope is None else scope.outside():
        return await attempts.on_thread(work)


async def _opened_if_slow(scope: Scope, key: str, opening: Callable[[], Json], work: Awaitable[R]) -> R:
    """Record the start of a step only if it takes long enough to be seen, because each record costs time."""
    journal, loop = scope.journal, asyncio.get_running_loop()
    writes: list[asyncio.Task[object]] = []

    def write() -> None:
        writes.append(loop.create_task(journal.write('opened', scope.path, key=key, value=opening())))

    timer = loop.call_later(SLOW_SECONDS, write)
    try:
        return await work
    finally:
        timer.cancel()
        for task in writes:
            await asyncio.wait({task})
            task.exception()  # if this write failed, so will the record of the result


async def _with_output(name: str, run: Callable[[], Coroutine[Any, Any, R]]) -> R:
    """Run a step and add its result to the outputs of the flow, unless it is part of another step."""
    context = active_flow()
    if context is None or active_step() is not None:
        return await run()
    number = context.next_number(name)
    value = await run()
    context.add_output(name, number, value)
    return value


def _own_scope() -> Scope:
    scope = current_scope()
    if scope is None:
        msg = 'the function of a step was called outside of its journal'
        raise FlowError(msg)
    return scope
