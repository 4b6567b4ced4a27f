"""Asks the model: streamed, counted, and with a conversation that fits its context."""

import contextlib
import functools
from collections.abc import Sequence
from dataclasses import replace

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
from habilis.agent.loop.reply_reading import read_reply
from habilis.agent.parsing.replies import code_is_complete, through_code
from habilis.core.errors import ContextOverflow
from habilis.models.contract import Delta, Message, Model, Options, Reply
from habilis.models.retry import RetryNotice, listen_for_retries
from habilis.models.usage import Ledger

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
        with listen_for_retries(self._emit_retry):
            reply = await read_reply(
                self._model,
                messages,
                options,
                is_complete=code_is_complete if stop_early else None,
                on_delta=self._emit_delta if self._events.has_hooks else None,
            )
        if reply.finish != 'early':
            return reply
        kept = through_code(reply.text)  # what follows may end in the middle of a word
        return replace(reply, text=kept) if len(kept) < len(reply.text.rstrip()) else replace(reply, finish='stop')

    def _emit_delta(self, delta: Delta) -> None:
        if delta.progress is not None:
            self._events.emit(ModelProgress(progress=delta.progress))
        if delta.text or delta.arguments:
            self._events.emit(TextEvent(delta=delta))
        if delta.thinking:
            self._events.emit(ThinkingEvent(delta=delta))

    def _emit_retry(self, notice: RetryNotice) -> None:
        self._events.emit(RetryEvent(notice=notice))
