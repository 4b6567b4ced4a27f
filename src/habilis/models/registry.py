"""Registry of models by name: aliases of the settings, aliases added at run time, and any `provider:model`."""

import logging
from typing import NamedTuple, TypedDict

from habilis.core.codec import Json
from habilis.core.errors import ModelNotFound, NoModel, SettingsError
from habilis.core.settings import ModelSettings, Settings, check_model
from habilis.core.settings_sources import Source
from habilis.core.similar_names import similar_names
from habilis.models.config import ModelConfig
from habilis.models.credentials import with_credentials
from habilis.models.model_names import ModelName, parse_name, suggest_names
from habilis.models.providers import OPENAI_COMPATIBLE, PROVIDERS

OTHER_PROVIDERS = ('hf', 'local', 'scripted')
"""Providers beside those of the engine."""

EMBEDDED = 'qwen2.5-coder-1.5b'
"""The default embedded model: `local` and `local:`."""


_log = logging.getLogger(__name__)


class Overrides(TypedDict, total=False):
    """Arguments of a call that override the alias and the settings. None: not given."""

    temperature: float | None
    max_tokens: int | None
    timeout: float | None
    base_url: str | None
    api_key: str | None
    functions: bool | None
    context_tokens: int | None
    small: bool | None
    images: bool | None
    retries: int | None
    extra: dict[str, Json] | None


class _Named(NamedTuple):
    config: ModelConfig
    url_source: Source
    key_source: Source


class Registry:
    """Named models. Two aliases may name one model with different settings."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        """The source of aliases, defaults and keys."""

        self._default = self.settings.model
        self._named = {alias: self._from_alias(alias, values) for alias, values in self.settings.models.items()}

    def add(self, alias: str, model: ModelConfig | str) -> None:
        """Add or replace an alias. Raises `SettingsError` for an invalid alias."""
        if not alias or ':' in alias or ',' in alias or any(character.isspace() for character in alias):
            msg = f'invalid alias {alias!r}: use one without spaces, commas and colons'
            raise SettingsError(msg)
        named = self._from_name(model) if isinstance(model, str) else _Named(model, 'argument', 'argument')
        resolve_name(self._with_server(named).config)
        self._named[alias] = named

    def remove(self, alias: str) -> None:
        """Remove an alias. If it was the default, there is no default any more."""
        if self._named.pop(alias, None) is None:
            raise ModelNotFound(self._unknown(alias))
        if self._default == alias:
            self._default = None

    @property
    def default(self) -> str | None:
        """The default model: an alias or `provider:model`."""
        return self._default

    @default.setter
    def default(self, name: str | None) -> None:
        if name is not None:
            self.get(name)
        self._default = name

    def names(self) -> tuple[str, ...]:
        """All aliases, in the order they were added."""
        return tuple(self._named)

    def __contains__(self, alias: object) -> bool:
        return alias in self._named

    def get(self, name: str | ModelConfig | None = None, overrides: Overrides | None = None) -> ModelConfig:
        """The complete configuration of a model, with its API key: defaults, then the alias, then the overrides.

        Raises `ModelNotFound` for an unknown name, `NoModel` if no name is given and there is no default.
        """
        found = self._lookup(name)
        if overrides:
            values = check_model(found.config.model, overrides)
            found = _Named(
                _with_settings(found.config, values),
                'argument' if values.base_url else found.url_source,
                'argument' if values.api_key else found.key_source,
            )
        found = self._with_server(found)
        parsed = self._parsed(found.config)
        complete = with_credentials(
            found.config, parsed, self.settings, url_source=found.url_source, key_source=found.key_source
        )
        self._warn_of_unused_url(complete, parsed)
        return complete

    def _parsed(self, config: ModelConfig) -> ModelName:
        try:
            return resolve_name(config)
        except ModelNotFound as error:
            if ':' in config.model:
                raise
            raise ModelNotFound(self._unknown(config.model)) from error

    def _lookup(self, name: str | ModelConfig | None) -> _Named:
        if isinstance(name, ModelConfig):
            return _Named(name, 'argument', 'argument')
        chosen = name or self._default
        if chosen is None:
            msg = 'no model is given, and there is no default: set HABILIS_MODEL, for instance to ollama:llama3.2'
            raise NoModel(msg)
        return self._named.get(chosen) or self._from_name(chosen)

    def _with_server(self, found: _Named) -> _Named:
        """Add `base_url` and `api_key` of the settings. They name one server, with the protocol of OpenAI, and its key.

        So the URL is not for a model that names another provider; and where a URL is set, the key goes nowhere else.
        """
        settings, config = self.settings, found.config
        goes_there = found.url_source == 'default' and settings.base_url and _is_compatible(config, settings.base_url)
        if goes_there:
            config = config.with_changes(base_url=settings.base_url)
            found = _Named(config, settings.origin('base_url'), found.key_source)
        if found.key_source == 'default' and settings.api_key and (goes_there or not settings.base_url):
            config = config.with_changes(api_key=settings.api_key.get_secret_value())
            found = _Named(config, found.url_source, settings.origin('api_key'))
        return found

    def _warn_of_unused_url(self, config: ModelConfig, name: ModelName) -> None:
        provider = PROVIDERS.get(name.provider)
        is_own = provider and provider.own_server and not any(map(self.settings.secret, provider.urls))
        if provider and is_own and self.settings.base_url and config.base_url is None:
            msg = 'base_url is not used for %s: set %s, or write only the name of the model'
            _log.warning(msg, config.model, provider.urls[0])

    def _from_name(self, model: str) -> _Named:
        """The model with the defaults of the settings, apart from URL and key."""
        settings = self.settings
        config = ModelConfig(
            model=model,
            temperature=settings.temperature,
            max_tokens=settings.max_tokens,
            timeout=settings.timeout,
            retries=settings.retries,
        )
        return _Named(config, 'default', 'default')

    def _from_alias(self, alias: str, values: ModelSettings) -> _Named:
        defaults = self._from_name(values.model)
        source = self.settings.origin(f'models.{alias}')
        return _Named(
            _with_settings(defaults.config, values),
            source if values.base_url else defaults.url_source,
            source if values.api_key else defaults.key_source,
        )

    def _unknown(self, name: str) -> str:
        if name in self._named:
            return f'{name!r} is an alias; an alias cannot refer to another alias: write provider:model'
        near = similar_names(name, self._named, n=1, cutoff=0.5)
        if not near and (suggested := suggest_names(name, {*PROVIDERS, *OTHER_PROVIDERS})):
            return f'no such model or alias: {name!r}; write {" or ".join(suggested)}'
        known = f'the aliases are {", ".join(self._named)}' if self._named else 'there are no aliases'
        advice = f'did you mean {near[0]}?' if near else f'{known}; or write provider:model'
        return f'no such model or alias: {name!r}; {advice}'


def resolve_name(config: ModelConfig) -> ModelName:
    """Parse the name of a model; `local` is the default embedded model. Raises `ModelNotFound`."""
    text = f'local:{EMBEDDED}' if config.model in {'local', 'local:'} else config.model
    return parse_name(text, base_url=config.base_url, more=OTHER_PROVIDERS)


def _is_compatible(config: ModelConfig, base_url: str) -> bool:
    """Whether the name is one of an OpenAI-compatible server: without a provider, or `openai-compatible:…`."""
    try:
        name = resolve_name(config.with_changes(base_url=base_url))
        return name.provider == OPENAI_COMPATIBLE and config.provider not in OTHER_PROVIDERS
    except ModelNotFound:  # reported by who uses the name
        return False


def _with_settings(config: ModelConfig, values: ModelSettings) -> ModelConfig:
    return config.with_changes(
        temperature=values.temperature,
        max_tokens=values.max_tokens,
        timeout=values.timeout,
        base_url=values.base_url,
        api_key=values.api_key.get_secret_value() if values.api_key else None,
        functions=values.functions,
        context_tokens=values.context_tokens,
        small=values.small,
        images=values.images,
        retries=values.retries,
        extra=values.extra or None,
    )
