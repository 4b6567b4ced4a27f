"""What runs the weights: llama.cpp, through one of two Python packages. A runner is used by one thread at a time."""

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
"""Tokens of a prompt that are evaluated before a look at whether somebody has asked for an end."""

RUNNERS = {
    'llama_cpp': 'habilis.models.local.llamacpp',
    'xllamacpp': 'habilis.models.local.xllamacpp',
}
"""Package, and our module for it. The first that can be imported is used: compiled here, it knows this processor."""


class Turn(TypedDict):
    """A message as chat templates take it."""

    role: str
    content: str


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One request to a runner."""

    turns: tuple[Turn, ...]
    temperature: float
    max_tokens: int
    stop: tuple[str, ...] = ()
    extra: Mapping[str, Json] = field(default_factory=dict[str, Json])


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came of it, beside the text that was shown as it came."""

    finish: Finish
    input_tokens: int
    output_tokens: int
    cached_tokens: int


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A bit of the reply. An empty one only says that there is progress."""

    text: str = ''
    thinking: str = ''


Show = Callable[[Piece], None]


class Runner(Protocol):
    """Weights in memory."""

    def answer(self, ask: Ask, show: Show, stop: threading.Event) -> Answer:
        """Generate a reply until its end, or soon after `stop` is set. Raises `ModelError`."""
        ...

    def close(self) -> None:
        """Free the memory."""
        ...


class _Module(Protocol):
    @staticmethod
    def load(path: Path, context: int) -> Runner: ...


def load(path: Path, context: int) -> Runner:
    """The weights in memory, by the best runner that is here. Takes seconds."""
    for package, module in RUNNERS.items():
        try:
            import_module(package)
        except (ImportError, OSError, RuntimeError):  # not here, or its library does not fit this machine
            continue
        ours: _Module = import_module(module)  # pyright: ignore[reportAssignmentType]
        return ours.load(path, context)
    msg = "the embedded model needs llama.cpp: pip install 'habilis[local]'"
    raise ModelError(msg)


def cannot_load(path: Path) -> ModelError:
    """For a file that llama.cpp does not take."""
    msg = (
        f'llama.cpp cannot load {path}: the file is damaged or of an unknown kind, or there is too little memory. '
        'A smaller context_tokens needs less; `habilis models remove` and `install` get the file anew'
    )
    return ModelError(msg)
