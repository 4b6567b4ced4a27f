"""Hugging Face models in this process (`hf:name-or-folder`), with `transformers` and `torch` (extra `hf`).

`config.extra` may set `device` (`auto`, `cpu`, `cuda`, …) and `load_in_8bit`; other fields are passed to `generate`.
Nothing heavy is imported before the first request. One thread loads and generates, so requests run one at a time.
"""

import asyncio
import importlib.util
import threading
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from habilis.core.errors import ModelError, ModelUnavailable
from habilis.models.config import ModelConfig
from habilis.models.contract import NO_OPTIONS, Delta, Message, Options, Reply, Traits, Usage, check_images, images_in
from habilis.models.stop_sequences import StopFilter

if TYPE_CHECKING:
    from habilis.models.hf_worker import Generated, Loaded

_CONTEXT_TOKENS = 4096
"""Assumed context window until the model is loaded."""


class HuggingFaceModel:
    """A causal language model of the `transformers` library in this process."""

    def __init__(self, config: ModelConfig) -> None:
        for package in ('torch', 'transformers'):
            if importlib.util.find_spec(package) is None:
                msg = f"{config.model} needs {package}: pip install 'habilis[hf]'"
                raise ImportError(msg, name=package)
        self.config = config
        self._traits = Traits(
            functions=False,
            local=True,
            context_tokens=config.context_tokens or _CONTEXT_TOKENS,
            small=bool(config.small),
        )
        self._thread = ThreadPoolExecutor(1, thread_name_prefix='habilis-hf')
        self._loaded: Loaded | None = None
        self._closing = threading.Event()

    @property
    def name(self) -> str:
        """`hf:name-or-folder`."""
        return self.config.model

    @property
    def traits(self) -> Traits:
        """No function calls. The context window is known once the model is loaded."""
        return self._traits

    async def request(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
        """Return the reply. Raises `ModelError`."""
        await self._load()
        stream = self.stream(messages, options)
        try:
            async with asyncio.timeout(self.config.timeout):
                async for item in stream:
                    if isinstance(item, Reply):
                        return item
        except TimeoutError:
            raise self._timed_out() from None
        finally:
            await stream.aclose()
        msg = f'{self.name} ended without a reply'
        raise ModelError(msg)

    async def stream(
        self, messages: Sequence[Message], options: Options = NO_OPTIONS
    ) -> AsyncGenerator[Delta | Reply, None]:
        """Stream the reply. Closing the stream stops the model at its next token."""
        check_images(self, images_in(messages))
        loaded = await self._load()
        started = time.perf_counter()
        texts: asyncio.Queue[str | None] = asyncio.Queue()
        stopped = threading.Event()
        put = _thread_safe_put(texts)

        def generate() -> 'Generated':
            try:
                return loaded.generate(messages, options, put, lambda: stopped.is_set() or self._closing.is_set())
            finally:
                put(None)

        generation = asyncio.get_running_loop().run_in_executor(self._thread, generate)
        generation.add_done_callback(_consume_exception)
        stops = StopFilter((*options.stop, *loaded.template_stops))
        text = ''
        try:
            while (text_chunk := await self._next(texts)) is not None:
                if visible := stops.feed(text_chunk):
                    text += visible
                    yield Delta(text=visible)
            if rest := stops.flush():
                text += rest
                yield Delta(text=rest)
            yield self._reply(text, await generation, time.perf_counter() - started)
        finally:
            stopped.set()
            generation.cancel()

    async def close(self) -> None:
        """Cancel running requests and free the memory."""
        self._closing.set()
        self._loaded = None
        await asyncio.to_thread(self._thread.shutdown, wait=True, cancel_futures=True)

    async def _load(self) -> 'Loaded':
        if self._closing.is_set():
            msg = f'{self.name} is closed'
            raise ModelError(msg)
        loaded = self._loaded
        if loaded is None:
            loaded = await asyncio.get_running_loop().run_in_executor(self._thread, self._load_once)
        return loaded

    def _load_once(self) -> 'Loaded':
        """Load the model on its thread, so that concurrent requests load it once."""
        loaded = self._loaded
        if loaded is None:
            from habilis.models.hf_worker import load

            loaded = self._loaded = load(self.config)
            if self.config.context_tokens is None and loaded.context_tokens is not None:
                self._traits = replace(self._traits, context_tokens=loaded.context_tokens)
        return loaded

    async def _next(self, texts: asyncio.Queue[str | None]) -> str | None:
        try:
            async with asyncio.timeout(self.config.timeout):  # `wait_for` of Python 3.11 can lose a cancellation
                return await texts.get()
        except TimeoutError:
            raise self._timed_out() from None

    def _timed_out(self) -> ModelUnavailable:
        msg = f'{self.name} timed out after {self.config.timeout:g} s: set a longer timeout, or use a smaller model'
        return ModelUnavailable(msg)

    def _reply(self, text: str, generated: 'Generated', seconds: float) -> Reply:
        usage = Usage(
            requests=1,
            input_tokens=generated.input_tokens,
            output_tokens=generated.output_tokens,
            seconds=seconds,
            cost=0.0,
        )
        return Reply(text=text, finish=generated.finish, model=self.name, usage=usage)


def _thread_safe_put(texts: 'asyncio.Queue[str | None]') -> Callable[[str | None], None]:
    """Return a thread-safe function that puts text into a queue of this event loop."""
    loop = asyncio.get_running_loop()

    def put(text_chunk: str | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(texts.put_nowait, text_chunk)

    return put


def _consume_exception(generation: 'asyncio.Future[Generated]') -> None:
    """Retrieve the exception of an abandoned request, so that asyncio does not log it."""
    if not generation.cancelled():
        generation.exception()
