"""A backend that computes nothing: it says what it was asked, word by word."""

import threading
from pathlib import Path

from habilis.models.contract import Progress
from habilis.models.local.backend import (
    BackendUnavailable,
    Cancellation,
    Chunk,
    Generation,
    GenerationRequest,
    LoadCancelled,
    OnChunk,
)

loaded: list[tuple[Path, int]] = []
closed: list[Path] = []
asks: list[GenerationRequest] = []
go = threading.Event()
"""Cleared, a backend waits at each word that is `wait`."""

can_load = threading.Event()
"""Cleared, a backend does not finish loading."""

loading = threading.Event()
"""Set when a backend loads."""

unavailable: list[str] = []
"""Reasons why the next backends that are asked for cannot be used."""

began = threading.Event()
"""Set when a backend has a request."""

stopped = threading.Event()
"""Set when a backend has been stopped."""


class PacedRunner:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._busy = threading.Lock()

    def generate(self, ask: GenerationRequest, show: OnChunk, stop: Cancellation) -> Generation:
        assert self._busy.acquire(blocking=False), 'two requests at once'
        try:
            return self._answer(ask, show, stop)
        finally:
            self._busy.release()

    def _answer(self, ask: GenerationRequest, show: OnChunk, stop: Cancellation) -> Generation:
        asks.append(ask)
        began.set()
        if ask.turns[-1]['content'] == 'fail':
            msg = 'llama_decode returned -3'
            raise RuntimeError(msg)
        show(Chunk(progress=Progress(phase='reading', done=7, total=7)))
        words = ask.turns[-1]['content'].split()[: ask.max_tokens]
        for word in words:
            while word == 'wait' and not go.wait(0.01):
                if stop.is_set():
                    break
            if stop.is_set():
                stopped.set()
                break
            show(Chunk(text=f'{word} '))
        finish = 'length' if len(words) == ask.max_tokens else 'stop'
        return Generation(finish=finish, input_tokens=7, output_tokens=len(words), cached_tokens=3)

    def close(self) -> None:
        closed.append(self._path)


def load(path: Path, context: int, show: OnChunk, stop: Cancellation) -> PacedRunner:
    if unavailable:
        raise BackendUnavailable(unavailable.pop())
    loaded.append((path, context))
    loading.set()
    show(Chunk(progress=Progress(phase='loading', done=1, total=2)))
    while not can_load.wait(0.01):
        if stop.is_set():
            stopped.set()
            raise LoadCancelled
    return PacedRunner(path)
