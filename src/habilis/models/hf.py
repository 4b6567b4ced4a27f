"""Hugging Face models inside this process (`hf:name-or-folder`), with `transformers` and `torch` (extra `hf`).

`config.extra` may say `device` (`auto`, `cpu`, `cuda`, …) and `load_in_8bit`; what else it holds goes to `generate`.
Nothing heavy is imported before the first request. One thread loads and generates, so requests wait for each other.
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
from habilis.models.contract import NO_OPTIONS, Delta, Message, Options, Reply, Traits, Usage
from habilis.models.stops import StopCutter

if TYPE_CHECKING:
    from habilis.models.hf_worker import Generated, Loaded

_CONTEXT_TOKENS = 4096
"""Assumed until the model is loaded and says how much it can read."""


class HuggingFaceModel:
    """A causal language model of the `transformers` library, run on this machine."""

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
        """As `hf:name-or-folder`."""
        return self.config.model

    @property
    def traits(self) -> Traits:
        """Code travels in fenced blocks. The context is known once the model is loaded."""
        return self._traits

    async def request(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
        """One reply. Raises `ModelError`."""
        await self._load()
        stream = self.stream(messages, options)
        try:
            async with asyncio.timeout(self.config.timeout):
                async for item in stream:
                    if isinstance(item, Reply):
                        return item
        except TimeoutError:
            raise self._too_slow() from None
        finally:
            await stream.aclose()
        msg = f'{self.name} ended with no reply'
        raise ModelError(msg)

    async def stream(
        self, messages: Sequence[Message], options: Options = NO_OPTIONS
    ) -> AsyncGenerator[Delta | Reply, None]:
        """The reply bit by bit. A reader that goes away stops the model at its next token."""
        loaded = await self._load()
        started = time.perf_counter()
        bits: asyncio.Queue[str | None] = asyncio.Queue()
        stopped = threading.Event()
        tell = _teller(bits)

        def generate() -> 'Generated':
            try:
                return loaded.generate(messages, options, tell, lambda: stopped.is_set() or self._closing.is_set())
            finally:
                tell(None)

        work = asyncio.get_running_loop().run_in_executor(self._thread, generate)
        work.add_done_callback(_look_at)
        cutter = StopCutter((*options.stop, *loaded.own_stops))
        text = ''
        try:
            while (bit := await self._next(bits)) is not None:
                if shown := cutter.feed(bit):
                    text += shown
                    yield Delta(text=shown)
            if rest := cutter.rest():
                text += rest
                yield Delta(text=rest)
            yield self._reply(text, await work, time.perf_counter() - started)
        finally:
            stopped.set()
            work.cancel()

    async def close(self) -> None:
        """Stop what runs, and free the memory."""
        self._closing.set()
        self._loaded = None
        await asyncio.to_thread(self._thread.shutdown, wait=True, cancel_futures=True)

    async def _load(self) -> 'Loaded':
        if self._closing.is_set():
            msg = f'{self.name} was closed'
            raise ModelError(msg)
        loaded = self._loaded
        if loaded is None:
            loaded = await asyncio.get_running_loop().run_in_executor(self._thread, self._load_once)
        return loaded

    def _load_once(self) -> 'Loaded':
        """On the thread, where two requests cannot load at the same time."""
        loaded = self._loaded
        if loaded is None:
            from habilis.models.hf_worker import load

            loaded = self._loaded = load(self.config)
            if self.config.context_tokens is None and loaded.context_tokens is not None:
                self._traits = replace(self._traits, context_tokens=loaded.context_tokens)
        return loaded

    async def _next(self, bits: asyncio.Queue[str | None]) -> str | None:
        try:
            async with asyncio.timeout(self.config.timeout):  # `wait_for` of Python 3.11 can lose a cancellation
                return await bits.get()
        except TimeoutError:
            raise self._too_slow() from None

    def _too_slow(self) -> ModelUnavailable:
        msg = f'{self.name} took longer than {self.config.timeout:g} s: set a longer timeout, or take a smaller model'
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


def _teller(bits: 'asyncio.Queue[str | None]') -> Callable[[str | None], None]:
    """Puts what the thread says into a queue of this loop, as long as the loop runs."""
    loop = asyncio.get_running_loop()

    def tell(bit: str | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(bits.put_nowait, bit)

    return tell


def _look_at(work: 'asyncio.Future[Generated]') -> None:
    """A reader that went away does not want to know how it ended."""
    if not work.cancelled():
        work.exception()
