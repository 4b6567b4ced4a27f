"""Which key goes to which server."""

import logging
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from habilis.core.logs import hide
from habilis.core.settings import Settings
from habilis.core.sources import Source
from habilis.models.config import ModelConfig
from habilis.models.names import ModelName
from habilis.models.providers import NO_KEY, PROVIDERS, Provider, is_local, shown_url, url_of

_FOLDER: frozenset[Source] = frozenset({'.env', 'project'})
"""Files that came with the folder, perhaps from a stranger."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class _Found:
    value: str
    source: Source
    place: str


def with_access(
    config: ModelConfig, name: ModelName, settings: Settings, *, url_source: Source, key_source: Source
) -> ModelConfig:
    """The same with its key and url, where they are in variables of the environment or of `.env`.

    A key of the user's own is not sent to a server that a file in the project's folder names: whoever wrote that file
    would get it.
    """
    provider = PROVIDERS.get(name.provider)
    if provider is None:
        return config
    url = _Found(value=config.base_url, source=url_source, place='base_url') if config.base_url else None
    url = url or _variable(provider.urls, settings)
    key = _Found(value=config.api_key, source=key_source, place='api_key') if config.api_key else None
    key = key or _variable(provider.keys, settings)
    if key:
        hide([key.value])
    if url and key and _is_strange(url, key, provider):
        _log.warning(
            '%s is not sent to %s, which a file in this folder names. To send it, set the url in the environment '
            '(HABILIS_BASE_URL), or api_key beside the url',
            key.place,
            shown_url(url.value),
        )
        key = _Found(value=NO_KEY, source='default', place='')
    base_url = config.base_url
    if url and url.place != 'base_url' and url.source == '.env':
        base_url = url_of(provider, None, {url.place: url.value})
    return replace(config, api_key=key.value if key else None, base_url=base_url)


def _variable(names: tuple[str, ...], settings: Settings) -> _Found | None:
    for name in names:
        if value := settings.secret(name):
            return _Found(value=value, source=settings.origin(name), place=name)
    return None


def _is_strange(url: _Found, key: _Found, provider: Provider) -> bool:
    """Whether the key is the user's own and the server is one of the folder's choice, out there."""
    if url.source not in _FOLDER or key.source in _FOLDER or key.source == 'argument' or is_local(url.value):
        return False
    return urlsplit(url.value).hostname != urlsplit(provider.url or '').hostname
