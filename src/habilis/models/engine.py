"""The engine: every hosted or served model, over pydantic-ai's model layer, which is imported on the first request."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from habilis.core.errors import ModelError
from habilis.models import faults
from habilis.models.config import ModelConfig
from habilis.models.contract import NO_OPTIONS, Delta, Message, Options, Reply, Traits, Usage
from habilis.models.faults import Asked
from habilis.models.names import parse_name
from habilis.models.providers import PROVIDERS, is_local, key_of, url_of
from habilis.models.stops import StopCutter

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import StreamedResponse

    from habilis.models.connect import Connection
    from habilis.models.wire import Prepared

_GRACE = 5.0
"""Seconds that the SDK waits longer than we do, so that it is always our limit that ends a call."""

_importing = threading.Lock()
"""Two threads that import the same large packages at once can deadlock."""


class EngineModel:
    """A model behind a provider's interface. Connections are opened on first use and kept until `close`."""

    def __init__(self, config: ModelConfig) -> None:
        """Raises `ModelNotFound` for a name without a known provider, `SettingsError` for a url that is none."""
        name = parse_name(config.model, base_url=config.base_url)
        provider = PROVIDERS[name.provider]
        self.config = config
        self._asked = Asked(
            name=name,
            provider=provider,
            url=url_of(provider, config.base_url),
            key=key_of(provider, config.api_key),
            seconds=config.timeout,
        )
        self._connections: dict[asyncio.AbstractEventLoop, Connection] = {}
        self._opening: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}

    @property
    def name(self) -> str:
        """As `provider:model`."""
        return str(self._asked.name)

    @property
    def traits(self) -> Traits:
        """What the provider is known for, or what the settings say."""
        provider, config = self._asked.provider, self.config
        return Traits(
            functions=provider.functions if config.functions is None else config.functions,
            context_tokens=config.context_tokens or provider.context_tokens,
            local=provider.own_server and is_local(self._asked.url),
            small=bool(config.small),
        )

    async def request(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
        """One reply. Raises `ModelError`."""
        connection = await self._connection()
        prepared = self._prepare(connection, messages, options)
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self.config.timeout):
                with prepared.sending():
                    response = await connection.model.request(*prepared.arguments)
        except Exception as error:
            raise self._fault(error, prepared) from None
        if not response.parts and not response.finish_reason:
            raise faults.not_understood(self._asked, prepared.answer)
        return self._reply(response, options, started)

    async def stream(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> AsyncIterator[Delta | Reply]:
        """The reply bit by bit; the last item is the whole `Reply`. Raises `ModelError`."""
        connection = await self._connection()
        prepared = self._prepare(connection, messages, options)
        started, began = time.perf_counter(), False
        cutter = StopCutter(options.stop if self._cuts else ())
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self.config.timeout):
                    with prepared.sending():
                        opened = connection.model.request_stream(*prepared.arguments)
                        streamed = await stack.enter_async_context(opened)
                stack.push_async_callback(prepared.hang_up)  # not every SDK does it when its stream is left
                stack.push_async_callback(streamed.cancel)
                async for delta in self._deltas(streamed, cutter):
                    began = True
                    yield delta
                response = streamed.get()
        except Exception as error:
            raise self._fault(error, prepared, began=began) from None
        if self._is_cut(response, prepared):
            raise faults.broken_off(self._asked, prepared.answer)
        yield self._reply(response, options, started)

    async def close(self) -> None:
        """Close the connections, also those of other event loops that still run. May be called twice."""
        connections, self._connections = self._connections, {}
        for loop, connection in connections.items():
            if loop is asyncio.get_running_loop():
                await connection.close()
            elif loop.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(connection.close(), loop))

    @property
    def _cuts(self) -> bool:
        """Whether stop words are ours to find, because the protocol has none."""
        return self._asked.provider.name == 'openai-responses'

    async def _deltas(self, streamed: 'StreamedResponse', cutter: StopCutter) -> AsyncIterator[Delta]:
        from habilis.models.wire import delta_from

        events = aiter(streamed)
        while True:
            async with asyncio.timeout(self.config.timeout):
                event = await anext(events, None)
            if event is None:
                break
            delta = delta_from(event)
            if delta and delta.text:
                delta = replace(delta, text=cutter.feed(delta.text))
            if delta and delta != Delta():
                yield delta
        if rest := cutter.rest():
            yield Delta(text=rest)

    async def _connection(self) -> 'Connection':
        """The connection of the running event loop. Importing and opening happen beside it, in a thread."""
        loop = asyncio.get_running_loop()
        if found := self._connections.get(loop):
            return found
        if self._asked.provider.needs_key and not self._asked.key and not self.config.base_url:
            raise faults.missing_key(self._asked)
        if (key := self._asked.key) and not (key.isascii() and key.isprintable()):
            raise faults.unsendable_key(self._asked)
        async with self._opening.setdefault(loop, asyncio.Lock()):
            if loop not in self._connections:
                opened = await asyncio.to_thread(self._open)
                self._connections = {old: kept for old, kept in self._connections.items() if not old.is_closed()}
                self._connections[loop] = opened
        return self._connections[loop]

    def _open(self) -> 'Connection':
        asked = self._asked
        try:
            with _importing:
                from habilis.models import wire  # noqa: F401  # pyright: ignore[reportUnusedImport]
                from habilis.models.connect import Target, connect

                target = Target(
                    provider=asked.name.provider,
                    model=asked.name.model,
                    url=asked.url,
                    key=asked.key,
                    seconds=asked.seconds + _GRACE,
                )
                return connect(target)
        except ImportError as error:
            raise faults.PackageMissing.of(asked, error) from error
        except Exception as error:
            raise faults.translated(error, asked) from None

    def _prepare(self, connection: 'Connection', messages: Sequence[Message], options: Options) -> 'Prepared':
        from habilis.models.wire import prepare

        return prepare(connection.model, self._asked.provider, self.config, messages, options)

    def _is_cut(self, response: 'ModelResponse', prepared: 'Prepared') -> bool:
        from habilis.models.wire import is_cut

        return is_cut(response, prepared.answer)

    def _fault(self, error: Exception, prepared: 'Prepared', *, began: bool = False) -> ModelError:
        if isinstance(error, TimeoutError):
            return faults.too_slow(self._asked, began=began)
        return faults.translated(error, self._asked, prepared.answer)

    def _reply(self, response: 'ModelResponse', options: Options, started: float) -> Reply:
        from habilis.models.prices import cost_of
        from habilis.models.wire import reply_from

        seconds = time.perf_counter() - started
        reply, spent = reply_from(response), response.usage
        text = StopCutter(options.stop).cut(reply.text) if self._cuts else reply.text
        usage = Usage(
            requests=1,
            input_tokens=spent.input_tokens,
            output_tokens=spent.output_tokens,
            cached_tokens=spent.cache_read_tokens,
            seconds=seconds,
            cost=cost_of(self.name, spent.input_tokens, spent.output_tokens, spent.cache_read_tokens),
        )
        return replace(reply, text=text, model=self.name, usage=usage)
