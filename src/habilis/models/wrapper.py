"""Base class of models that wrap another model: retry, cache, recording."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager

from habilis.models.contract import NO_OPTIONS, Delta, Message, Model, Options, Reply, Traits


class WrapperModel:
    """Delegates everything to the inner model. Subclasses override what they change."""

    def __init__(self, model: Model) -> None:
        self.inner = model
        """The wrapped model."""

    @property
    def name(self) -> str:
        """Name of the inner model."""
        return self.inner.name

    @property
    def traits(self) -> Traits:
        """Traits of the inner model."""
        return self.inner.traits

    async def request(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
        """Return the reply. Raises `ModelError`."""
        return await self.inner.request(messages, options)

    async def stream(
        self, messages: Sequence[Message], options: Options = NO_OPTIONS
    ) -> AsyncGenerator[Delta | Reply, None]:
        """Stream the reply; the last item is the complete `Reply`. Raises `ModelError`."""
        async with streaming(self.inner, messages, options) as items:
            async for item in items:
                yield item

    async def close(self) -> None:
        """Close the inner model."""
        await self.inner.close()


@asynccontextmanager
async def streaming(
    model: Model, messages: Sequence[Message], options: Options
) -> AsyncGenerator[AsyncIterator[Delta | Reply], None]:
    """Open a stream and close it on exit, so that its connection does not wait for the garbage collector."""
    items = model.stream(messages, options)
    try:
        yield items
    finally:
        if isinstance(items, AsyncGenerator):
            await items.aclose()


def has_content(item: Delta | Reply) -> bool:
    """Whether the item shows any part of the reply."""
    return isinstance(item, Reply) or bool(item.text or item.thinking or item.arguments)
