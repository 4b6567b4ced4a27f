"""Sending a model no more than it needs."""

from collections.abc import Sequence
from dataclasses import replace

from habilis.agent.hooks.sanitize import without_controls
from habilis.core.events import Event
from habilis.models.contract import FunctionCall, Message


class CleanMessages:
    """Cleans the messages that go out. The history keeps them as they were.

    The same message is always cleaned in the same way, so that a provider's prompt cache still finds what it has seen.
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
            created_at: do not send when a message was written.
            thinking: do not send what the model thought.
            whitespace: drop spaces and empty lines at the end of a text.
            empty: drop turns without text. An answer to a function call stays, as the call must have one.
            controls: drop NUL, escape sequences and the like, which some providers refuse.
        """
        self._created_at = created_at
        self._thinking = thinking
        self._whitespace = whitespace
        self._empty = empty
        self._controls = controls

    def __call__(self, event: Event) -> None:
        """Events are of no interest here."""

    def outgoing(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The same messages, clean."""
        kept: list[Message] = []
        for message in map(self._clean, messages):
            if not self._empty or message.text.strip() or message.calls or message.role == 'tool':
                kept.append(message)
            elif message.cache and kept:  # what comes before it will still be sent again
                kept[-1] = replace(kept[-1], cache=True)
        return kept

    def _clean(self, message: Message) -> Message:
        text, calls = message.text, message.calls
        if self._controls:
            text = without_controls(text)
            calls = tuple(_clean_call(call) for call in calls)
        return replace(
            message,
            text=text.rstrip() if self._whitespace else text,
            calls=calls,
            thinking='' if self._thinking else message.thinking,
            created_at=None if self._created_at else message.created_at,
        )


def _clean_call(call: FunctionCall) -> FunctionCall:
    return replace(call, arguments=without_controls(call.arguments))
