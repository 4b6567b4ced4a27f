"""Gives both sides of a comparison the same replies to the same requests: they differ in what they do with them."""

import time
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from habilis.models.contract import NO_OPTIONS, Delta, Message, Model, Options, Reply
from habilis.models.wrapper import WrapperModel, streaming


@dataclass
class _Streamed:
    items: list[Delta | Reply] = field(default_factory=list)
    seconds: float = 0.0


class RepeatedReplies(WrapperModel):
    """Asks the inner model once. `start_again` repeats: the nth of equal requests gets the nth reply to it."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._known: dict[str, _Streamed] = {}
        self._asked = Counter[str]()
        self._last_end = 0.0
        self.saved_seconds = 0.0
        """Time that the replies took which were repeated since the start."""

    def start_again(self) -> None:
        """Begin the next side."""
        self._asked.clear()
        self.saved_seconds = 0.0

    async def stream(
        self, messages: Sequence[Message], options: Options = NO_OPTIONS
    ) -> AsyncGenerator[Delta | Reply, None]:
        """The known reply, or a new one."""
        request = repr((messages, options))
        self._asked[request] += 1
        key = f'{self._asked[request]} {request}'
        if known := self._known.get(key):
            self.saved_seconds += known.seconds
            for item in known.items:
                yield item
            return
        streamed, started = _Streamed(), time.monotonic()
        try:
            async with streaming(self.inner, messages, options) as items:
                async for item in items:
                    streamed.items.append(item)
                    yield item
        finally:  # also where the reader has enough, and closes the stream
            now = time.monotonic()
            streamed.seconds = now - max(started, self._last_end)  # without the time in which others were served
            self._last_end = now
            self._known[key] = streamed
