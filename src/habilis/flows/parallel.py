"""`parallel`: call a step or function for many items at the same time."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Generic, TypeVar, cast, overload

from habilis.flows.contract import FlowError
from habilis.flows.tasks import cancel_tasks, stop_tasks
from habilis.journal import Paused, Scope, fingerprint, recording_scope
from habilis.journal.failures import add_path, failed_paths

_POLL_SECONDS = 0.05

T = TypeVar('T')
R = TypeVar('R')


@overload
async def parallel(
    function: Callable[[T], Awaitable[R]], items: Iterable[T], *, limit: int | None = None
) -> list[R]: ...
@overload
async def parallel(function: Callable[[T], R], items: Iterable[T], *, limit: int | None = None) -> list[R]: ...
async def parallel(
    function: Callable[[T], Awaitable[R] | R], items: Iterable[T], *, limit: int | None = None
) -> list[R]:
    """Call a step, a flow or any function with each item; the results are in the order of the items.

    When one fails, no more are started, running steps finish, and the error is raised. When one waits for a person, no
    more steps are started, but the others may still ask their questions.

    Args:
        function: called with one item.
        items: the items; an iterator is read to its end before the first call.
        limit: maximum number of items at a time; None for all at once.
    """
    if limit is not None and not (isinstance(cast('object', limit), int) and limit > 0):
        msg = f'limit={limit!r}: give a whole number, 1 or more, or None'
        raise FlowError(msg)
    all_items = list(items)
    scope = recording_scope()
    if scope is None:
        return await _Branches(function, all_items, None).run(limit)
    name = str(getattr(function, '__name__', type(function).__name__))
    key = fingerprint(name, len(all_items))
    async with scope.group('parallel', key=key, opening={'step': name, 'items': len(all_items)}) as group:
        return await _Branches(function, all_items, group).run(limit)


class _Branches(Generic[T, R]):
    """The branches of one call of `parallel`."""

    def __init__(self, function: Callable[[T], Awaitable[R] | R], items: list[T], scope: Scope | None) -> None:
        self._function = function
        self._scope = scope
        self._count = len(items)
        self._left: Iterator[tuple[int, T]] = iter(enumerate(items))
        self._results: dict[int, R] = {}
        self._errors: list[Exception | Paused] = []

    async def run(self, limit: int | None) -> list[R]:
        """The results, or the first error."""
        workers = min(limit or self._count, self._count)
        tasks = [asyncio.create_task(self._work()) for _ in range(workers)]
        try:
            await self._until_ended(tasks)
            if self._errors and self._scope is not None:
                await stop_tasks(self._scope)
        finally:
            await cancel_tasks([task for task in tasks if not task.done()])
        for task in tasks:
            if not task.cancelled() and not isinstance(task.exception(), (Exception, Paused, type(None))):
                task.result()  # not a failure of a step: KeyboardInterrupt, SystemExit
        if self._errors:
            raise self._first_error()
        return [self._results[index] for index in range(self._count)]

    async def _until_ended(self, tasks: 'list[asyncio.Task[None]]') -> None:
        """Wait until all have ended or one has failed; if one waits for a person, until the others cannot continue."""
        left, seen = set(tasks), 0
        while left:
            timeout = _POLL_SECONDS if self._errors else None
            ended, left = await asyncio.wait(left, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if any(task.cancelled() or task.exception() is not None for task in ended):
                return
            if self._errors and not ended and not self._has_running_steps and len(self._errors) == seen:
                return
            seen = len(self._errors)

    @property
    def _has_running_steps(self) -> bool:
        return self._scope is not None and self._scope.journal.has_running_steps(self._scope.path)

    async def _work(self) -> None:
        for index, item in self._left:
            if any(isinstance(error, Exception) for error in self._errors):
                return
            try:
                self._results[index] = await self._one(index, item)
            except Exception as error:
                self._errors.append(error)
                raise
            except Paused as pause:
                self._errors.append(pause)
                if self._scope is not None:  # no new steps, but questions may still be asked
                    self._scope.journal.halt(self._scope.path)

    async def _one(self, index: int, item: T) -> R:
        if self._scope is None:
            return await self._call(item)
        branch = self._scope.branch(index + 1)
        with branch.entered():
            value = await self._call(item)
            await branch.finish()
        return value

    async def _call(self, item: T) -> R:
        value = self._function(item)
        return await cast('Awaitable[R]', value) if inspect.isawaitable(value) else cast('R', value)

    def _first_error(self) -> Exception | Paused:
        """The first failure, with the paths of the others added; a pause only if there is no failure."""
        failures = [error for error in self._errors if isinstance(error, Exception)]
        if not failures:
            return self._errors[0]
        for other in failures[1:]:
            for path in failed_paths(other):
                add_path(failures[0], path)
        return failures[0]
