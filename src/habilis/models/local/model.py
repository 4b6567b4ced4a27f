"""The embedded model as a `Model`: `local:`, `local:name` or `local:/path/to/weights.gguf`."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future

from habilis.core.errors import ModelError, ModelRefused, ModelUnavailable
from habilis.models.config import ModelConfig
from habilis.models.contract import NO_OPTIONS, Delta, Message, Options, Reply, Traits, Usage
from habilis.models.local import catalogue, store
from habilis.models.local.engine import Lease
from habilis.models.local.runner import Answer, Ask, Piece, Turn

CONTEXT_TOKENS = 8192
"""Used unless told otherwise: what a model was made for may need more memory than there is."""

MAX_TOKENS = 2048
"""Of one reply, unless told otherwise: a small model that repeats itself would go on until the context is full."""


class LocalModel:
    """Runs in this process. Nothing is loaded before the first request.

    `timeout` is the time without any progress after which a request is given up: waiting for another request does not
    count, and evaluating the prompt is progress.
    """

    def __init__(self, config: ModelConfig) -> None:
        self._config = config
        self._wanted = config.model_name
        self._context = config.context_tokens or CONTEXT_TOKENS
        self._small = bool(config.small)
        if not store.looks_like_path(self._wanted):
            entry = catalogue.entry(self._wanted)
            self._wanted = entry.name
            self._small = entry.small if config.small is None else config.small
        self._lease: Lease | None = None

    @property
    def name(self) -> str:
        """As `local:name`."""
        return f'local:{self._wanted}'

    @property
    def traits(self) -> Traits:
        """Code travels in fenced blocks: small models do not call functions reliably."""
        return Traits(functions=False, context_tokens=self._context, local=True, small=self._small)

    async def request(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
        """One reply. Raises `ModelError`."""
        async with contextlib.aclosing(self._stream(messages, options)) as bits:
            async for bit in bits:
                if isinstance(bit, Reply):
                    return bit
        msg = f'{self.name} ended without a reply'
        raise ModelError(msg)

    def stream(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> AsyncIterator[Delta | Reply]:
        """The reply token by token; the last item is the whole `Reply`. Raises `ModelError`."""
        return self._stream(messages, options)

    async def close(self) -> None:
        """Free the memory, if no other model of this process uses the same weights."""
        lease, self._lease = self._lease, None
        if lease is not None:
            await asyncio.to_thread(lease.release)

    async def _stream(self, messages: Sequence[Message], options: Options):
        ask = self._ask(messages, options)
        engine = (await self._leased()).engine
        started = time.monotonic()
        listener = _Listener(self._config.timeout)
        try:
            future = engine.submit(ask, listener.hear, listener.stop)
            future.add_done_callback(listener.end)
            text: list[str] = []
            thinking: list[str] = []
            async for piece in listener.pieces():
                text.append(piece.text)
                thinking.append(piece.thinking)
                yield Delta(text=piece.text, thinking=piece.thinking)
            answer = future.result()
        finally:
            listener.give_up()
        yield Reply(
            text=''.join(text),
            thinking=''.join(thinking),
            finish=answer.finish,
            model=self.name,
            usage=_usage(answer, time.monotonic() - started),
        )

    async def _leased(self) -> Lease:
        if self._lease is None:
            path = await asyncio.to_thread(store.find, self._wanted)
            if self._lease is None:  # another task may have been faster
                self._lease = Lease(path, self._context)
        return self._lease

    def _ask(self, messages: Sequence[Message], options: Options) -> Ask:
        if options.functions:
            msg = f'{self.name} calls no functions; ask it for code in a fenced block'
            raise ModelRefused(msg)
        config = self._config
        temperature = config.temperature_for(options)
        return Ask(
            turns=tuple(turn(message) for message in messages),
            temperature=temperature if temperature is not None else 0.0,
            max_tokens=options.max_tokens or config.max_tokens or MAX_TOKENS,
            stop=options.stop,
            extra={**config.extra, **options.extra},
        )


def turn(message: Message) -> Turn:
    """A message as text: calls, and the answers to them, in words that any template takes."""
    calls = [f'{call.name}({call.arguments})' for call in message.calls]
    text = '\n'.join(part for part in (message.text, *calls) if part)
    if message.role == 'tool':
        return Turn(role='user', content=f'{message.call_name or "The call"} returned:\n{text}')
    return Turn(role=message.role, content=text)


def _usage(answer: Answer, seconds: float) -> Usage:
    return Usage(
        requests=1,
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        cached_tokens=answer.cached_tokens,
        seconds=seconds,
        cost=0.0,
    )


class _Listener:
    """Carries pieces from the engine's thread to the event loop."""

    def __init__(self, timeout: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[Piece | None] = asyncio.Queue()
        self._timeout = timeout
        self.stop = threading.Event()

    def hear(self, piece: Piece) -> None:
        """Called on the engine's thread."""
        self._put(piece)

    def end(self, _: 'Future[Answer]') -> None:
        """Called when the engine is done with it, on whatever thread."""
        self._put(None)

    def give_up(self) -> None:
        """Nobody listens any more: the engine should go on to the next request."""
        self.stop.set()

    async def pieces(self) -> AsyncIterator[Piece]:
        """What has text, as it comes. Raises `ModelUnavailable` if nothing at all comes for too long."""
        seconds: float | None = None  # until its turn has come
        while True:
            try:
                async with asyncio.timeout(seconds):
                    piece = await self._queue.get()
            except TimeoutError:
                msg = f'the embedded model made no progress for {self._timeout:g} s; a larger timeout gives it more'
                raise ModelUnavailable(msg) from None
            if piece is None:
                return
            seconds = self._timeout
            if piece.text or piece.thinking:
                yield piece

    def _put(self, piece: Piece | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, piece)
        except RuntimeError:  # the loop is closed
            self.stop.set()
