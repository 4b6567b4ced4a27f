"""Row A17: retry of model calls with backoff."""

import asyncio
import logging
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.core.errors import (
    ContextOverflow,
    ModelAccessDenied,
    ModelError,
    ModelNotFound,
    ModelRefused,
    ModelUnavailable,
    RateLimited,
)
from habilis.models.contract import Delta, Message, Model, Reply
from habilis.models.retry import RetryModel, RetryNotice
from habilis.models.scripted import Scripted, ScriptedModel
from tests.models.failing_model import FailingModel, read_into

ASK = (Message(role='user', text='hello'),)


class Clock:
    """Sleeps at once, and remembers for how long it should have."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(0)


def busy() -> RateLimited:
    return RateLimited('too many requests', status=429)


def down() -> ModelUnavailable:
    return ModelUnavailable('bad gateway', status=503)


def full() -> float:
    """The longest that the jitter can be."""
    return 1.0


async def test_two_busy_replies_then_success_are_one_answer_with_growing_waits() -> None:
    clock = Clock()
    inner = ScriptedModel([busy(), down(), 'at last'])
    reply = await RetryModel(inner, sleep=clock.sleep, random=full).request(ASK)
    assert reply.text == 'at last'
    assert clock.waits == [0.5, 1.0]
    assert len(inner.requests) == 3


async def test_the_last_error_says_how_often_it_was_tried() -> None:
    clock = Clock()
    inner = ScriptedModel([down() for _ in range(9)])
    with pytest.raises(ModelUnavailable, match=r'bad gateway \(gave up after 5 attempts\)') as caught:
        await RetryModel(inner, sleep=clock.sleep, random=full).request(ASK)
    assert caught.value.status == 503
    assert clock.waits == [0.5, 1.0, 2.0, 4.0]


async def test_the_kind_of_the_error_is_kept() -> None:
    inner = ScriptedModel([RateLimited('slow', status=429, retry_after=7.0) for _ in range(2)])
    with pytest.raises(RateLimited, match='slow') as caught:
        await RetryModel(inner, retries=1, sleep=Clock().sleep).request(ASK)
    assert (caught.value.status, caught.value.retry_after) == (429, 7.0)


async def test_no_wait_is_longer_than_the_cap_however_many_tries_there_are() -> None:
    clock = Clock()
    inner = ScriptedModel([down() for _ in range(2000)])
    with pytest.raises(ModelUnavailable, match='gave up after 2000 attempts'):
        await RetryModel(inner, retries=1999, cap=8.0, sleep=clock.sleep, random=full).request(ASK)
    assert max(clock.waits) == 8.0
    assert all(before <= after for before, after in pairwise(clock.waits))


@given(st.floats(0, 1, exclude_max=True), st.integers(1, 8))
async def test_the_jitter_is_the_whole_wait(chance: float, failures: int) -> None:
    clock = Clock()
    inner = ScriptedModel([*(down() for _ in range(failures)), 'ok'])
    await RetryModel(inner, retries=8, base=1.0, cap=16.0, sleep=clock.sleep, random=lambda: chance).request(ASK)
    assert clock.waits == [chance * min(16.0, 2.0**number) for number in range(failures)]


async def test_the_wait_that_the_provider_asks_for_is_honoured() -> None:
    clock = Clock()
    inner = ScriptedModel([RateLimited('slow', retry_after=11.0), RateLimited('slow', retry_after=0.1), 'ok'])
    await RetryModel(inner, base=4.0, sleep=clock.sleep, random=full).request(ASK)
    assert clock.waits == [11.0, 8.0]


@pytest.mark.parametrize('odd', [-5.0, float('nan')])
async def test_a_wait_that_makes_no_sense_is_not_taken(odd: float) -> None:
    clock = Clock()
    inner = ScriptedModel([RateLimited('slow', retry_after=odd), 'ok'])
    await RetryModel(inner, sleep=clock.sleep, random=full).request(ASK)
    assert clock.waits == [0.5]


@pytest.mark.parametrize('asked', [121.0, 3600.0, float('inf')])
async def test_a_provider_that_asks_for_too_long_is_not_waited_for(asked: float) -> None:
    clock = Clock()
    inner = ScriptedModel([RateLimited('quota used up', retry_after=asked), 'too late'])
    with pytest.raises(RateLimited, match=r'quota used up \(not retried: Retry-After is .* s, the limit is 120 s'):
        await RetryModel(inner, sleep=clock.sleep).request(ASK)
    assert clock.waits == []


@pytest.mark.parametrize('kind', [ModelAccessDenied, ModelNotFound, ModelRefused, ContextOverflow, ModelError])
async def test_an_error_that_will_not_pass_is_raised_at_once(kind: type[ModelError]) -> None:
    error = kind('no')
    inner = ScriptedModel([error, 'never'])
    with pytest.raises(kind) as caught:
        await RetryModel(inner, sleep=Clock().sleep).request(ASK)
    assert caught.value is error
    assert len(inner.requests) == 1


async def test_an_error_that_is_not_of_the_model_is_not_retried() -> None:
    replies: list[Scripted] = [KeyError('a bug'), 'never']
    with pytest.raises(KeyError):
        await RetryModel(ScriptedModel(replies), sleep=Clock().sleep).request(ASK)


@pytest.mark.parametrize('retries', [0, -3])
async def test_without_retries_the_error_is_left_as_it_is(retries: int) -> None:
    error = down()
    with pytest.raises(ModelUnavailable) as caught:
        await RetryModel(ScriptedModel([error]), retries=retries, sleep=Clock().sleep).request(ASK)
    assert caught.value is error


async def test_each_retry_is_reported_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    notices: list[RetryNotice] = []
    error = busy()
    model = RetryModel(ScriptedModel([error, 'ok']), on_retry=notices.append, sleep=Clock().sleep, random=full)
    with caplog.at_level(logging.INFO, 'habilis'):
        await model.request(ASK)
    assert notices == [RetryNotice(attempt=1, max_attempts=5, seconds=0.5, error=error)]
    assert 'attempt 1 of 5 failed (too many requests)' in caplog.text


async def test_a_cancelled_wait_ends_at_once_and_asks_no_more() -> None:
    waiting = asyncio.Event()

    async def sleep_for_ever(_: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    inner = ScriptedModel([busy(), 'never'])
    task = asyncio.create_task(RetryModel(inner, sleep=sleep_for_ever).request(ASK))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(inner.requests) == 1


async def test_a_stream_that_has_not_begun_is_retried() -> None:
    clock = Clock()
    inner = ScriptedModel([busy(), down(), 'at last'])
    items = [item async for item in RetryModel(inner, sleep=clock.sleep, random=full).stream(ASK)]
    assert ''.join(item.text for item in items if isinstance(item, Delta)) == 'at last'
    assert isinstance(items[-1], Reply)
    assert clock.waits == [0.5, 1.0]


async def test_a_stream_that_broke_after_its_first_words_is_not_begun_again() -> None:
    inner = FailingModel([Delta(text='Once upon')], busy())
    seen: list[Delta | Reply] = []
    with pytest.raises(ModelUnavailable, match='the reply was interrupted: too many requests') as caught:
        await read_into(seen, RetryModel(inner, sleep=Clock().sleep).stream(ASK))
    assert seen == [Delta(text='Once upon')]
    assert type(caught.value) is ModelUnavailable
    assert caught.value.status == 429
    assert inner.begun == 1


async def test_a_stream_that_broke_for_good_keeps_its_error() -> None:
    error = ContextOverflow('too long')
    with pytest.raises(ContextOverflow) as caught:
        async for _ in RetryModel(FailingModel([Delta(text='Once')], error), sleep=Clock().sleep).stream(ASK):
            pass
    assert caught.value is error


async def test_an_empty_bit_does_not_count_as_begun() -> None:
    inner = FailingModel([Delta()], down())
    with pytest.raises(ModelUnavailable, match='gave up after 3 attempts'):
        async for _ in RetryModel(inner, retries=2, sleep=Clock().sleep).stream(ASK):
            pass
    assert (inner.begun, inner.ended) == (3, 3)


async def test_a_reader_that_leaves_closes_the_stream_inside() -> None:
    inner = FailingModel([Delta(text='a'), Delta(text='b')], down())
    stream = RetryModel(inner, sleep=Clock().sleep).stream(ASK)
    await anext(stream)
    await stream.aclose()
    assert (inner.begun, inner.ended) == (1, 1)


async def test_it_is_the_model_inside_in_all_else() -> None:
    inner = FailingModel([], ModelError('cannot close'), name='test:inner')
    model = RetryModel(inner)
    assert isinstance(model, Model)
    assert (model.name, model.traits) == ('test:inner', inner.traits)
    with pytest.raises(ModelError, match='cannot close'):
        await model.close()
    assert inner.closed == 1
