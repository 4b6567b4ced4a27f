"""A model around another model: what retry, fallback, cache and recording share."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager

from habilis.models.contract import NO_OPTIONS, Delta, Message, Model, Options, Reply, Traits


class AroundModel:
    """Passes everything on to the model inside. A subclass changes what it is there for."""

    def __init__(self, model: Model) -> None:
        self.inner = model
        """The model inside."""

    @property
    def name(self) -> str:
        """That of the model inside."""
        return self.inner.name

    @property
    def traits(self) -> Traits:
        """Those of the model inside."""
        return self.inner.traits

    async def request(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
        """One reply. Raises `ModelError`."""
        return await self.inner.request(messages, options)

    async def stream(
        self, messages: Sequence[Message], options: Options = NO_OPTIONS
    ) -> AsyncGenerator[Delta | Reply, None]:
        """The reply bit by bit; the last item is the whole `Reply`. Raises `ModelError`."""
        async with streaming(self.inner, messages, options) as items:
            async for item in items:
                yield item

    async def close(self) -> None:
        """Close the model inside."""
        await self.inner.close()


@asynccontextmanager
async def streaming(
    model: Model, messages: Sequence[Message], options: Options
) -> AsyncGenerator[AsyncIterator[Delta | Reply], None]:
    """A stream that is closed at once when its reader goes away: the connection behind it must not wait for the
    garbage collector.
    """
    items = model.stream(messages, options)
    try:
        yield items
    finally:
        if isinstance(items, AsyncGenerator):
            await items.aclose()


def says_something(item: Delta | Reply) -> bool:
    """Whether a reader of the stream has seen anything of the reply with this item."""
    return isinstance(item, Reply) or bool(item.text or item.thinking or item.arguments)
