"""Messages as JSON text, to store a conversation and continue it later."""

from collections.abc import Iterable
from dataclasses import dataclass

from habilis.core.dataclass_codec import DataclassCodec
from habilis.core.documents import DocumentFormat
from habilis.models.contract import Message


@dataclass(frozen=True, kw_only=True)
class _Conversation:
    messages: tuple[Message, ...]


_FORMAT = DocumentFormat('conversation', 1, DataclassCodec(_Conversation), lists=('messages',))


def messages_to_json(messages: Iterable[Message], *, indent: int | None = None) -> str:
    """The messages as JSON text: `messages_to_json(result.messages)`."""
    return _FORMAT.write(_FORMAT.fields(_Conversation(messages=tuple(messages))), indent)


def messages_from_json(text: str | bytes) -> tuple[Message, ...]:
    """The messages that `messages_to_json` was given. Raises `DocumentError` with what is wrong."""
    return _FORMAT.decode(_FORMAT.read(text)).messages
