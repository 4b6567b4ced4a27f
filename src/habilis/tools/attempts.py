"""Calling a function of the host: on a thread or on the event loop, within its time, again if it failed."""

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import cast

from habilis.core.errors import ToolCallError, ToolDenied, ToolTimeout
from habilis.sandbox.workers import WORKERS
from habilis.tools.contract import NeedsAnswer
from habilis.tools.logs import log

FIRST_WAIT = 0.1
"""Seconds before the second attempt; doubled before each further one."""

LONGEST_WAIT = 2.0


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One call that may be made several times."""

    name: str
    call: Callable[[], object]
    waits: bool
    """It returns a coroutine."""

    here: bool
    """A plain function runs on the caller's thread."""

    timeout: float | None
    finish: Callable[[object], object]
    """Checks the result."""

    async def make(self) -> object:
        """Call once. Raises `ToolTimeout` when the time is over; a plain function then goes on, unheard."""
        if self.timeout is None:
            return self.finish(await self._result())
        limit = asyncio.timeout(self.timeout)
        try:
            async with limit:
                return self.finish(await self._result())
        except TimeoutError:
            if not limit.expired():
                raise
            msg = f'{self.name} took longer than {self.timeout:g} s'
            raise ToolTimeout(msg) from None

    async def _result(self) -> object:
        try:
            if self.waits:
                return await cast('Awaitable[object]', self.call())
            result = _guarded(self.call) if self.here else await on_thread(self.call)
        except SystemExit as error:  # it would end the program of whoever uses the tool
            msg = f'{self.name} tried to end the program (exit code {error.code})'
            raise ToolCallError(msg) from None
        if inspect.iscoroutine(result):
            result.close()
            msg = f'{self.name} returned a coroutine, which nobody awaits: make it an `async def`'
            raise ToolCallError(msg)
        return result


async def repeated(attempt: Attempt, retries: int) -> object:
    """Make the attempt until it succeeds, or `retries` more have failed."""
    wait = FIRST_WAIT
    for count in range(1, retries + 1):
        try:
            return await attempt.make()
        except (NeedsAnswer, ToolDenied):
            raise
        except Exception as error:
            log(f'attempt {count} failed: {type(error).__name__}: {error}; trying again')
        await asyncio.sleep(wait)
        wait = min(LONGEST_WAIT, wait * 2)
    return await attempt.make()


async def on_thread(call: Callable[[], object]) -> object:
    """Run something that may block, with the context variables of here."""
    context = contextvars.copy_context()
    return await WORKERS.submit(lambda: context.run(_guarded, call))


def _guarded(call: Callable[[], object]) -> object:
    """A future cannot carry a `StopIteration`: whoever awaits it would wait for ever."""
    try:
        return call()
    except StopIteration as error:
        msg = 'a StopIteration came out of it'
        raise RuntimeError(msg) from error
