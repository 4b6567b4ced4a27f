"""The embedded model: `local:`, `local:name` or `local:/path/to/weights.gguf`."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future

from habilis.core.errors import ModelError, ModelRefused, ModelUnavailable
from habilis.models.config import ModelConfig
from habilis.models.contract import NO_OPTIONS, Delta, Message, Options, Reply, Traits, Usage, check_images, images_in
from habilis.models.local import catalogue, store
from habilis.models.local.backend import Cancellation, ChatTurn, Chunk, Generation, GenerationRequest
from habilis.models.local.engine import EngineLease

CONTEXT_TOKENS = 8192
"""Default context window, smaller than what the models were trained for, to save memory."""

MAX_TOKENS = 1024
"""Default maximum length of a reply: more than code of one step needs, and a minute or two on a small machine."""


class LocalModel:
    """A model in this process. Nothing is loaded before the first request.

    `timeout` is the maximum time without progress: time in the queue does not count, and evaluating the prompt is
    progress.
    """

    def __init__(self, config: ModelConfig) -> None:
        self._config = config
        self._weights_name = config.model_name
        self._context = config.context_tokens or CONTEXT_TOKENS
        self._small = bool(config.small)
        if not store.looks_like_path(self._weights_name):
            entry = catalogue.entry(self._weights_name)
            self._weights_name = entry.name
            self._small = entry.small if config.small is None else config.small
        self._lease: EngineLease | None = None

    @property
    def name(self) -> str:
        """`local:name`."""
        return f'local:{self._weights_name}'

    @property
    def traits(self) -> Traits:
        """No function calls: the chat template is applied to text only."""
        return Traits(functions=False, context_tokens=self._context, local=True, small=self._small)

    async def request(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
        """Return the reply. Raises `ModelError`."""
        async with contextlib.aclosing(self._stream(messages, options)) as items:
            async for item in items:
                if isinstance(item, Reply):
                    return item
        msg = f'{self.name} ended without a reply'
        raise ModelError(msg)

    def stream(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> AsyncIterator[Delta | Reply]:
        """Stream the reply token by token; the last item is the complete `Reply`. Raises `ModelError`."""
        return self._stream(messages, options)

    async def close(self) -> None:
        """Free the memory, unless another model of this process uses the same weights."""
        lease, self._lease = self._lease, None
        if lease is not None:
            await asyncio.to_thread(lease.release)

    async def _stream(self, messages: Sequence[Message], options: Options):
        request = self._generation_request(messages, options)
        engine = (await self._acquire()).engine
        started = time.monotonic()
        listener = _Listener(self._config.timeout)
        try:
            future = engine.submit(request, listener.receive, listener.stop)
            future.add_done_callback(listener.end)
            text: list[str] = []
            thinking: list[str] = []
            async for chunk in listener.chunks():
                text.append(chunk.text)
                thinking.append(chunk.thinking)
                yield Delta(text=chunk.text, thinking=chunk.thinking, progress=chunk.progress)
            generation = future.result()
        finally:
            listener.cancel()
        yield Reply(
            text=''.join(text),
            thinking=''.join(thinking),
            finish=generation.finish,
            model=self.name,
            usage=_usage(generation, time.monotonic() - started),
        )

    async def _acquire(self) -> EngineLease:
        if self._lease is None:
            path = await asyncio.to_thread(store.find, self._weights_name)
            if self._lease is None:  # another task may have created it
                self._lease = EngineLease(path, self._context)
        return self._lease

    def _generation_request(self, messages: Sequence[Message], options: Options) -> GenerationRequest:
        check_images(self, images_in(messages))
        if options.functions:
            msg = f'{self.name} does not support function calls; ask for code in a fenced block'
            raise ModelRefused(msg)
        config = self._config
        temperature = config.temperature_for(options)
        return GenerationRequest(
            turns=tuple(to_turn(message) for message in messages),
            temperature=temperature if temperature is not None else 0.0,
            max_tokens=options.max_tokens or config.max_tokens or MAX_TOKENS,
            stop=options.stop,
            extra={**config.extra, **options.extra},
        )


def to_turn(message: Message) -> ChatTurn:
    """Convert a message to text that any chat template accepts, including function calls and their results."""
    calls = [f'{call.name}({call.arguments})' for call in message.calls]
    text = '\n'.join(part for part in (message.text, *calls) if part)
    if message.role == 'tool':
        return ChatTurn(role='user', content=f'{message.call_name or "The call"} returned:\n{text}')
    return ChatTurn(role=message.role, content=text)


def _usage(generation: Generation, seconds: float) -> Usage:
    return Usage(
        requests=1,
        input_tokens=generation.input_tokens,
        output_tokens=generation.output_tokens,
        cached_tokens=generation.cached_tokens,
        seconds=seconds,
        cost=0.0,
    )


class _Listener:
    """Passes chunks from the engine's thread to the event loop."""

    def __init__(self, timeout: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[Chunk | None] = asyncio.Queue()
        self._timeout = timeout
        self.stop = Cancellation()

    def receive(self, chunk: Chunk) -> None:
        """Called on the engine's thread."""
        self._put(chunk)

    def end(self, _: 'Future[Generation]') -> None:
        """Called when the request is done, on any thread."""
        self._put(None)

    def cancel(self) -> None:
        """Cancel the request."""
        self.stop.set()

    async def chunks(self) -> AsyncIterator[Chunk]:
        """Chunks with text or progress. Raises `ModelUnavailable` after `timeout` seconds without progress."""
        seconds: float | None = None  # no timeout while queued
        while True:
            try:
                async with asyncio.timeout(seconds):
                    chunk = await self._queue.get()
            except TimeoutError:
                msg = f'the embedded model made no progress for {self._timeout:g} s; set a larger timeout'
                raise ModelUnavailable(msg) from None
            if chunk is None:
                return
            seconds = self._timeout
            if chunk.text or chunk.thinking or chunk.progress:
                yield chunk

    def _put(self, chunk: Chunk | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, chunk)
        except RuntimeError:  # the event loop is closed
            self.stop.set()
