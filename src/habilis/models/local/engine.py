"""Weights in memory, shared: all models of this process with the same file and context use one copy.

Each has one thread, so requests wait for each other in order and the event loop waits for none.
"""

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from habilis.core.errors import HabilisError, ModelError
from habilis.models.local import runner
from habilis.models.local.runner import Answer, Ask, Piece, Runner, Show


class Engine:
    """One file of weights, loaded by the first request."""

    def __init__(self, path: Path, context: int) -> None:
        self._path = path
        self._context = context
        self._thread = ThreadPoolExecutor(1, thread_name_prefix='habilis-local')
        self._runner: Runner | None = None

    def submit(self, ask: Ask, show: Show, stop: threading.Event) -> 'Future[Answer]':
        """Queue a request. `show` is called on the engine's thread, first with an empty piece when its turn comes."""
        return self._thread.submit(self._answer, ask, show, stop)

    def close(self) -> None:
        """Free the memory. Blocks until the thread has ended, which is soon after its requests were stopped."""
        self._thread.submit(self._unload)
        self._thread.shutdown()

    def _answer(self, ask: Ask, show: Show, stop: threading.Event) -> Answer:
        if stop.is_set():  # given up while it waited
            return Answer(finish='other', input_tokens=0, output_tokens=0, cached_tokens=0)
        show(Piece())
        if self._runner is None:
            self._runner = runner.load(self._path, self._context)
            show(Piece())
        try:
            return self._runner.answer(ask, show, stop)
        except HabilisError:
            raise
        except Exception as error:  # whatever llama.cpp came upon: what it has in memory may be spoilt
            self._unload()
            msg = f'llama.cpp failed: {error}. The next request loads the model anew'
            raise ModelError(msg) from error

    def _unload(self) -> None:
        if self._runner is not None:
            self._runner.close()
            self._runner = None


_engines: dict[tuple[Path, int], tuple[Engine, int]] = {}
_guard = threading.Lock()


class Lease:
    """A share in an engine. The last one to be released frees it."""

    def __init__(self, path: Path, context: int) -> None:
        self._key = (path.resolve(), context)
        with _guard:
            self.engine, users = _engines.get(self._key) or (Engine(*self._key), 0)
            _engines[self._key] = (self.engine, users + 1)
        self._held = True

    def release(self) -> None:
        """Give it back; a second time does nothing. Blocks while the memory is freed."""
        with _guard:
            if not self._held:
                return
            self._held = False
            engine, users = _engines.pop(self._key)
            if users > 1:
                _engines[self._key] = (engine, users - 1)
                return
        engine.close()
