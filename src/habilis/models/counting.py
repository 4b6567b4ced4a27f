"""Counts what a model is used for, also where a stream is closed before its end."""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace

from habilis.models.contract import NO_OPTIONS, Delta, Message, Model, Options, Reply, Usage
from habilis.models.prices import cost_of
from habilis.models.tokens import count_message_tokens, count_tokens
from habilis.models.wrapper import WrapperModel, streaming


class CountingModel(WrapperModel):
    """Reports the usage of each request: `on_usage(model, usage)`."""

    def __init__(self, model: Model, on_usage: Callable[[str, Usage], object]) -> None:
        super().__init__(model)
        self._on_usage = on_usage

    async def request(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
        """Return the reply. Raises `ModelError`."""
        reply = await self.inner.request(messages, options)
        self._on_usage(reply.model or self.name, reply.usage)
        return reply

    async def stream(
        self, messages: Sequence[Message], options: Options = NO_OPTIONS
    ) -> AsyncGenerator[Delta | Reply, None]:
        """Stream the reply. The usage is estimated if the caller closes the stream early."""
        text, is_whole = '', False
        async with streaming(self.inner, messages, options) as items:
            try:
                async for item in items:
                    if isinstance(item, Reply):
                        is_whole = True
                        is_reported = item.usage.tokens or item.cached
                        usage = item.usage if is_reported else estimate_usage(self.name, messages, item.text)
                        self._on_usage(item.model or self.name, usage)
                    else:
                        text += item.text + item.thinking + item.arguments
                    yield item
            except GeneratorExit:
                if not is_whole:  # the caller has read enough
                    self._on_usage(self.name, estimate_usage(self.name, messages, text))
                raise


def estimate_usage(model: str, messages: Sequence[Message], written: str) -> Usage:
    """Usage of a request that the server has not reported."""
    usage = Usage(requests=1, input_tokens=count_message_tokens(messages), output_tokens=count_tokens(written))
    return replace(usage, cost=cost_of(model, usage.input_tokens, usage.output_tokens, 0))
