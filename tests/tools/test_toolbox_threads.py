"""Calls of plain functions from threads, with gates that run on an event loop."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from habilis.core.errors import ToolArgumentsError, ToolCallError
from habilis.sandbox.host.functions import HostFunction
from habilis.tools import GateCall, Toolbox, tool
from tests.tools.boxes import function, on_a_thread


@tool
def double(x: int) -> int:
    """Twice as much."""
    return x * 2


async def wait(x: int = 0) -> int:
    await asyncio.sleep(0)
    return x


def failing(kind: int = 0) -> int:
    raise ValueError(kind)


def test_without_any_event_loop_calls_work_too() -> None:
    box = Toolbox([double, tool(name='slow', timeout=5)(double.function)], gates=[lambda call: None])
    assert [made.call(2) for made in box.functions()] == [4, 4]


def test_after_its_event_loop_is_closed_calls_work_too() -> None:
    box = Toolbox([double], gates=[lambda call: None])

    async def start() -> HostFunction:
        return box.functions()[0]

    made = asyncio.run(start())
    assert made.call(2) == 4


async def test_a_call_that_would_block_its_own_event_loop_is_refused() -> None:
    box = Toolbox([double], gates=[lambda call: None])
    with pytest.raises(ToolCallError, match='would block the event loop'):
        function(box, 'double').call(2)


async def test_calls_that_a_thread_waits_for_can_be_given_up() -> None:
    started = asyncio.Event()

    async def gate(call: GateCall) -> None:
        started.set()
        await asyncio.Event().wait()

    box = Toolbox([double], gates=[gate])
    call = function(box, 'double').call
    waiting = asyncio.create_task(on_a_thread(_outcome, call, 2))
    await started.wait()
    box.cancel()
    assert await waiting == 'CancelledError'


async def test_a_call_can_be_given_up_in_the_moment_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    given_up = threading.Event()
    start: Callable[..., Any] = asyncio.run_coroutine_threadsafe

    def start_and_be_slow(*args: Any) -> Any:
        """The event loop gets on with the call before the thread that made it does."""
        future = start(*args)
        given_up.wait(0.2)
        return future

    async def gate(call: GateCall) -> None:
        box.cancel()
        given_up.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio, 'run_coroutine_threadsafe', start_and_be_slow)
    box = Toolbox([double], gates=[gate])
    waiting = asyncio.create_task(on_a_thread(_outcome, function(box, 'double').call, 2))
    done, _ = await asyncio.wait([waiting], timeout=60)
    box.cancel()  # or a thread that was forgotten would keep the test from ending
    assert done
    assert await waiting == 'CancelledError'


def _outcome(call: Callable[..., object], *args: object) -> str:
    try:
        call(*args)
    except BaseException as error:
        return type(error).__name__
    return 'a result'


async def test_a_timeout_error_of_a_tool_comes_through_a_waiting_thread() -> None:
    box = Toolbox([failing], gates=[lambda call: None])
    call = function(box, 'failing').call
    with pytest.raises(ToolArgumentsError):
        await on_a_thread(call, 'TimeoutError')

    @tool
    def late() -> None:
        raise TimeoutError('mine')

    with pytest.raises(TimeoutError, match='mine'):
        await on_a_thread(function(Toolbox([late], gates=[lambda call: None]), 'late').call)


async def test_a_coroutine_can_be_offered_as_a_plain_function() -> None:
    made = function(Toolbox([tool(as_sync=True)(wait)]), 'wait')
    assert (made.is_async, made.signature) == (False, '(x: int = 0) -> int')
    assert await on_a_thread(made.call, 3) == 3
