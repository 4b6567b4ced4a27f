"""Work that a running tool has done by the guest that called it, such as a shell command.

The guest waits for the reply to its call. Instead of the result it may get work to do, sends back the outcome, and
waits again. Such a tool is called like any other, through gates and journal; its work is done where the code runs.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue

from habilis.core.codec import Json
from habilis.core.errors import SandboxError

current_port: 'contextvars.ContextVar[GuestPort | None]' = contextvars.ContextVar('habilis_guest_port', default=None)
"""Set while a tool runs whose caller can do work for it."""


@dataclass(frozen=True)
class Work:
    """Work for the guest."""

    request: Json
    loop: asyncio.AbstractEventLoop
    result: 'asyncio.Future[Json]'


class GuestPort:
    """Between a running tool and the thread of the guest, which waits for the result of the tool."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        self._given: Work | None = None
        self.is_done = False
        """Whether the tool has ended."""

    async def run(self, request: Json) -> Json:
        """Have the guest do this. Called by the tool. Raises `SandboxError` if the guest ends meanwhile."""
        loop = asyncio.get_running_loop()
        work = Work(request, loop, loop.create_future())
        self._queue.put(work)
        return await work.result

    def entered(self, context: contextvars.Context) -> contextvars.Context:
        """A copy of the context in which the tool finds this port."""
        context = context.copy()
        context.run(current_port.set, self)
        return context

    def start(self, tool: Callable[[], None]) -> None:
        """Run the tool on a thread of its own."""

        def run() -> None:
            try:
                tool()
            finally:
                self.is_done = True
                self._queue.put(None)

        threading.Thread(target=run, name='habilis-tool', daemon=True).start()

    def wake(self) -> None:
        """Let `next` return."""
        self._queue.put(None)

    def next(self) -> Json | None:
        """Wait for work. None if the tool has ended, or somebody called `wake`."""
        self._given = self._queue.get()
        return None if self._given is None else self._given.request

    def give(self, result: Json) -> None:
        """Give the tool the result of its work."""
        self._settle(lambda future: future.set_result(result))

    def close(self) -> None:
        """The guest has ended: it does no work any more."""
        self._settle(lambda future: future.set_exception(SandboxError('the sandbox ended during the command')))

    def _settle(self, settle: 'Callable[[asyncio.Future[Json]], None]') -> None:
        work, self._given = self._given, None
        if work is not None and not work.loop.is_closed():
            work.loop.call_soon_threadsafe(lambda: None if work.result.done() else settle(work.result))
