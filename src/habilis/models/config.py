"""What is known about one model before it is asked anything: its name, and how to ask."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from habilis.core.codec import Json


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The settings of one model, put together from arguments, environment, `.env` and `habilis.toml`."""

    model: str
    """As `provider:model`, for instance `anthropic:claude-sonnet-5-5` or `local:qwen2.5-coder-1.5b`."""

    temperature: float | None = None
    max_tokens: int | None = None
    """Of one reply."""

    timeout: float = 120.0
    """Seconds one request may take; while streaming, until the next bit comes."""

    base_url: str | None = None
    """Of an OpenAI-compatible server. It wins over what the name looks like."""

    api_key: str | None = field(default=None, repr=False)
    functions: bool | None = None
    """Whether code travels as a function call (True) or as a fenced block (False); None: what suits the model."""

    context_tokens: int | None = None
    """How much the model can read; None: what is known of it."""

    retries: int = 4
    """How often a request that may succeed later is tried again."""

    extra: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """More options, passed through in the body of each request (`num_ctx`, `top_p`, …)."""

    @property
    def provider(self) -> str:
        """The part before the colon, or an empty string."""
        return self.model.partition(':')[0] if ':' in self.model else ''

    @property
    def model_name(self) -> str:
        """The part after the colon: what the provider calls it."""
        return self.model.partition(':')[2] if ':' in self.model else self.model

    def with_changes(self, **changes: object) -> Self:
        """The same with other values; those that are None are left as they were."""
        return replace(self, **{name: value for name, value in changes.items() if value is not None})  # pyright: ignore[reportArgumentType]
