"""Loaded weights, shared by all models of this process with the same file and context size.

Each engine has one thread, which runs requests in order and never blocks the event loop.
"""

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from habilis.core.errors import HabilisError, ModelError
from habilis.models.contract import Progress
from habilis.models.local import backend
from habilis.models.local.backend import (
    Cancellation,
    Chunk,
    Generation,
    GenerationRequest,
    InferenceBackend,
    LoadCancelled,
    OnChunk,
)

_CANCELLED = Generation(finish='other', input_tokens=0, output_tokens=0, cached_tokens=0)


class WeightsEngine:
    """One file of weights. The first request loads it."""

    def __init__(self, path: Path, context: int) -> None:
        self._path = path
        self._context = context
        self._thread = ThreadPoolExecutor(1, thread_name_prefix='habilis-local')
        self._backend: InferenceBackend | None = None

    def submit(self, request: GenerationRequest, on_chunk: OnChunk, stop: Cancellation) -> 'Future[Generation]':
        """Queue a request. `on_chunk` is called on the engine's thread, first with an empty chunk at the start."""
        return self._thread.submit(self._generate, request, on_chunk, stop)

    def close(self) -> None:
        """Free the memory. Blocks until the thread has ended."""
        self._thread.submit(self._unload)
        self._thread.shutdown()

    def _generate(self, request: GenerationRequest, on_chunk: OnChunk, stop: Cancellation) -> Generation:
        if stop.is_set():  # cancelled while queued
            return _CANCELLED
        on_chunk(Chunk())
        if self._backend is None:
            on_chunk(Chunk(progress=Progress(phase='loading')))
            try:
                self._backend = backend.load(self._path, self._context, on_chunk, stop)
            except LoadCancelled:
                return _CANCELLED
            on_chunk(Chunk())
        try:
            return self._backend.generate(request, on_chunk, stop)
        except HabilisError:
            raise
        except Exception as error:  # the state of llama.cpp may be corrupt
            self._unload()
            msg = f'llama.cpp failed: {error}. The next request reloads the model'
            raise ModelError(msg) from error

    def _unload(self) -> None:
        if self._backend is not None:
            self._backend.close()
            self._backend = None


_engines: dict[tuple[Path, int], tuple[WeightsEngine, int]] = {}
_guard = threading.Lock()


class EngineLease:
    """A reference to a shared engine. Releasing the last one closes the engine."""

    def __init__(self, path: Path, context: int) -> None:
        self._key = (path.resolve(), context)
        with _guard:
            self.engine, users = _engines.get(self._key) or (WeightsEngine(*self._key), 0)
            _engines[self._key] = (self.engine, users + 1)
        self._held = True

    def release(self) -> None:
        """Release the reference. Idempotent. Blocks while the memory is freed."""
        with _guard:
            if not self._held:
                return
            self._held = False
            engine, users = _engines.pop(self._key)
            if users > 1:
                _engines[self._key] = (engine, users - 1)
                return
        engine.close()
