"""Configuration of one model."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from habilis.core.codec import Json
from habilis.core.errors import SettingsError
from habilis.models.contract import Options

_TYPES = (('model', str), ('base_url', str | None))
_VALIDATED = (
    'temperature',
    'max_tokens',
    'timeout',
    'api_key',
    'functions',
    'context_tokens',
    'small',
    'images',
    'retries',
    'extra',
)


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Settings of one model, merged from arguments, environment, `.env` and `habilis.toml`."""

    model: str
    """`provider:model`, for instance `anthropic:claude-sonnet-5-5` or `local:qwen2.5-coder-1.5b`."""

    temperature: float | None = None
    max_tokens: int | None = None
    """Maximum length of one reply."""

    timeout: float = 120.0
    """Seconds to wait for the reply; while streaming, for each next chunk."""

    base_url: str | None = None
    """URL of the server, in place of the provider's. A name without a provider is a model of that server."""

    api_key: str | None = field(default=None, repr=False)
    functions: bool | None = None
    """Whether the model sends code as a function call (True) or in a fenced block (False); None: as its server says,
    else a function call."""

    context_tokens: int | None = None
    """Size of the context window; None: as its server says, else the default of the provider."""

    small: bool | None = None
    """Whether the agent uses the small-model policy; None: as the catalogue of embedded models says, else False."""

    images: bool | None = None
    """Whether the model sees images; None: as its server says, else by its name and provider."""

    retries: int = 4
    """Maximum number of retries after a transient error."""

    extra: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """More fields for the body of each request, passed through unchanged (`num_ctx`, `top_p`, …)."""

    def __post_init__(self) -> None:
        """Validate and convert the values. Raises `SettingsError`."""
        from habilis.core.settings import check_model  # here, so that the message types do not load pydantic

        values = check_model('any', {name: getattr(self, name) for name in _VALIDATED})
        for name in _VALIDATED:
            if name != 'api_key' and getattr(self, name) is not None:  # `'0.5'` has become 0.5
                object.__setattr__(self, name, getattr(values, name))
        wrong = [name for name, kind in _TYPES if not isinstance(getattr(self, name), kind)]
        wrong += [name for name in ('timeout', 'retries', 'extra') if getattr(self, name) is None]
        if wrong:
            msg = f'invalid value for {wrong[0]} of ModelConfig: {getattr(self, wrong[0])!r}'
            raise SettingsError(msg)

    @property
    def provider(self) -> str:
        """The part of the name before the colon, or an empty string."""
        return self.model.partition(':')[0] if ':' in self.model else ''

    @property
    def model_name(self) -> str:
        """The part of the name after the colon: the provider's own name of the model."""
        return self.model.partition(':')[2] if ':' in self.model else self.model

    def temperature_for(self, options: Options) -> float | None:
        """Temperature of one request; None: the provider's default."""
        if options.temperature is not None:
            return options.temperature
        if self.temperature is not None or 'temperature' in self.extra or 'temperature' in options.extra:
            return self.temperature
        return options.fallback_temperature

    def with_changes(self, **changes: object) -> Self:
        """Return a copy with the given values; None leaves a value unchanged."""
        return replace(self, **{name: value for name, value in changes.items() if value is not None})  # pyright: ignore[reportArgumentType]
