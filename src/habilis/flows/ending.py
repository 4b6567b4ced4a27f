"""Leaving nothing behind: tasks that a flow has begun end before it does, and what must be written is written."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from habilis.journal import Scope

T = TypeVar('T')
_LOOK_AGAIN = 0.05


async def settle(scope: Scope, *, at_once: bool = False) -> None:
    """End what other tasks do in this scope: no new steps begin, those under way end, then the tasks are cancelled.

    With `at_once` the steps under way are not waited for.
    """
    journal, mine = scope.journal, asyncio.current_task()

    def others() -> list[asyncio.Task[Any]]:
        return [task for task in journal.tasks_in(scope.path) if task is not mine]

    if not others():
        return
    journal.halt(scope.path)
    try:
        while not at_once and journal.works_in(scope.path) and (left := others()):
            await asyncio.wait(left, timeout=_LOOK_AGAIN, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await end_tasks(others())


async def end_tasks(tasks: list[asyncio.Task[Any]]) -> None:
    """Cancel them, and wait until they have ended."""
    for task in tasks:
        task.cancel()
    if tasks:
        await undisturbed(_ended(tasks))


async def _ended(tasks: list[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


async def undisturbed(work: Coroutine[Any, Any, T]) -> T:
    """Do this to its end, even if somebody cancels the task that waits for it; then it is cancelled."""
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
            break  # of the work itself: its result tells
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # whoever is cancelled does not want to know
        raise cancelled
    return task.result()
