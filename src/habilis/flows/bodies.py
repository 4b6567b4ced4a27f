"""What happens when a step or a flow is called inside a flow."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from habilis.flows.attempting import attempted, call
from habilis.flows.context import FlowContext, flow_here, inside_flow, inside_step, step_here
from habilis.flows.contract import FlowError, StepTimeout
from habilis.flows.ending import settle
from habilis.journal import Scope, current_scope, scope_here

if TYPE_CHECKING:
    from habilis.flows.definitions import Flow, Step

R = TypeVar('R')
SLOW = 0.05
"""Seconds after which a step that is under way is shown as such."""


async def take_step(step: 'Step[..., R]', args: tuple[object, ...], kwargs: Mapping[str, object]) -> R:
    """The result of a step, from the record or by doing it. Outside of a journal it is only called."""
    scope = scope_here()
    if scope is None:
        return await call(step.function, inspect.signature(step.function).bind(*args, **kwargs))
    bound = step.inputs.bind(args, kwargs)

    async def work() -> R:
        here = _here()

        async def attempt() -> R:
            return await call(step.function, bound)

        with inside_step(here):
            return await _shown_if_slow(here, key, attempted(attempt, options, name=step.name, scope=here))

    options, key = step.options, step.inputs.key(bound)
    once = not options.idempotent
    return await _kept(step.name, lambda: scope.step(step.name, work, key=key, codec=step.inputs.result, once=once))


async def _shown_if_slow(scope: Scope, key: str, work: Awaitable[R]) -> R:
    """Others see that a step is under way, if it takes long enough to be looked at: to write it down costs time."""
    journal, loop = scope.journal, asyncio.get_running_loop()
    telling: list[asyncio.Task[object]] = []
    tell = loop.call_later(
        SLOW, lambda: telling.append(loop.create_task(journal.write('opened', scope.path, key=key, value=True)))
    )
    try:
        return await work
    finally:
        tell.cancel()
        for task in telling:
            await asyncio.wait({task})
            task.exception()  # if it could not be written, neither can the end of the step


async def take_flow(flow: 'Flow[..., R]', scope: Scope, bound: inspect.BoundArguments) -> R:
    """A flow that is a part of something larger: a step whose own steps are recorded below it."""
    return await _kept(
        flow.name,
        lambda: scope.step(
            flow.name, lambda: body(flow, bound), key=flow.inputs.key(bound), codec=flow.inputs.result, opening=True
        ),
    )


async def body(flow: 'Flow[..., R]', bound: inspect.BoundArguments) -> R:
    """Run a flow in the scope that was made for it. No task that it has begun is left when it ends."""
    scope, limit = _here(), asyncio.timeout(flow.timeout)
    cancelled = False
    try:
        with inside_flow(FlowContext(flow.name, scope)):
            async with limit:
                return await call(flow.function, bound)
    except TimeoutError:
        if not limit.expired():
            raise
        msg = f'flow {flow.name} took longer than {flow.timeout:g} s'
        raise StepTimeout(msg) from None
    except asyncio.CancelledError:
        cancelled = True
        raise
    finally:
        await settle(scope, at_once=cancelled or limit.expired())


async def _kept(name: str, take: Callable[[], Coroutine[Any, Any, R]]) -> R:
    """Do a step, and have its result among the outputs of the flow unless it is part of another step."""
    context = flow_here()
    if context is None or step_here() is not None:
        return await take()
    number = context.begin(name)
    value = await take()
    context.keep(name, number, value)
    return value


def on_its_loop(work: Callable[[], Coroutine[Any, Any, R]]) -> 'Future[R] | None':
    """In a step that is a plain function, and so runs on a thread: do this as a part of that step."""
    context, step = flow_here(), step_here()
    if context is None or step is None:
        return None

    async def in_step() -> R:
        with step.entered():
            return await work()

    return asyncio.run_coroutine_threadsafe(in_step(), context.loop)


def _here() -> Scope:
    scope = current_scope()
    if scope is None:
        msg = 'the work of a step was called outside of its journal'
        raise FlowError(msg)
    return scope
