"""Shorten a conversation between its turns, because its user wants it so."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from habilis.agent.context.compaction import Compaction, summary_in, transcript
from habilis.agent.context.conversation import Conversation
from habilis.agent.context.prompt import prompt_file
from habilis.agent.loop.model_turn import SUMMARY_CONTEXT
from habilis.agent.loop.reply_reading import read_reply
from habilis.core.errors import ModelError
from habilis.models.contract import Message, Model, Options
from habilis.models.tokens import count_message_tokens
from habilis.models.usage import Ledger

logger = logging.getLogger('habilis.agent')


@dataclass(frozen=True, kw_only=True)
class Shortened:
    """A conversation that was shortened."""

    messages: tuple[Message, ...]
    before: int
    """Tokens of its messages, estimated."""

    after: int
    is_summary: bool = False
    """Whether the model has written a summary; else each step has an entry in a digest."""


async def shorten(messages: Sequence[Message], model: Model, ledger: Ledger, keep: str = '') -> Shortened:
    """The messages as a digest, or as a summary with what the user wants to `keep`. The last step stays as it is.

    A model with a small context is asked for a summary only if something is to be kept.
    """
    shorter, summary = _compacted(messages, ''), ''
    if shorter != tuple(messages) and (keep or model.traits.context_tokens >= SUMMARY_CONTEXT):
        summary = await _summary(messages, model, ledger, keep)
        shorter = _compacted(messages, summary) if summary else shorter
    before, after = count_message_tokens(messages), count_message_tokens(shorter)
    return Shortened(messages=shorter, before=before, after=after, is_summary=bool(summary))


def _compacted(messages: Sequence[Message], summary: str) -> tuple[Message, ...]:
    conversation = Conversation('', messages)
    conversation.compact(Compaction(keep=1, drop_earlier=True, summary=summary))
    return conversation.messages


async def _summary(messages: Sequence[Message], model: Model, ledger: Ledger, keep: str) -> str:
    wanted = f'\n\nThe user wants this to be kept above all: {keep}' if keep else ''
    asked = (
        Message(role='system', text=prompt_file('compaction')),
        Message(role='user', text=f'{transcript(messages)}\n\nWrite the summary of this conversation.{wanted}'),
    )
    try:
        reply = await read_reply(model, asked, Options())
    except ModelError as error:  # the digest without it is worse, and enough to go on
        logger.warning('no summary of the conversation: %s', error)
        return ''
    ledger.record(reply.model or model.name, reply.usage, agent=ledger.name)
    return summary_in(reply.text)
