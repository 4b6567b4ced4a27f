"""`SeededModel`: gives each run its own seed, and remembers what was sent and replied."""

from collections.abc import AsyncGenerator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from habilis.core.codec import Json
from habilis.models.contract import NO_OPTIONS, Delta, Function, Message, Options, Reply
from habilis.models.wrapper import WrapperModel, streaming


@dataclass(kw_only=True)
class Exchange:
    """What one run has sent to its model, and the replies."""

    seed: int
    logprobs: bool = False
    messages: tuple[Message, ...] = ()
    """The messages of the latest request."""

    prompt: int = 0
    """How many of them there were in the first request."""

    functions: tuple[Function, ...] = ()
    replies: list[Reply] = field(default_factory=list[Reply])

    def options(self, messages: Sequence[Message], options: Options) -> Options:
        """The options of a request, with the seed."""
        self.prompt = self.prompt or len(messages)
        self.messages, self.functions = tuple(messages), options.functions
        more: dict[str, Json] = {'seed': self.seed, **({'logprobs': True} if self.logprobs else {})}
        return replace(options, extra={**options.extra, **more})


EXCHANGE: ContextVar[Exchange] = ContextVar('habilis_rollout')
"""That of the run in whose context the model is asked."""


class SeededModel(WrapperModel):
    """Sends the seed of the run that asks."""

    async def request(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
        """See `Model`."""
        exchange = EXCHANGE.get()
        reply = await self.inner.request(messages, exchange.options(messages, options))
        exchange.replies.append(reply)
        return reply

    async def stream(
        self, messages: Sequence[Message], options: Options = NO_OPTIONS
    ) -> AsyncGenerator[Delta | Reply, None]:
        """See `Model`."""
        exchange = EXCHANGE.get()
        async with streaming(self.inner, messages, exchange.options(messages, options)) as items:
            async for item in items:
                if isinstance(item, Reply):
                    exchange.replies.append(item)
                yield item

    async def close(self) -> None:
        """Does nothing: the inner model belongs to the agent that was sampled."""
