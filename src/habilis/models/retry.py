"""Ask again when a model cannot answer just now: exponential backoff with full jitter, `Retry-After` honoured."""

import asyncio
import logging
import random as random_numbers
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from habilis.core.errors import ModelError, ModelUnavailable
from habilis.models.around import AroundModel, says_something, streaming
from habilis.models.contract import NO_OPTIONS, Delta, Message, Model, Options, Reply

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RetryNotice:
    """A try failed, and another will follow."""

    attempt: int
    """Which try failed, from 1."""

    of: int
    """How many tries there are in all."""

    seconds: float
    """The wait before the next."""

    error: ModelError


_hearing: ContextVar[Callable[[RetryNotice], None] | None] = ContextVar('_hearing', default=None)


@contextmanager
def hearing_retries(listener: Callable[[RetryNotice], None]) -> Generator[None]:
    """Whoever asks a model inside this block is told when it is asked again, however deep the `RetryModel` is."""
    token = _hearing.set(listener)
    try:
        yield
    finally:
        _hearing.reset(token)


class RetryModel(AroundModel):
    """Asks the model inside again after an error that may pass (`ModelError.retryable`).

    The wait is random between 0 and `base` seconds, then twice, four, eight times as much, up to `cap`; at least what
    the provider asks for. A provider that asks for more than `longest_wait` seconds is not waited for. A stream is
    begun again only as long as nothing of it was passed on.
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
        """Called before each wait."""

        self._tries = 1 + max(0, retries)
        self._base = base
        self._cap = cap
        self._longest_wait = longest_wait
        self._sleep = sleep
        self._random = random

    async def request(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
        """One reply, after as many tries as it takes and as there are."""
        attempt = 1
        while True:
            try:
                return await self.inner.request(messages, options)
            except ModelError as error:
                await self._wait(attempt, error)
            attempt += 1

    async def stream(
        self, messages: Sequence[Message], options: Options = NO_OPTIONS
    ) -> AsyncGenerator[Delta | Reply, None]:
        """The reply bit by bit. A stream that breaks after its first bit raises `ModelUnavailable`."""
        attempt = 1
        shown = False
        while True:
            try:
                async with streaming(self.inner, messages, options) as items:
                    async for item in items:
                        shown = shown or says_something(item)
                        yield item
                return
            except ModelError as error:
                if shown:
                    raise _broken(error) from error
                await self._wait(attempt, error)
            attempt += 1

    async def _wait(self, attempt: int, error: ModelError) -> None:
        """Sleep before the next try, or raise because there is none."""
        if not error.retryable:
            raise error
        if attempt >= self._tries:
            raise error if attempt == 1 else _final(error, f'tried {attempt} times')
        asked = error.retry_after or 0.0
        if asked > self._longest_wait:
            reason = f'not tried again: it asks to wait {asked:,.0f} s, and {self._longest_wait:,.0f} s is the most'
            raise _final(error, reason)
        notice = RetryNotice(attempt=attempt, of=self._tries, seconds=self._seconds(attempt, asked), error=error)
        _log.info(
            '%s: try %d of %d failed (%s); next in %.1f s', self.name, attempt, self._tries, error, notice.seconds
        )
        for listener in (self.on_retry, _hearing.get()):
            if listener is not None:
                listener(notice)
        await self._sleep(notice.seconds)

    def _seconds(self, attempt: int, asked: float) -> float:
        ceiling = min(self._cap, self._base * 2.0 ** min(attempt - 1, 60))
        return max(self._random() * ceiling, asked)


def _final(error: ModelError, why: str) -> ModelError:
    """The same error, saying that it is not for want of trying."""
    final = type(error)(f'{error} ({why})', status=error.status, retry_after=error.retry_after)
    final.__cause__ = error
    return final


def _broken(error: ModelError) -> ModelError:
    """What a reader that has seen the begin of a reply is told. An error that will not pass is left as it is."""
    if not error.retryable:
        return error
    return ModelUnavailable(f'the reply broke off: {error}', status=error.status, retry_after=error.retry_after)
