"""Asks the model: streamed, counted, and with a conversation that fits its context."""

import contextlib
import functools
import time
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from habilis.agent.context.compaction import KEPT_STEPS, is_too_long, room_for
from habilis.agent.context.conversation import Conversation
from habilis.agent.durable.recorder import Recorder
from habilis.agent.events import (
    CompactedEvent,
    ModelProgress,
    ModelReplied,
    ModelRequested,
    RetryEvent,
    TextEvent,
    ThinkingEvent,
)
from habilis.agent.hooks.dispatch import Dispatcher
from habilis.agent.parsing.repetition import HOSTED_PATIENCE, RepetitionDetector
from habilis.agent.parsing.replies import code_is_complete
from habilis.core.errors import ContextOverflow, ModelUnavailable
from habilis.models.contract import Delta, Message, Model, Options, Reply, Usage
from habilis.models.prices import cost_of
from habilis.models.retry import RetryNotice, listen_for_retries
from habilis.models.tokens import count_message_tokens, count_tokens
from habilis.models.usage import Ledger

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

REPLY_TOKENS = 1024
"""Part of the context that is kept free for the reply."""

EARLIER_SHARE = 0.25
"""Share of the room for messages that a digest of what was said before this run may take: the chat can then grow for a
while before it is compacted again, which costs the cached prompt."""


class ModelTurn:
    """Asks one model on behalf of one run."""

    def __init__(
        self,
        model: Model,
        conversation: Conversation,
        events: Dispatcher,
        ledgers: Sequence[Ledger],
        recorder: Recorder | None = None,
    ) -> None:
        self._model = model
        self._conversation = conversation
        self._events = events
        self._ledgers = ledgers
        self._recorder = recorder
        self._is_replayed = False
        """Whether the last reply came from the record."""

    async def ask(self, options: Options, *, system: str | None = None, extra: str = '', code: bool = True) -> Reply:
        """One reply. `code`: it is expected to hold code, and may be ended where the code ends."""
        outgoing = functools.partial(self._conversation.outgoing, system=system, extra=extra)
        context, reply = self._model.traits.context_tokens, options.max_tokens or REPLY_TOKENS
        share = max(0.0, room_for(context, reply)) * EARLIER_SHARE
        messages = outgoing()
        for earlier_tokens in (None, share):
            if is_too_long(messages, context, reply) and self._compact(earlier_tokens=earlier_tokens):
                messages = outgoing()
        try:
            return await self._request(messages, options, code)
        except ContextOverflow:
            for earlier_tokens in (None, share):
                if self._compact(keep=1, earlier_tokens=earlier_tokens):
                    with contextlib.suppress(ContextOverflow):
                        return await self._request(outgoing(), options, code)
            raise

    def _compact(self, *, keep: int = KEPT_STEPS, earlier_tokens: float | None = None) -> bool:
        is_shorter = self._conversation.compact(keep, earlier_tokens)
        if is_shorter:
            self._events.emit(CompactedEvent(message='earlier steps were shortened to make room'))
        return is_shorter

    async def _request(self, messages: tuple[Message, ...], options: Options, code: bool) -> Reply:
        live = functools.partial(self._request_live, messages, options, code)
        self._is_replayed = True
        reply = await live() if self._recorder is None else await self._recorder.ask(live)
        name = self._ledgers[0].name
        for ledger in self._ledgers:
            ledger.record(reply.model or self._model.name, reply.usage, agent=name, earlier=self._is_replayed)
        self._events.emit(ModelReplied(reply=reply))
        return reply

    async def _request_live(self, messages: tuple[Message, ...], options: Options, code: bool) -> Reply:
        self._is_replayed = False
        self._events.go_live()
        messages = self._events.outgoing(messages)
        if not self._model.traits.images:  # those of earlier turns, with another model; code can open them
            messages = tuple(replace(message, images=()) if message.images else message for message in messages)
        self._events.emit(ModelRequested(model=self._model, messages=messages))
        # A model on this machine is stopped as soon as its code is there: each further token would cost time.
        stop_early = code and self._model.traits.local and not options.functions
        started = time.perf_counter()
        with listen_for_retries(self._emit_retry):
            reply = await self._read(messages, options, stop_early)
        return replace(reply, usage=_complete_usage(reply, messages, time.perf_counter() - started))

    async def _read(self, messages: Sequence[Message], options: Options, stop_early: bool) -> Reply:
        text, thinking, arguments = '', '', ''
        patience = 1 if self._model.traits.local else HOSTED_PATIENCE
        repeated = [RepetitionDetector(patience) for _ in range(3)]
        async with aclosing(cast('AsyncGenerator[Delta | Reply]', self._model.stream(messages, options))) as stream:
            async for item in stream:
                if isinstance(item, Reply):
                    return item
                text, thinking, arguments = text + item.text, thinking + item.thinking, arguments + item.arguments
                self._emit_delta(item)
                if stop_early and '\n' in item.text and code_is_complete(text):
                    return Reply(text=text, thinking=thinking, model=self._model.name)
                written = (item.text, item.thinking, item.arguments)
                if any(detector.feed(new) for detector, new in zip(repeated, written, strict=True) if new):
                    return Reply(text=text or arguments, thinking=thinking, finish='length', model=self._model.name)
        msg = f'{self._model.name} ended its reply without finishing it'
        raise ModelUnavailable(msg)

    def _emit_delta(self, delta: Delta) -> None:
        if not self._events.has_hooks:
            return
        if delta.progress is not None:
            self._events.emit(ModelProgress(progress=delta.progress))
        if delta.text or delta.arguments:
            self._events.emit(TextEvent(delta=delta))
        if delta.thinking:
            self._events.emit(ThinkingEvent(delta=delta))

    def _emit_retry(self, notice: RetryNotice) -> None:
        self._events.emit(RetryEvent(notice=notice))


def _complete_usage(reply: Reply, messages: Sequence[Message], seconds: float) -> Usage:
    """The usage of a reply; counted here where the server does not report it, or was stopped early."""
    usage = reply.usage
    if not usage.tokens and not reply.cached:
        usage = replace(
            usage, requests=1, input_tokens=count_message_tokens(messages), output_tokens=count_tokens(reply.text)
        )
        usage = replace(usage, cost=cost_of(reply.model, usage.input_tokens, usage.output_tokens, 0))
    return usage if usage.seconds else replace(usage, seconds=seconds)
