"""The events of a run as an async iterator."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import TypeVar, cast

from habilis.agent.contract import Result
from habilis.agent.events import AgentEvent, StreamEvent
from habilis.agent.hooks.dispatch import Hook

T = TypeVar('T')


async def stream_events(
    run: Callable[[Hook], Coroutine[object, object, Result[T]]],
) -> AsyncGenerator[StreamEvent[T], None]:
    """Yield the events of the run that `run(hook)` starts. Closing the generator cancels the run."""
    queue: asyncio.Queue[AgentEvent] = asyncio.Queue()
    work = asyncio.ensure_future(run(queue.put_nowait))
    try:
        while not (work.done() and queue.empty()):
            getting = asyncio.ensure_future(queue.get())
            await asyncio.wait((getting, work), return_when=asyncio.FIRST_COMPLETED)
            if getting.done():
                yield cast('StreamEvent[T]', getting.result())
            else:
                getting.cancel()
        await work
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
