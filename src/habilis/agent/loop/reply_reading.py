"""Reads a streamed reply, and stops the model once the reply is complete or only repeats itself."""

import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from habilis.agent.parsing.repetition import HOSTED_PATIENCE, RepetitionDetector
from habilis.core.errors import ModelUnavailable
from habilis.models.contract import Delta, Message, Model, Options, Reply
from habilis.models.counting import estimate_usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


async def read_reply(
    model: Model,
    messages: Sequence[Message],
    options: Options,
    *,
    is_complete: Callable[[str], bool] | None = None,
    on_delta: Callable[[Delta], None] | None = None,
) -> Reply:
    """The reply with its usage. The model is stopped at the end of a line if `is_complete(text so far)`."""
    started = time.perf_counter()
    reply = await _read(model, messages, options, is_complete, on_delta)
    usage = reply.usage
    if not usage.tokens and not reply.cached:  # the server does not report it, or was stopped early
        usage = estimate_usage(reply.model, messages, reply.text)
    if not usage.seconds:
        usage = replace(usage, seconds=time.perf_counter() - started)
    return reply if usage is reply.usage else replace(reply, usage=usage)


async def _read(
    model: Model,
    messages: Sequence[Message],
    options: Options,
    is_complete: Callable[[str], bool] | None,
    on_delta: Callable[[Delta], None] | None,
) -> Reply:
    text, thinking, arguments = '', '', ''
    patience = 1 if model.traits.local else HOSTED_PATIENCE
    repeated = [RepetitionDetector(patience) for _ in range(3)]
    async with aclosing(cast('AsyncGenerator[Delta | Reply]', model.stream(messages, options))) as stream:
        async for item in stream:
            if isinstance(item, Reply):
                return item
            text, thinking, arguments = text + item.text, thinking + item.thinking, arguments + item.arguments
            if on_delta is not None:
                on_delta(item)
            if is_complete is not None and '\n' in item.text and is_complete(text):
                return Reply(text=text, thinking=thinking, finish='early', model=model.name)
            written = (item.text, item.thinking, item.arguments)
            if any(detector.feed(new) for detector, new in zip(repeated, written, strict=True) if new):
                return Reply(text=text or arguments, thinking=thinking, finish='length', model=model.name)
    msg = f'{model.name} ended its reply without finishing it'
    raise ModelUnavailable(msg)
