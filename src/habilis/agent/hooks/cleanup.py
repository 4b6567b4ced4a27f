"""Cleans messages before they are sent to a model."""

from collections.abc import Sequence
from dataclasses import replace

from habilis.agent.hooks.sanitize import strip_controls
from habilis.core.events import Event
from habilis.models.contract import FunctionCall, Message


class CleanMessages:
    """Cleans outgoing messages. The history is not changed.

    The same message is always cleaned in the same way, so that the provider's prompt cache still matches.
    """

    def __init__(
        self,
        *,
        created_at: bool = True,
        thinking: bool = True,
        whitespace: bool = True,
        empty: bool = True,
        controls: bool = True,
    ) -> None:
        """Everything is on by default.

        Args:
            created_at: remove the time of a message.
            thinking: remove the model's thinking.
            whitespace: remove whitespace at the end of a text.
            empty: drop messages without text. The result of a function call is kept, because providers require it.
            controls: remove NUL, escape sequences and other control characters, which some providers reject.
        """
        self._created_at = created_at
        self._thinking = thinking
        self._whitespace = whitespace
        self._empty = empty
        self._controls = controls

    def __call__(self, event: Event) -> None:
        """Ignore events: only outgoing messages matter here."""

    def outgoing(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The cleaned messages."""
        kept: list[Message] = []
        for message in map(self._clean, messages):
            if not self._empty or message.text.strip() or message.calls or message.role == 'tool':
                kept.append(message)
            elif message.cache and kept:  # keep the cache mark on the message before
                kept[-1] = replace(kept[-1], cache=True)
        return kept

    def _clean(self, message: Message) -> Message:
        text, calls = message.text, message.calls
        if self._controls:
            text = strip_controls(text)
            calls = tuple(_clean_call(call) for call in calls)
        return replace(
            message,
            text=text.rstrip() if self._whitespace else text,
            calls=calls,
            thinking='' if self._thinking else message.thinking,
            created_at=None if self._created_at else message.created_at,
        )


def _clean_call(call: FunctionCall) -> FunctionCall:
    return replace(call, arguments=strip_controls(call.arguments))
