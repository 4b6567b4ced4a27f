"""Asks the model: streamed, counted, and with a conversation that fits its context."""

import contextlib
import functools
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from habilis.agent.context.compaction import (
    DIGEST_TOKENS,
    KEPT_STEPS,
    SUMMARY_TOKENS,
    Compaction,
    room_for,
    summary_in,
)
from habilis.agent.context.conversation import Conversation
from habilis.agent.context.observation import describe_variable
from habilis.agent.context.prompt import prompt_file
from habilis.agent.contract import Ended
from habilis.agent.events import (
    CompactedEvent,
    ModelProgress,
    ModelReplied,
    ModelRequested,
    RetryEvent,
    TextEvent,
    ThinkingEvent,
)
from habilis.agent.loop.foundation import Foundation
from habilis.agent.loop.reply_reading import read_reply
from habilis.agent.parsing.replies import code_is_complete, through_code
from habilis.core.errors import ContextOverflow, FunctionsRefused, ModelError
from habilis.models.contract import Delta, Message, Model, Options, Reply, Usage
from habilis.models.retry import RetryNotice, listen_for_retries
from habilis.models.tokens import count_message_tokens
from habilis.models.usage import Ledger
from habilis.sandbox.contract import Variable

logger = logging.getLogger('habilis.agent')

REPLY_TOKENS = 1024
"""Part of the context that is kept free for the reply."""

DIGEST_SHARE = 0.25
"""Share of the room for messages that a digest may take: the conversation can then grow for a while before it is
compacted again, which costs the cached prompt."""

SUMMARY_CONTEXT = 100_000
"""Size of the context from which on the model is asked for a summary: what a smaller one holds is worth less than the
request, and small models write poor summaries."""

SUMMARIZED_TOKENS = 10_000
"""Minimum number of tokens that a summary must save: what people wrote may fill a context, and shortening the rest in
each step is not worth a request each time."""


class ModelTurn:
    """Asks one model on behalf of one run."""

    def __init__(
        self,
        model: Model,
        conversation: Conversation,
        base: Foundation,
        *,
        ledgers: Sequence[Ledger],
        use_text: Callable[[], None],
        variables: Callable[[], Iterable[Variable]],
        has_reached: Callable[[Usage], Ended | None],
    ) -> None:
        """A model turn.

        Args:
            model: the model.
            conversation: the conversation of the run.
            base: events, record and ledger of the run.
            ledgers: those of the runs around it, where usage is counted too.
            use_text: changes the prompt, because the server takes no functions.
            variables: the variables that are in the sandbox now.
            has_reached: the limit that the run has reached with so much usage.
        """
        self._model = model
        self._conversation = conversation
        self._events, self._recorder = base.events, base.recorder
        self._ledgers = (base.ledger, *ledgers)
        self._use_text = use_text
        self._variables = variables
        self._has_reached = has_reached
        self._is_replayed = False
        """Whether the last reply came from the record."""

    async def ask(self, options: Options, *, system: str | None = None, extra: str = '', code: bool = True) -> Reply:
        """One reply. `code`: it is expected to hold code, and may be ended where the code ends."""
        outgoing = functools.partial(self._conversation.outgoing, system=system, extra=extra)
        room = max(0.0, room_for(self._model.traits.context_tokens, options.max_tokens or REPLY_TOKENS))
        messages = outgoing()
        if self._is_at_summary or count_message_tokens(messages) > room:
            asked = self._conversation.outgoing(system=system, extra=prompt_file('compaction'))
            how = replace(self._compaction(room), summary=await self._summary(asked, options))
            ways = [replace(how, keep=keep, drop_earlier=drop) for drop in (False, True) for keep in (KEPT_STEPS, 1)]
            self._compact(*ways, fits=lambda: count_message_tokens(outgoing()) <= room)
            messages = outgoing()
        try:
            return await self._request(messages, options, code)
        except ContextOverflow:
            how = replace(self._compaction(room / 2), keep=1)  # the estimate was too low
            for drop_earlier in (False, True):
                if self._compact(replace(how, drop_earlier=drop_earlier)):
                    with contextlib.suppress(ContextOverflow):
                        return await self._request(outgoing(), options, code)
            raise

    # Compaction -------------------------------------------------------------------------------------------------------

    @property
    def _is_at_summary(self) -> bool:
        return self._recorder is not None and self._recorder.is_at_summary

    def _compaction(self, room: float) -> Compaction:
        variables = [describe_variable(variable) for variable in self._variables()]
        return Compaction(tokens=min(DIGEST_TOKENS, room * DIGEST_SHARE), variables=variables)

    def _compact(self, *ways: Compaction, fits: Callable[[], bool] = lambda: True) -> bool:
        is_shorter = self._conversation.compact(*ways, fits=fits)
        if is_shorter:
            verb = 'summarized' if ways[0].summary else 'shortened'
            self._events.report(CompactedEvent, message=f'earlier steps were {verb} to make room')
        return is_shorter

    async def _summary(self, asked: tuple[Message, ...], options: Options) -> str:
        """What the model writes about the conversation so far. Empty if it is not asked, or does not write one."""
        if not self._is_at_summary and not self._may_summarize(asked):
            return ''
        live = functools.partial(self._summarize_live, asked, options)
        self._is_replayed = True
        reply = await live() if self._recorder is None else await self._recorder.summary(live)
        self._count(reply)
        return summary_in(reply.text)

    def _may_summarize(self, asked: tuple[Message, ...]) -> bool:
        """Whether a summary is worth a request, and the limits of the run leave one more after it."""
        is_replaying = self._recorder is not None and self._recorder.is_replaying
        is_large = self._model.traits.context_tokens >= SUMMARY_CONTEXT
        if is_replaying or not is_large or self._conversation.tokens_to_save() < SUMMARIZED_TOKENS:
            return False
        used = Usage(requests=1, input_tokens=count_message_tokens(asked), output_tokens=SUMMARY_TOKENS)
        return self._has_reached(self._ledgers[0].total + used) is None

    async def _summarize_live(self, asked: tuple[Message, ...], options: Options) -> Reply:
        try:
            return await self._request_live(asked, options, code=False, is_shown=False)
        except ModelError as error:  # the digest without it is worse, and enough to go on
            logger.warning('no summary of the earlier steps: %s', error)
            return Reply(model=self._model.name)

    # Requests ---------------------------------------------------------------------------------------------------------

    async def _request(self, messages: tuple[Message, ...], options: Options, code: bool) -> Reply:
        live = functools.partial(self._request_live, messages, options, code=code)
        self._is_replayed = True
        reply = await live() if self._recorder is None else await self._recorder.ask(live)
        self._count(reply)
        return reply

    def _count(self, reply: Reply) -> None:
        name = self._ledgers[0].name
        for ledger in self._ledgers:
            ledger.record(reply.model or self._model.name, reply.usage, agent=name, earlier=self._is_replayed)
        self._events.report(ModelReplied, reply=reply)

    async def _request_live(
        self, messages: tuple[Message, ...], options: Options, *, code: bool, is_shown: bool = True
    ) -> Reply:
        self._is_replayed = False
        self._events.go_live()
        try:
            return await self._send(messages, options, code, is_shown)
        except FunctionsRefused as error:
            if not options.functions:
                raise
            logger.warning('%s; code is asked for in fenced blocks instead, as with functions=False', error)
        before = self._conversation.system
        self._use_text()
        system = replace(messages[0], text=self._conversation.system) if messages[0].text == before else messages[0]
        return await self._send((system, *messages[1:]), replace(options, functions=()), code, is_shown)

    async def _send(self, messages: tuple[Message, ...], options: Options, code: bool, is_shown: bool) -> Reply:
        messages = self._events.outgoing(messages)
        if not self._model.traits.images:  # those of earlier turns, with another model; code can open them
            messages = tuple(replace(message, images=()) if message.images else message for message in messages)
        self._events.report(ModelRequested, model=self._model, messages=messages)
        # A model in this process is stopped as soon as its code is there: each further token would cost time.
        stop_early = code and self._model.traits.local and not options.functions
        with listen_for_retries(self._emit_retry):
            reply = await read_reply(
                self._model,
                messages,
                options,
                is_complete=code_is_complete if stop_early else None,
                on_delta=self._emit_delta if is_shown and self._events.has_hooks else None,
            )
        if reply.finish != 'early':
            return reply
        kept = through_code(reply.text)  # what follows may end in the middle of a word
        return replace(reply, text=kept) if len(kept) < len(reply.text.rstrip()) else replace(reply, finish='stop')

    def _emit_delta(self, delta: Delta) -> None:
        if delta.progress is not None:
            self._events.report(ModelProgress, progress=delta.progress)
        if delta.text or delta.arguments:
            self._events.report(TextEvent, delta=delta)
        if delta.thinking:
            self._events.report(ThinkingEvent, delta=delta)

    def _emit_retry(self, notice: RetryNotice) -> None:
        self._events.report(RetryEvent, notice=notice)
