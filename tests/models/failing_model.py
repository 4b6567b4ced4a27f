"""A model whose stream breaks: it says a little, then raises."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence

from habilis.core.errors import ModelError
from habilis.models.contract import NO_OPTIONS, Delta, Message, Options, Reply, Traits


class FailingModel:
    """Each stream yields `items`, then raises `error`. It counts streams begun and closed, and its own closings."""

    def __init__(self, items: Sequence[Delta | Reply], error: ModelError, *, name: str = 'test:breaking') -> None:
        self.name = name
        self.traits = Traits()
        self.begun = 0
        self.ended = 0
        self.closed = 0
        self._items = items
        self._error = error

    async def request(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
        raise self._error

    async def stream(
        self, messages: Sequence[Message], options: Options = NO_OPTIONS
    ) -> AsyncGenerator[Delta | Reply, None]:
        self.begun += 1
        try:
            for item in self._items:
                yield item
            raise self._error
        finally:
            self.ended += 1

    async def close(self) -> None:
        self.closed += 1
        raise self._error


async def read_into(seen: list[Delta | Reply], stream: AsyncIterator[Delta | Reply]) -> None:
    """Read a stream to its end, or to its break; what came before is in `seen`."""
    async for item in stream:
        seen.append(item)  # noqa: PERF401 - a list made at once would not hold what came before a break
