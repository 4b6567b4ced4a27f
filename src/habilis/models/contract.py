"""What the house knows of language models. Read this first; nothing outside this room imports a vendor.

A *model* takes messages and gives a reply, at once (`request`) or bit by bit (`stream`). Retry, fallback and cache are
models around models. Everything here is plain, frozen data, so a conversation can be stored and compared byte by byte.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol, runtime_checkable

from habilis.core.codec import Json

Role = Literal['system', 'user', 'assistant', 'tool']
Finish = Literal['stop', 'length', 'calls', 'filter', 'other']


@dataclass(frozen=True, kw_only=True)
class FunctionCall:
    """The model asks for a function to be called."""

    id: str
    name: str
    arguments: str
    """JSON, as the model wrote it: perhaps not valid."""


@dataclass(frozen=True, kw_only=True)
class Function:
    """A function offered to the model."""

    name: str
    description: str
    parameters: Mapping[str, Json]
    """JSON schema of an object."""


@dataclass(frozen=True, kw_only=True)
class Message:
    """One turn of a conversation."""

    role: Role
    text: str = ''
    calls: tuple[FunctionCall, ...] = ()
    """Of the assistant."""

    call_id: str | None = None
    """For `tool`: which call this answers."""

    call_name: str | None = None
    thinking: str = ''
    """What the model thought, where the provider tells. Never sent back."""

    cache: bool = False
    """The conversation up to here will be sent again: mark it for the provider's prompt cache."""

    created_at: datetime | None = None
    """For those who show or store conversations. Never sent."""

    by_agent: bool = False
    """For `user`: an observation or a hint of the agent, which may be shortened, not words of a person. Never sent."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What calls have cost. Add them with `+`; `sum(usages, Usage())` works."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Part of `input_tokens` that the provider read from its prompt cache."""

    seconds: float = 0.0
    cost: float | None = None
    """US dollars; None where no price is known. A sum counts what is known."""

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: 'Usage') -> 'Usage':
        known = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            seconds=self.seconds + other.seconds,
            cost=sum(known) if known else None,
        )


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the model answered."""

    text: str = ''
    calls: tuple[FunctionCall, ...] = ()
    thinking: str = ''
    finish: Finish = 'stop'
    model: str = ''
    """The `provider:model` that answered; with a fallback not always the one that was asked."""

    usage: Usage = field(default_factory=Usage)
    cached: bool = False
    """From the response cache: nothing was asked."""

    @property
    def message(self) -> Message:
        """The reply as a turn of the conversation."""
        return Message(role='assistant', text=self.text, calls=self.calls, thinking=self.thinking)


@dataclass(frozen=True, kw_only=True)
class Delta:
    """A bit of a reply, as it comes."""

    text: str = ''
    thinking: str = ''
    arguments: str = ''
    """Of a function call: more of its JSON."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How one request should be answered. None leaves it to the model's settings."""

    functions: tuple[Function, ...] = ()
    stop: tuple[str, ...] = ()
    temperature: float | None = None
    fallback_temperature: float | None = None
    """Used where neither the request nor the model's settings name a temperature."""

    max_tokens: int | None = None
    extra: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """More fields for the body of the request, passed through."""


NO_OPTIONS = Options()


@dataclass(frozen=True, kw_only=True)
class Traits:
    """What a model can do, as far as it is known."""

    functions: bool = True
    """Whether it calls functions reliably. If not, code travels in fenced blocks."""

    context_tokens: int = 128_000
    scripted: bool = False
    """Replies come from a script: shown to the user as such."""

    local: bool = False
    """Runs on this machine: tokens cost time, not money."""

    small: bool = False
    """A small model: gets the small-model policy."""


@runtime_checkable
class Model(Protocol):
    """A language model. Safe to share between tasks."""

    @property
    def name(self) -> str:
        """As `provider:model`."""
        ...

    @property
    def traits(self) -> Traits:
        """What it can do."""
        ...

    async def request(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
        """One reply. Raises `ModelError`."""
        ...

    def stream(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> AsyncIterator[Delta | Reply]:
        """The reply bit by bit; the last item is the whole `Reply`. Raises `ModelError`."""
        ...

    async def close(self) -> None:
        """Free connections and memory. May be called twice."""
        ...
