"""Backends of the embedded model: llama.cpp through one of two Python packages. A backend is used by one thread."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Protocol, TypedDict

from habilis.core.codec import Json
from habilis.core.errors import ModelError
from habilis.models.contract import Finish

BATCH = 128
"""Prompt tokens evaluated between two checks for cancellation."""

BACKENDS = {
    'llama_cpp': 'habilis.models.local.llamacpp',
    'xllamacpp': 'habilis.models.local.xllamacpp',
}
"""Python package and our module for it, in order of preference. A package compiled here is faster, so it is first."""


class ChatTurn(TypedDict):
    """A message as chat templates expect it."""

    role: str
    content: str


@dataclass(frozen=True, kw_only=True)
class GenerationRequest:
    """A request to a backend."""

    turns: tuple[ChatTurn, ...]
    temperature: float
    max_tokens: int
    stop: tuple[str, ...] = ()
    extra: Mapping[str, Json] = field(default_factory=dict[str, Json])


@dataclass(frozen=True, kw_only=True)
class Generation:
    """Result of a request, without its text, which was streamed."""

    finish: Finish
    input_tokens: int
    output_tokens: int
    cached_tokens: int


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Part of a reply. An empty chunk reports progress only."""

    text: str = ''
    thinking: str = ''


OnChunk = Callable[[Chunk], None]


class Backend(Protocol):
    """Loaded weights."""

    def generate(self, request: GenerationRequest, on_chunk: OnChunk, stop: threading.Event) -> Generation:
        """Generate a reply; ends early when `stop` is set. Raises `ModelError`."""
        ...

    def close(self) -> None:
        """Free the memory."""
        ...


class _Module(Protocol):
    @staticmethod
    def load(path: Path, context: int) -> Backend: ...


def load(path: Path, context: int) -> Backend:
    """Load weights with the first backend that is installed. Takes seconds."""
    for package, module in BACKENDS.items():
        try:
            import_module(package)
        except (ImportError, OSError, RuntimeError):  # not installed, or built for another machine
            continue
        module_of_backend: _Module = import_module(module)  # pyright: ignore[reportAssignmentType]
        return module_of_backend.load(path, context)
    msg = "the embedded model needs llama.cpp: pip install 'habilis[local]'"
    raise ModelError(msg)


def cannot_load(path: Path) -> ModelError:
    """The error for a file that llama.cpp cannot load."""
    msg = (
        f'llama.cpp cannot load {path}: the file is damaged or of an unknown format, or memory is too small. '
        'Set a smaller context_tokens, or download the file again with `habilis models remove` and `install`'
    )
    return ModelError(msg)
