"""Asyncio tasks of a flow: stop those that are left when it ends, and finish work in spite of cancellation."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import TypeVar

from habilis.journal import Scope

T = TypeVar('T')
_POLL_SECONDS = 0.05


async def stop_tasks(scope: Scope, *, at_once: bool = False) -> None:
    """Stop the other tasks of this scope: start no new steps, wait for the running ones, then cancel the tasks.

    With `at_once`, running steps are cancelled too.
    """
    journal, current = scope.journal, asyncio.current_task()

    def others() -> list[asyncio.Task[object]]:
        return [task for task in journal.tasks_in(scope.path) if task is not current]

    if not others():
        return
    journal.halt(scope.path)
    try:
        while not at_once and journal.has_running_steps(scope.path) and (left := others()):
            await asyncio.wait(left, timeout=_POLL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel_tasks(others())


async def cancel_tasks(tasks: Sequence[asyncio.Task[object]]) -> None:
    """Cancel the tasks and wait until they have ended."""
    for task in tasks:
        task.cancel()
    if tasks:
        await uncancelled(_gather(tasks))


async def _gather(tasks: Sequence[asyncio.Task[object]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


async def uncancelled(work: Coroutine[object, object, T]) -> T:
    """Finish the work even if the waiting task is cancelled meanwhile; the cancellation is raised afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.done():
                break
            cancelled = error
        except BaseException:
            break  # raised by the work itself: `task.result()` raises it below
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # marks it as retrieved: the caller gets the cancellation instead
        raise cancelled
    return task.result()
