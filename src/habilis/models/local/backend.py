"""Backends of the embedded model: llama.cpp in one of two builds. A backend is used by one thread."""

import ctypes
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Protocol, TypedDict

from habilis.core.codec import Json
from habilis.core.errors import ModelError, SettingsError
from habilis.models.contract import Finish, Progress

logger = logging.getLogger('habilis.models')

BATCH = 32
"""Prompt tokens evaluated between two reports of progress. Larger batches are not faster on a CPU."""

BACKENDS = {
    'jinja2': 'habilis.models.local.prebuilt',
    'xllamacpp': 'habilis.models.local.xllamacpp',
}
"""Python package and our module that needs it, in order of preference."""

VARIABLE = 'HABILIS_ENGINE'
"""Environment variable that names one backend, by the name of our module."""


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
    progress: Progress | None = None


OnChunk = Callable[[Chunk], None]


class Cancellation:
    """Tells a backend to stop. C code can read it, without Python: `address` is a string, empty until it is set."""

    def __init__(self) -> None:
        self._flag = ctypes.create_string_buffer(2)

    @property
    def address(self) -> int:
        """Address of the string."""
        return ctypes.addressof(self._flag)

    def set(self) -> None:
        """Cancel."""
        self._flag[0] = b'\x01'

    def is_set(self) -> bool:
        """Whether it was cancelled."""
        return self._flag[0] != b'\0'


ABORT_CALLBACK: int = ctypes.cast(ctypes.CDLL('msvcrt' if os.name == 'nt' else None).strlen, ctypes.c_void_p).value or 0
"""Address of a C function that llama.cpp calls many times per token, and stops if it does not return 0: `strlen` of the
string of a `Cancellation`. A Python function would have to wait for the interpreter's lock each time."""


class BackendUnavailable(Exception):
    """A backend cannot be used on this machine; the next one may."""


class LoadCancelled(Exception):
    """Loading was cancelled."""


class InferenceBackend(Protocol):
    """Loaded weights."""

    def generate(self, request: GenerationRequest, on_chunk: OnChunk, stop: Cancellation) -> Generation:
        """Generate a reply; ends early when `stop` is set. Raises `ModelError`."""
        ...

    def close(self) -> None:
        """Free the memory."""
        ...


class _Module(Protocol):
    @staticmethod
    def load(path: Path, context: int, on_chunk: OnChunk, stop: Cancellation) -> InferenceBackend: ...


def load(path: Path, context: int, on_chunk: OnChunk, stop: Cancellation) -> InferenceBackend:
    """Load weights with the first backend that works here. Takes seconds. Raises `LoadCancelled` if `stop` is set."""
    reason: str | None = None
    for package, module in _candidates().items():
        try:
            import_module(package)
        except (ImportError, OSError, RuntimeError):  # not installed, or built for another machine
            continue
        module_of_backend: _Module = import_module(module)  # pyright: ignore[reportAssignmentType]
        try:
            backend = module_of_backend.load(path, context, on_chunk, stop)
        except BackendUnavailable as error:
            reason = str(error)
            continue
        if reason is not None:
            logger.warning('the embedded model uses %s, which is slower: %s', package, reason)
        return backend
    msg = reason or "the embedded model needs llama.cpp: pip install 'habilis[local]'"
    raise ModelError(msg)


def _candidates() -> dict[str, str]:
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return BACKENDS
    named = {module.rpartition('.')[2]: (package, module) for package, module in BACKENDS.items()}
    if wanted not in named:
        msg = f'{VARIABLE}={wanted} is not one of {", ".join(named)}'
        raise SettingsError(msg)
    return dict([named[wanted]])


def cannot_load(path: Path) -> ModelError:
    """The error for a file that llama.cpp cannot load."""
    msg = (
        f'llama.cpp cannot load {path}: the file is damaged or of an unknown format, or memory is too small. '
        'Set a smaller context_tokens, or download the file again with `habilis models rm` and `install`'
    )
    return ModelError(msg)
