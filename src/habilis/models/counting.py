"""Counts what a model is used for, also where a stream is closed before its end."""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace

from habilis.models.contract import NO_OPTIONS, Delta, Message, Model, Options, Reply, Usage
from habilis.models.prices import cost_of
from habilis.models.tokens import count_message_tokens, count_tokens
from habilis.models.wrapper import WrapperModel


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
        text, usage = '', None
        try:
            async for item in super().stream(messages, options):
                if isinstance(item, Reply):
                    usage = item.usage
                else:
                    text += item.text + item.thinking + item.arguments
                yield item
        finally:
            self._on_usage(self.name, usage or estimate_usage(self.name, messages, text))


def estimate_usage(model: str, messages: Sequence[Message], written: str) -> Usage:
    """Usage of a request that the server has not reported."""
    usage = Usage(requests=1, input_tokens=count_message_tokens(messages), output_tokens=count_tokens(written))
    return replace(usage, cost=cost_of(model, usage.input_tokens, usage.output_tokens, 0))
