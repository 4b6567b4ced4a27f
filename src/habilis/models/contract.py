"""The contract of language models. Read this first; nothing outside this room imports a vendor SDK.

A *model* takes messages and returns a reply, whole (`request`) or streamed (`stream`). Retry, fallback and cache are
models that wrap models. All data here is frozen, so a conversation can be stored and compared byte by byte.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol, runtime_checkable

from habilis.core.codec import Json
from habilis.core.errors import ModelRefused
from habilis.core.previews import short_repr
from habilis.models.files import Image

Role = Literal['system', 'user', 'assistant', 'tool']
Finish = Literal['stop', 'length', 'calls', 'filter', 'early', 'other']
"""Why a reply ended; `early`: it was stopped once it had what was needed, and more was to come."""


@dataclass(frozen=True, kw_only=True)
class FunctionCall:
    """A function call requested by the model."""

    id: str
    name: str
    arguments: str
    """JSON as the model wrote it; may be invalid."""


@dataclass(frozen=True, kw_only=True)
class Function:
    """A function offered to the model."""

    name: str
    description: str
    parameters: Mapping[str, Json]
    """JSON schema of an object."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Message:
    """One message of a conversation."""

    role: Role
    text: str = ''
    calls: tuple[FunctionCall, ...] = ()
    """For `assistant`: the calls it requests."""

    call_id: str | None = None
    """For `tool`: id of the call that this message answers."""

    call_name: str | None = None
    thinking: str = ''
    """Reasoning text, where the provider returns it. Never sent back."""

    cache: bool = False
    """Set a prompt-cache point here, as the conversation up to this message will be sent again."""

    created_at: datetime | None = None
    """For display and storage. Never sent."""

    images: tuple[Image, ...] = ()
    """For `user`: what the model is shown with the text, where it sees images (`Traits.images`)."""

    by_agent: bool = False
    """For `user`: written by the agent (observation or hint), not by a person; may be truncated. Never sent."""

    memory: str = ''
    """For `user`: what a memory has for the message. Kept apart from `text`; the agent sends both."""

    situation: str = ''
    """For `user`: the date and the workspace, if the model does not know them yet. Kept apart from `text`, too."""

    note: str = ''
    """For `user`: what a policy adds to the message. Likewise."""

    def __repr__(self) -> str:
        return short_repr(self)


@dataclass(frozen=True)
class Recollection:
    """What a memory has for a task, as a part of it: `agent.run(['My boat?', Recollection('- The boat is blue')])`."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Tokens, time and cost of model calls. Add with `+`, or with `sum(usages, Usage())`."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """The part of `input_tokens` read from the provider's prompt cache."""

    seconds: float = 0.0
    cost: float | None = None
    """US dollars; None if the price is unknown. A sum includes known costs only."""

    @property
    def tokens(self) -> int:
        """Input plus output tokens."""
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
class ReplyToken:
    """One token of a reply, where the model says how likely it was."""

    text: str
    logprob: float
    id: int | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Reply:
    """Reply of a model."""

    text: str = ''
    calls: tuple[FunctionCall, ...] = ()
    thinking: str = ''
    finish: Finish = 'stop'
    model: str = ''
    """The `provider:model` that answered; with a fallback it may differ from the requested one."""

    usage: Usage = field(default_factory=Usage)
    cached: bool = False
    """Whether the reply comes from the response cache."""

    tokens: tuple[ReplyToken, ...] = ()
    """Its tokens, if the request asked for `logprobs` (`Options.extra`) and the model gives them."""

    def __repr__(self) -> str:
        return short_repr(self)

    @property
    def message(self) -> Message:
        """The reply as a message of the conversation."""
        return Message(role='assistant', text=self.text, calls=self.calls, thinking=self.thinking)


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What a model does before it writes, where it is known."""

    phase: Literal['loading', 'reading']
    """`loading` its weights, or `reading` the prompt."""

    done: int = 0
    """Tokens of the prompt that were read, or bytes of the weights."""

    total: int | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Delta:
    """Increment of a streamed reply."""

    text: str = ''
    thinking: str = ''
    arguments: str = ''
    """Next part of a function call's JSON arguments."""

    progress: Progress | None = None
    """The reply has not started; this is how far the model is."""

    def __repr__(self) -> str:
        return short_repr(self)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of one request. None: use the model's settings."""

    functions: tuple[Function, ...] = ()
    stop: tuple[str, ...] = ()
    temperature: float | None = None
    fallback_temperature: float | None = None
    """Used where neither the request nor the model's settings name a temperature."""

    max_tokens: int | None = None
    extra: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """More fields for the body of the request, passed through unchanged."""


NO_OPTIONS = Options()


@dataclass(frozen=True, kw_only=True)
class Traits:
    """Capabilities and kind of a model, as far as known."""

    functions: bool = True
    """Whether it calls functions reliably. If not, the model writes code in fenced blocks."""

    context_tokens: int = 128_000
    """Size of the context window."""

    scripted: bool = False
    """Replies come from a script; the user interface says so."""

    local: bool = False
    """Runs in this process: tokens cost time and no money, and a reply is stopped as soon as it is complete."""

    small: bool = False
    """A small model: gets the small-model policy."""

    images: bool = False
    """Whether it sees images. If not, it refuses messages with images."""


@runtime_checkable
class Model(Protocol):
    """A language model. Safe to share between asyncio tasks."""

    @property
    def name(self) -> str:
        """`provider:model`."""
        ...

    @property
    def traits(self) -> Traits:
        """Capabilities and kind."""
        ...

    async def request(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
        """Return the reply. Raises `ModelError`."""
        ...

    def stream(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> AsyncIterator[Delta | Reply]:
        """Stream the reply; the last item is the complete `Reply`. Raises `ModelError`."""
        ...

    async def close(self) -> None:
        """Release connections and memory. Idempotent."""
        ...


def check_images(model: Model, images: Sequence[Image]) -> None:
    """Raise `ModelRefused` if there are images and the model does not see any."""
    if images and not model.traits.images:
        name = images[0].name
        msg = (
            f'{model.name} does not see images ({name}); use a model that does, such as anthropic:claude-sonnet-5-5, '
            f'set images=true in its settings if it does, or pass File({name!r}) for code to open'
        )
        raise ModelRefused(msg)


def images_in(messages: Sequence[Message]) -> list[Image]:
    """The images of a conversation."""
    return [image for message in messages for image in message.images]
