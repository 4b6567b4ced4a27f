"""Retry after transient errors: exponential backoff with full jitter, honouring `Retry-After`."""

import asyncio
import logging
import random as random_numbers
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from habilis.core.errors import ModelError, ModelUnavailable
from habilis.models.contract import NO_OPTIONS, Delta, Message, Model, Options, Reply
from habilis.models.wrapper import WrapperModel, has_content, streaming

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RetryNotice:
    """An attempt failed and will be repeated."""

    attempt: int
    """Number of the failed attempt, from 1."""

    max_attempts: int
    """Maximum number of attempts."""

    seconds: float
    """Delay before the next attempt."""

    error: ModelError


_retry_listener: ContextVar[Callable[[RetryNotice], None] | None] = ContextVar('_retry_listener', default=None)


@contextmanager
def listen_for_retries(listener: Callable[[RetryNotice], None]) -> Generator[None]:
    """Call `listener` for each retry of a request made in this block, however deep the `RetryModel` is wrapped."""
    token = _retry_listener.set(listener)
    try:
        yield
    finally:
        _retry_listener.reset(token)


class Backoff:
    """The delays between the attempts of one request.

    A delay is random between 0 and `base` seconds, doubled at each attempt up to `cap`, and at least the `Retry-After`
    of the provider. A `Retry-After` above `longest_wait` seconds is an error.
    """

    def __init__(
        self,
        name: str,
        *,
        retries: int = 4,
        base: float = 0.5,
        cap: float = 30.0,
        longest_wait: float = 120.0,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        random: Callable[[], float] = random_numbers.random,
    ) -> None:
        self._name = name
        self._max_attempts = 1 + max(0, retries)
        self._base = base
        self._cap = cap
        self._longest_wait = longest_wait
        self._sleep = sleep
        self._random = random

    async def wait(
        self, attempt: int, error: ModelError, on_retry: Callable[[RetryNotice], None] | None = None
    ) -> None:
        """Sleep before the next attempt, or raise the error if there is none."""
        if not error.retryable:
            raise error
        if attempt >= self._max_attempts:
            raise error if attempt == 1 else _final(error, f'gave up after {attempt} attempts')
        retry_after = error.retry_after or 0.0
        if retry_after > self._longest_wait:
            reason = f'not retried: Retry-After is {retry_after:,.0f} s, the limit is {self._longest_wait:,.0f} s'
            raise _final(error, reason)
        notice = RetryNotice(
            attempt=attempt, max_attempts=self._max_attempts, seconds=self._seconds(attempt, retry_after), error=error
        )
        _log.info(
            '%s: attempt %d of %d failed (%s); retrying in %.1f s',
            self._name,
            attempt,
            self._max_attempts,
            error,
            notice.seconds,
        )
        for listener in (on_retry, _retry_listener.get()):
            if listener is not None:
                listener(notice)
        await self._sleep(notice.seconds)

    def _seconds(self, attempt: int, retry_after: float) -> float:
        ceiling = min(self._cap, self._base * 2.0 ** min(attempt - 1, 60))
        return max(self._random() * ceiling, retry_after)


class RetryModel(WrapperModel):
    """Retries a request of the inner model after a transient error (`ModelError.retryable`).

    The delays are those of `Backoff`. A stream is restarted only before its first content.
    """

    def __init__(
        self,
        model: Model,
        *,
        retries: int = 4,
        base: float = 0.5,
        cap: float = 30.0,
        longest_wait: float = 120.0,
        on_retry: Callable[[RetryNotice], None] | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        random: Callable[[], float] = random_numbers.random,
    ) -> None:
        super().__init__(model)
        self.on_retry = on_retry
        """Called before each delay."""

        self._backoff = Backoff(
            self.name, retries=retries, base=base, cap=cap, longest_wait=longest_wait, sleep=sleep, random=random
        )

    async def request(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
        """Return the reply of the first successful attempt."""
        attempt = 1
        while True:
            try:
                return await self.inner.request(messages, options)
            except ModelError as error:
                await self._backoff.wait(attempt, error, self.on_retry)
            attempt += 1

    async def stream(
        self, messages: Sequence[Message], options: Options = NO_OPTIONS
    ) -> AsyncGenerator[Delta | Reply, None]:
        """Stream the reply. A stream that fails after its first content raises `ModelUnavailable`."""
        attempt = 1
        shown = False
        while True:
            try:
                async with streaming(self.inner, messages, options) as items:
                    async for item in items:
                        shown = shown or has_content(item)
                        yield item
                return
            except ModelError as error:
                if shown:
                    raise _interrupted(error) from error
                await self._backoff.wait(attempt, error, self.on_retry)
            attempt += 1


def _final(error: ModelError, why: str) -> ModelError:
    """The error with the reason why it is not retried."""
    final = type(error)(f'{error} ({why})', status=error.status, retry_after=error.retry_after)
    final.__cause__ = error
    return final


def _interrupted(error: ModelError) -> ModelError:
    """The error of a stream that failed after its first content."""
    if not error.retryable:
        return error
    return ModelUnavailable(f'the reply was interrupted: {error}', status=error.status, retry_after=error.retry_after)
