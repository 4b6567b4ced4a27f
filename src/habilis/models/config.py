"""What is known about one model before it is asked anything: its name, and how to ask."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from habilis.core.codec import Json
from habilis.core.errors import SettingsError
from habilis.models.contract import Options

_TEXTS = (('model', str), ('base_url', str | None))
_CHECKED = (
    'temperature',
    'max_tokens',
    'timeout',
    'api_key',
    'functions',
    'context_tokens',
    'small',
    'retries',
    'extra',
)


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The settings of one model, put together from arguments, environment, `.env` and `habilis.toml`."""

    model: str
    """As `provider:model`, for instance `anthropic:claude-sonnet-5-5` or `local:qwen2.5-coder-1.5b`."""

    temperature: float | None = None
    max_tokens: int | None = None
    """Of one reply."""

    timeout: float = 120.0
    """Seconds to wait for an answer; while streaming, for its next bit, each time anew."""

    base_url: str | None = None
    """Of an OpenAI-compatible server. It wins over what the name looks like."""

    api_key: str | None = field(default=None, repr=False)
    functions: bool | None = None
    """Whether code travels as a function call (True) or as a fenced block (False); None: what suits the model."""

    context_tokens: int | None = None
    """How much the model can read; None: what is known of it."""

    small: bool | None = None
    """Whether the model gets the small-model policy; None: what the catalogue of embedded models says, else False."""

    retries: int = 4
    """How often a request that may succeed later is tried again."""

    extra: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """More options, passed through in the body of each request (`num_ctx`, `top_p`, …)."""

    def __post_init__(self) -> None:
        """Raises `SettingsError` for a value that no request could carry."""
        from habilis.core.settings import check_model  # here, as whoever needs only the messages makes no config

        values = check_model('any', {name: getattr(self, name) for name in _CHECKED})
        for name in _CHECKED:
            if name != 'api_key' and getattr(self, name) is not None:  # text that is a number is a number from here on
                object.__setattr__(self, name, getattr(values, name))
        wrong = [name for name, kind in _TEXTS if not isinstance(getattr(self, name), kind)]
        wrong += [name for name in ('timeout', 'retries', 'extra') if getattr(self, name) is None]
        if wrong:
            msg = f'the argument {wrong[0]} of a ModelConfig cannot be {getattr(self, wrong[0])!r}'
            raise SettingsError(msg)

    @property
    def provider(self) -> str:
        """The part before the colon, or an empty string."""
        return self.model.partition(':')[0] if ':' in self.model else ''

    @property
    def model_name(self) -> str:
        """The part after the colon: what the provider calls it."""
        return self.model.partition(':')[2] if ':' in self.model else self.model

    def temperature_for(self, options: Options) -> float | None:
        """Temperature of one request; None: the provider's default."""
        if options.temperature is not None:
            return options.temperature
        if self.temperature is not None or 'temperature' in self.extra or 'temperature' in options.extra:
            return self.temperature
        return options.fallback_temperature

    def with_changes(self, **changes: object) -> Self:
        """The same with other values; those that are None are left as they were."""
        return replace(self, **{name: value for name, value in changes.items() if value is not None})  # pyright: ignore[reportArgumentType]
