"""Tools as functions of a sandbox: a call runs on the thread of the sandbox, or on the event loop of the run."""

import asyncio
import functools
import threading
from collections.abc import Coroutine
from concurrent.futures import Future

from habilis.core.errors import ToolCallError
from habilis.sandbox.host.functions import HostFunction
from habilis.tools.calls import CallableTool, Calls, validate_now

LOOP_CHECK_SECONDS = 1.0
"""How often a waiting thread checks that the event loop it waits for is still open."""


class HostCalls:
    """Makes the functions that a sandbox calls. Its calls may come from several threads."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._waiting: set[Future[object]] = set()
        self._lock = threading.Lock()

    def function(self, tool: CallableTool) -> HostFunction:
        """The tool as a function for a sandbox."""

        def call(*args: object, **kwargs: object) -> Coroutine[object, object, object]:
            bind = validate_now(functools.partial(tool.validate, args, kwargs))
            return self._calls.make(tool, bind, tool.labelled(args, kwargs))

        def call_and_wait(*args: object, **kwargs: object) -> object:
            here = self._calls.never_waits(tool)
            bind = validate_now(functools.partial(tool.validate, args, kwargs))
            made = self._calls.make(tool, bind, tool.labelled(args, kwargs), here=here)
            return _run_at_once(made) if here else self._wait(made)

        return HostFunction(
            name=tool.name,
            call=call if tool.is_async else call_and_wait,
            is_async=tool.is_async,
            parameters=tool.positional,
            signature=tool.signature,
            doc=tool.description or None,
            uses_guest=tool.uses_guest,
        )

    def cancel(self) -> None:
        """Cancel the calls that threads of sandboxes wait for: the code gets an error, and the thread is free."""
        with self._lock:
            waiting = list(self._waiting)
        for future in waiting:
            future.cancel()

    def _wait(self, made: Coroutine[object, object, object]) -> object:
        """Run a call on the event loop, and wait for it on the thread of a sandbox."""
        if asyncio._get_running_loop() is not None:  # pyright: ignore[reportPrivateUsage]
            made.close()
            msg = 'this call would block the event loop: use `await toolbox.call(…)` there'
            raise ToolCallError(msg)
        loop = self._calls.emit.loop
        if loop is None or loop.is_closed():
            return asyncio.run(made)
        with self._lock:  # held over both, or `cancel` could come between them and miss this call
            future = asyncio.run_coroutine_threadsafe(made, loop)
            self._waiting.add(future)
        try:
            while True:
                try:
                    return future.result(timeout=LOOP_CHECK_SECONDS)
                except TimeoutError:
                    if future.done():  # the tool raised it, or ended at this very moment
                        return future.result()
                    if loop.is_closed():
                        future.cancel()
                        msg = 'the run ended while the tool was working'
                        raise ToolCallError(msg) from None
        finally:
            with self._lock:
                self._waiting.discard(future)


def _run_at_once(made: Coroutine[object, object, object]) -> object:
    """The result of a coroutine that never waits."""
    try:
        made.send(None)
    except StopIteration as end:
        return end.value
    made.close()
    msg = 'a call that never waits has waited'
    raise RuntimeError(msg)
