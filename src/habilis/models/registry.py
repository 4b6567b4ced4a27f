"""Models by name: the aliases of the settings, those added at run time, and any `provider:model`."""

from difflib import get_close_matches
from typing import NamedTuple, TypedDict

from habilis.core.codec import Json
from habilis.core.errors import ModelNotFound, NoModel, SettingsError
from habilis.core.settings import ModelSettings, Settings, check_model
from habilis.core.sources import Source
from habilis.models.access import with_access
from habilis.models.config import ModelConfig
from habilis.models.names import ModelName, parse_name

OTHER_PROVIDERS = ('hf', 'local', 'scripted')
"""Those that are not of the engine."""

EMBEDDED = 'qwen2.5-coder-1.5b'
"""What `local` stands for."""


class Overrides(TypedDict, total=False):
    """What a call may set anew, whatever the alias and the settings say. None is as not given."""

    temperature: float | None
    max_tokens: int | None
    timeout: float | None
    base_url: str | None
    api_key: str | None
    functions: bool | None
    context_tokens: int | None
    small: bool | None
    retries: int | None
    extra: dict[str, Json] | None


class _Named(NamedTuple):
    config: ModelConfig
    url_source: Source
    key_source: Source


class Registry:
    """Named models. Two names may stand for one model with different settings."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        """Where aliases, defaults and keys come from."""

        self._default = self.settings.model
        self._named = {alias: self._from_alias(alias, values) for alias, values in self.settings.models.items()}

    def add(self, alias: str, model: ModelConfig | str) -> None:
        """Name a model, or give a name to another model. Raises `SettingsError` for a name that cannot be one."""
        if not alias or ':' in alias or ',' in alias or any(character.isspace() for character in alias):
            msg = f'{alias!r} cannot be the name of a model: take one without spaces, commas and colons'
            raise SettingsError(msg)
        named = self._from_name(model) if isinstance(model, str) else _Named(model, 'argument', 'argument')
        name_of(named.config)
        self._named[alias] = named

    def remove(self, alias: str) -> None:
        """Forget a name. If it was the default, there is none any more."""
        if self._named.pop(alias, None) is None:
            raise ModelNotFound(self._unknown(alias))
        if self._default == alias:
            self._default = None

    @property
    def default(self) -> str | None:
        """The name of the model to use where none is named; set it to an alias or to `provider:model`."""
        return self._default

    @default.setter
    def default(self, name: str | None) -> None:
        if name is not None:
            self.get(name)
        self._default = name

    def names(self) -> tuple[str, ...]:
        """All aliases, in the order in which they were added."""
        return tuple(self._named)

    def __contains__(self, alias: object) -> bool:
        return alias in self._named

    def get(self, name: str | ModelConfig | None = None, overrides: Overrides | None = None) -> ModelConfig:
        """All that is known of a model, its key included: the alias, then the defaults, then what is set anew.

        Raises `ModelNotFound` for a name that is neither an alias nor a model, `NoModel` if there is no default.
        """
        found = self._find(name)
        if overrides:
            values = check_model(found.config.model, overrides)
            found = _Named(
                _changed(found.config, values),
                'argument' if values.base_url else found.url_source,
                'argument' if values.api_key else found.key_source,
            )
        parsed = self._parsed(found.config)
        return with_access(
            found.config, parsed, self.settings, url_source=found.url_source, key_source=found.key_source
        )

    def _parsed(self, config: ModelConfig) -> ModelName:
        try:
            return name_of(config)
        except ModelNotFound as error:
            if ':' in config.model:
                raise
            raise ModelNotFound(self._unknown(config.model)) from error

    def _find(self, name: str | ModelConfig | None) -> _Named:
        if isinstance(name, ModelConfig):
            return _Named(name, 'argument', 'argument')
        chosen = name or self._default
        if chosen is None:
            msg = 'no model is named, and there is no default: set HABILIS_MODEL, for instance to ollama:llama3.2'
            raise NoModel(msg)
        return self._named.get(chosen) or self._from_name(chosen)

    def _from_name(self, model: str) -> _Named:
        """A model with the defaults of the settings."""
        settings = self.settings
        config = ModelConfig(
            model=model,
            temperature=settings.temperature,
            max_tokens=settings.max_tokens,
            timeout=settings.timeout,
            base_url=settings.base_url,
            api_key=settings.api_key.get_secret_value() if settings.api_key else None,
            retries=settings.retries,
        )
        return _Named(config, settings.origin('base_url'), settings.origin('api_key'))

    def _from_alias(self, alias: str, values: ModelSettings) -> _Named:
        defaults = self._from_name(values.model)
        source = self.settings.origin(f'models.{alias}')
        return _Named(
            _changed(defaults.config, values),
            source if values.base_url else defaults.url_source,
            source if values.api_key else defaults.key_source,
        )

    def _unknown(self, name: str) -> str:
        if name in self._named:
            return f'{name!r} is an alias, and an alias stands for a model, not for another alias: write provider:model'
        near = get_close_matches(name, self._named, n=1, cutoff=0.5)
        known = f'the aliases are {", ".join(self._named)}' if self._named else 'no alias is set'
        advice = f'did you mean {near[0]}?' if near else f'{known}; or write provider:model'
        return f'{name!r} is neither an alias nor a model; {advice}'


def name_of(config: ModelConfig) -> ModelName:
    """The name of a model taken apart. Raises `ModelNotFound`."""
    text = f'local:{EMBEDDED}' if config.model in {'local', 'local:'} else config.model
    return parse_name(text, base_url=config.base_url, more=OTHER_PROVIDERS)


def _changed(config: ModelConfig, values: ModelSettings) -> ModelConfig:
    return config.with_changes(
        temperature=values.temperature,
        max_tokens=values.max_tokens,
        timeout=values.timeout,
        base_url=values.base_url,
        api_key=values.api_key.get_secret_value() if values.api_key else None,
        functions=values.functions,
        context_tokens=values.context_tokens,
        small=values.small,
        retries=values.retries,
        extra=values.extra or None,
    )
