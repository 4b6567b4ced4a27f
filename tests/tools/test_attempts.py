"""Calls of host functions, with timeouts and retries: what tools and steps of flows share."""

import asyncio
import functools
import threading
from collections.abc import Awaitable, Callable

import pytest

from habilis.sandbox.host.functions import is_async
from habilis.tools.attempts import call, on_thread, with_attempts
from tests.cases import each_case


async def coroutine(number: int = 1) -> int:
    return number


class AsyncCallable:
    async def __call__(self, number: int = 1) -> int:
        return number


@pytest.mark.parametrize(
    'function',
    [
        coroutine,
        AsyncCallable(),
        functools.partial(coroutine, 2),
        functools.partial(functools.partial(AsyncCallable())),
    ],
    ids=['function', 'object', 'partial', 'partial of an object'],
)
def test_what_returns_a_coroutine_is_async(function: object) -> None:
    assert is_async(function)


@each_case('function', [len, AsyncCallable, lambda: coroutine(2), functools.partial(len), 1])
def test_everything_else_is_not_async(function: object) -> None:
    assert not is_async(function)


async def test_async_functions_run_on_the_event_loop_and_others_on_a_thread() -> None:
    async def here() -> int:
        return threading.get_ident()

    assert await call(here) == threading.get_ident()
    assert await call(threading.get_ident) != threading.get_ident()
    assert await call(functools.partial(AsyncCallable(), 3)) == 3


async def test_an_awaitable_that_a_plain_function_returns_is_awaited() -> None:
    assert await call(lambda: coroutine(4)) == 4


async def test_plain_functions_run_where_the_caller_says() -> None:
    ran: list[str] = []

    async def thread(work: Callable[[], object]) -> object:
        ran.append('thread')
        return work()

    assert await call(lambda: 5, thread=thread) == 5
    assert await call(functools.partial(coroutine, 6), thread=thread) == 6
    assert ran == ['thread']


async def test_a_stop_iteration_on_a_thread_is_an_error() -> None:
    with pytest.raises(RuntimeError, match='StopIteration'):
        await on_thread(lambda: next(iter(())))


class TooSlow(Exception):
    pass


async def test_work_that_takes_too_long_raises_the_given_error() -> None:
    with pytest.raises(TooSlow):
        await with_attempts(lambda: asyncio.sleep(10), timeout=0.01, timed_out=TooSlow)
    assert await with_attempts(coroutine, timeout=10, timed_out=TooSlow) == 1
    assert await with_attempts(coroutine, timeout=None, timed_out=TooSlow) == 1


async def test_a_timeout_error_of_the_work_itself_is_not_replaced() -> None:
    async def work() -> None:
        raise TimeoutError('of the work')

    with pytest.raises(TimeoutError, match='of the work'):
        await with_attempts(work, timeout=10, timed_out=TooSlow)


async def test_an_attempt_that_takes_too_long_is_repeated() -> None:
    seconds = [10.0, 0.0]
    failures: list[str] = []

    async def note(number: int, error: Exception) -> None:
        failures.append(type(error).__name__)

    attempt = lambda: asyncio.sleep(seconds.pop(0), 'done')  # noqa: E731
    work = with_attempts(attempt, timeout=0.05, timed_out=TooSlow, retries=1, delay=0, before_retry=note)
    assert (await work, failures) == ('done', ['TooSlow'])


def failing(times: int, error: Exception) -> Callable[[], Awaitable[str]]:
    left = [error] * times

    async def attempt() -> str:
        if left:
            raise left.pop()
        return 'done'

    return attempt


async def test_attempts_are_repeated_until_one_succeeds() -> None:
    failures: list[tuple[int, str]] = []

    async def note(number: int, error: Exception) -> None:
        failures.append((number, str(error)))

    attempt = failing(2, ValueError('no'))
    assert await with_attempts(attempt, retries=3, delay=0, before_retry=note) == 'done'
    assert failures == [(1, 'no'), (2, 'no')]


async def test_the_last_error_is_raised_and_fatal_ones_at_once() -> None:
    failures: list[int] = []

    async def note(number: int, error: Exception) -> None:
        failures.append(number)

    with pytest.raises(ValueError, match='no'):
        await with_attempts(failing(9, ValueError('no')), retries=2, delay=0, before_retry=note)
    assert failures == [1, 2]
    with pytest.raises(KeyError):
        await with_attempts(failing(9, KeyError()), retries=2, delay=0, before_retry=note, fatal=(KeyError,))
    assert failures == [1, 2]


async def test_the_delay_doubles_up_to_its_maximum(monkeypatch: pytest.MonkeyPatch) -> None:
    delays: list[float] = []

    async def sleep(seconds: float) -> None:
        delays.append(seconds)

    async def ignore(number: int, error: Exception) -> None: ...

    monkeypatch.setattr(asyncio, 'sleep', sleep)
    attempt = failing(4, ValueError())
    await with_attempts(attempt, retries=4, delay=1, max_delay=3, before_retry=ignore)
    assert delays == [1, 2, 3, 3]
