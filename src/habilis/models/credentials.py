"""API keys and URLs from the environment, and the rule for which key may be sent to which server."""

import logging
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from habilis.core.secrets import hide
from habilis.core.settings import Settings
from habilis.core.settings_sources import PROJECT_FILES, Source
from habilis.models.config import ModelConfig
from habilis.models.model_names import ModelName
from habilis.models.providers import NO_KEY, PROVIDERS, Provider, is_local, shown_url, url_of

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class _Found:
    value: str
    source: Source
    name: str


def with_credentials(
    config: ModelConfig, name: ModelName, settings: Settings, *, url_source: Source, key_source: Source
) -> ModelConfig:
    """Return the config with the key and URL that variables of the environment or of `.env` name.

    A key of the user is not sent to a server that a file of the project folder names: the author of that file could
    read it.
    """
    provider = PROVIDERS.get(name.provider)
    if provider is None:
        return config
    url = _Found(value=config.base_url, source=url_source, name='base_url') if config.base_url else None
    url = url or _variable(provider.urls, settings)
    key = _Found(value=config.api_key, source=key_source, name='api_key') if config.api_key else None
    key = key or _variable(provider.keys, settings)
    if key:
        hide([key.value])
    if url and not _may_send(key, url, provider):
        if key:
            _log.warning(
                '%s is not sent to %s: a file in this folder names that server. To send it, set the URL in the '
                'environment or in your own habilis.toml, or set api_key next to the URL',
                key.name,
                shown_url(url.value),
            )
        key = _Found(value=NO_KEY, source='default', name='')  # None would let the SDK find credentials of its own
    if url and url.name != 'base_url' and url.source == '.env':
        config = replace(config, model=str(name), base_url=url_of(provider, None, {url.name: url.value}))
    return replace(config, api_key=key.value if key else None)


def _variable(names: tuple[str, ...], settings: Settings) -> _Found | None:
    for name in names:
        if value := settings.secret(name):
            return _Found(value=value, source=settings.origin(name), name=name)
    return None


def _may_send(key: _Found | None, url: _Found, provider: Provider) -> bool:
    """Whether the server is trusted with the key, or both come from the same source."""
    if url.source not in PROJECT_FILES or (key and (key.source in PROJECT_FILES or key.source == 'argument')):
        return True
    return is_local(url.value) or urlsplit(url.value)[:2] == urlsplit(provider.url or '')[:2]
