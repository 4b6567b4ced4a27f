"""Hosted models and model servers, through pydantic-ai's model layer, which is imported with the first request."""

import asyncio
import math
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from habilis.core.errors import FunctionsRefused, ModelError
from habilis.models import provider_errors
from habilis.models.config import ModelConfig
from habilis.models.contract import NO_OPTIONS, Delta, Message, Options, Reply, Traits, Usage, check_images, images_in
from habilis.models.model_names import parse_name
from habilis.models.provider_errors import Endpoint
from habilis.models.providers import PROVIDERS, key_of, sees_images, url_of
from habilis.models.server_capabilities import Capabilities, ask_capabilities
from habilis.models.stop_sequences import StopFilter

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import StreamedResponse

    from habilis.models.connection import ProviderConnection
    from habilis.models.conversion import PreparedRequest

_GRACE = 5.0
"""Seconds that the timeout of the SDK is longer than ours, so that ours always ends the call."""

OLLAMA_REPLY_TOKENS = 8192
"""Maximum length of a reply of Ollama, if none is set: it has no limit of its own, not even that of the context.
Each part of a stream counts as one token. More than for the embedded model, because many of these models reason."""

_importing = threading.Lock()
"""Serializes imports: two threads that import the same large packages at once can deadlock."""


class EngineModel:
    """A model of a provider. Connections are opened on first use and kept until `close`."""

    def __init__(self, config: ModelConfig) -> None:
        """Raises `ModelNotFound` for an unknown provider, `SettingsError` for an invalid URL."""
        name = parse_name(config.model, base_url=config.base_url)
        provider = PROVIDERS[name.provider]
        self.config = config
        self._endpoint = Endpoint(
            name=name,
            provider=provider,
            url=url_of(provider, config.base_url),
            key=key_of(provider, config.api_key),
            seconds=config.timeout,
        )
        self._connections: dict[asyncio.AbstractEventLoop, ProviderConnection] = {}
        self._opening: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}
        self._refuses_functions = False

    @property
    def name(self) -> str:
        """`provider:model`."""
        return str(self._endpoint.name)

    @property
    def traits(self) -> Traits:
        """Those of the settings, else what the server says, else those of the provider.

        A server that users run themselves is asked once, which blocks. If it has refused functions, none are offered.
        """
        provider, config, said = self._endpoint.provider, self.config, self._said
        functions = said.functions is not False and not config.small
        images = sees_images(provider, config.model_name) if said.images is None else said.images
        return Traits(
            functions=(functions if config.functions is None else config.functions) and not self._refuses_functions,
            context_tokens=config.context_tokens or said.context_tokens or provider.context_tokens,
            small=bool(config.small),
            images=images if config.images is None else config.images,
        )

    @cached_property
    def _said(self) -> Capabilities:
        endpoint, config = self._endpoint, self.config
        is_known = None not in (config.functions, config.context_tokens, config.images)
        if is_known or not endpoint.provider.own_server or endpoint.url is None:
            return Capabilities()
        return ask_capabilities(endpoint.provider.name, endpoint.url, endpoint.name.model, endpoint.key)

    async def request(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
        """Return the reply. Raises `ModelError`."""
        connection = await self._connection()
        prepared = self._prepare(connection, messages, options)
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self.config.timeout):
                with prepared.sending():
                    response = await connection.model.request(*prepared.arguments)
        except Exception as error:
            raise self._error(error, prepared) from None
        if not response.parts and not response.finish_reason:
            raise provider_errors.invalid_response(self._endpoint, prepared.response)
        return self._reply(response, options, started)

    async def stream(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> AsyncIterator[Delta | Reply]:
        """Stream the reply; the last item is the complete `Reply`. Raises `ModelError`."""
        connection = await self._connection()
        prepared = self._prepare(connection, messages, options)
        started, reply_started = time.perf_counter(), False
        stops = StopFilter(options.stop if self._applies_stops else ())
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self.config.timeout):
                    with prepared.sending():
                        opened = connection.model.request_stream(*prepared.arguments)
                        streamed = await stack.enter_async_context(opened)
                stack.push_async_callback(prepared.close_responses)  # not every SDK does it when a stream is abandoned
                stack.push_async_callback(streamed.cancel)
                left = self._most_deltas(options)
                async with aclosing(self._deltas(streamed, stops)) as deltas:
                    async for delta in deltas:
                        reply_started = True
                        yield delta
                        left -= 1
                        if left <= 0:
                            break
                response = streamed.get()
        except Exception as error:
            raise self._error(error, prepared, reply_started=reply_started) from None
        if left <= 0:
            yield replace(self._reply(response, options, started), finish='length', calls=())
            return
        if self._is_interrupted(response, prepared):
            raise provider_errors.interrupted(self._endpoint, prepared.response)
        yield self._reply(response, options, started)

    async def close(self) -> None:
        """Close the connections, also those of other running event loops. Idempotent."""
        connections, self._connections = self._connections, {}
        for loop, connection in connections.items():
            if loop is asyncio.get_running_loop():
                await connection.close()
            elif loop.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(connection.close(), loop))

    @property
    def _applies_stops(self) -> bool:
        """Whether stop sequences are applied here because the protocol has none."""
        return self._endpoint.provider.name == 'openai-responses'

    def _most_deltas(self, options: Options) -> float:
        """Maximum length of a reply. Not sent: a server refuses a number that does not fit into its context."""
        has_limit = options.max_tokens is not None or self.config.max_tokens is not None
        return math.inf if has_limit or self._endpoint.provider.name != 'ollama' else OLLAMA_REPLY_TOKENS

    async def _deltas(self, streamed: 'StreamedResponse', stops: StopFilter) -> AsyncGenerator[Delta]:
        from habilis.models.conversion import delta_from

        events = aiter(streamed)
        while True:
            async with asyncio.timeout(self.config.timeout):
                event = await anext(events, None)
            if event is None:
                break
            delta = delta_from(event)
            if delta and delta.text:
                delta = replace(delta, text=stops.feed(delta.text))
            if delta and delta != Delta():
                yield delta
        if rest := stops.flush():
            yield Delta(text=rest)

    async def connect(self) -> None:
        """Open the connection before the first request needs it. Raises `ModelError`."""
        await self._connection()

    async def _connection(self) -> 'ProviderConnection':
        """The connection of the running event loop. Imports and opens it in a thread."""
        loop = asyncio.get_running_loop()
        if found := self._connections.get(loop):
            return found
        if self._endpoint.provider.needs_key and not self._endpoint.key and not self.config.base_url:
            raise provider_errors.missing_key(self._endpoint)
        if (key := self._endpoint.key) and not (key.isascii() and key.isprintable()):
            raise provider_errors.invalid_key(self._endpoint)
        async with self._opening.setdefault(loop, asyncio.Lock()):
            if loop not in self._connections:
                opened = await asyncio.to_thread(self._open)
                self._connections = {old: kept for old, kept in self._connections.items() if not old.is_closed()}
                self._connections[loop] = opened
        return self._connections[loop]

    def _open(self) -> 'ProviderConnection':
        endpoint = self._endpoint
        try:
            with _importing:
                from habilis.models import conversion  # noqa: F401  # pyright: ignore[reportUnusedImport]
                from habilis.models.connection import Target, connect

                target = Target(
                    provider=endpoint.name.provider,
                    model=endpoint.name.model,
                    url=endpoint.url,
                    key=endpoint.key,
                    seconds=endpoint.seconds + _GRACE,
                )
                return connect(target)
        except ImportError as error:
            raise provider_errors.PackageMissing.of(endpoint, error) from error
        except Exception as error:
            raise provider_errors.translate(error, endpoint) from None

    def _prepare(
        self, connection: 'ProviderConnection', messages: Sequence[Message], options: Options
    ) -> 'PreparedRequest':
        from habilis.models.conversion import prepare

        check_images(self, images_in(messages))
        return prepare(connection.model, self._endpoint.provider, self.config, messages, options)

    def _is_interrupted(self, response: 'ModelResponse', prepared: 'PreparedRequest') -> bool:
        from habilis.models.conversion import is_interrupted

        return is_interrupted(response, prepared.response)

    def _error(self, error: Exception, prepared: 'PreparedRequest', *, reply_started: bool = False) -> ModelError:
        if isinstance(error, TimeoutError):
            return provider_errors.timed_out(self._endpoint, reply_started=reply_started)
        translated = provider_errors.translate(error, self._endpoint, prepared.response)
        self._refuses_functions = self._refuses_functions or isinstance(translated, FunctionsRefused)
        return translated

    def _reply(self, response: 'ModelResponse', options: Options, started: float) -> Reply:
        from habilis.models.conversion import reply_from
        from habilis.models.prices import cost_of

        seconds = time.perf_counter() - started
        reply, used = reply_from(response), response.usage
        text = StopFilter(options.stop).truncate(reply.text) if self._applies_stops else reply.text
        usage = Usage(
            requests=1,
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cached_tokens=used.cache_read_tokens,
            seconds=seconds,
            cost=cost_of(self.name, used.input_tokens, used.output_tokens, used.cache_read_tokens),
        )
        return replace(reply, text=text, model=self.name, usage=usage)
