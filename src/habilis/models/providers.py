"""The providers of the engine: URL, API key, and capabilities of each."""

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import SplitResult, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from habilis.core.errors import SettingsError
from habilis.models.contract import Role

Extras = Literal['body', 'merged', 'fields']
"""How `extra` options are sent: in the body by the SDK; merged into the body by us; in Bedrock's own field."""


NO_KEY = 'none'
"""Placeholder key: with an empty one, an SDK would search the environment for a key."""


@dataclass(frozen=True, kw_only=True)
class Provider:
    """A provider of models."""

    name: str
    install: str | None = None
    """The extra of Habilis that installs its SDK; None if it is a dependency of Habilis."""

    keys: tuple[str, ...] = ()
    """Environment variables for the API key; the first that is set is used."""

    needs_key: bool = True
    url: str | None = None
    urls: tuple[str, ...] = ()
    """Environment variables for another URL."""

    versioned: bool = False
    """Whether `/v1` is appended to a URL without a path."""

    context_tokens: int = 128_000
    cache_roles: frozenset[Role] = frozenset()
    """Roles of messages that may carry a prompt-cache point, beside the instructions. Empty: no cache points."""

    images: bool = False
    """Whether its models see images, as far as their names do not say otherwise."""

    own_server: bool = False
    """A server that users run themselves, perhaps on this machine, without a key."""

    extras: Extras = 'body'


def _table(*providers: Provider) -> dict[str, Provider]:
    return {provider.name: provider for provider in providers}


OPENAI_COMPATIBLE = 'openai-compatible'

_SEEING = re.compile(
    r'vision|llava|pixtral|moondream|[-.:]?vl\b|llama-?4|gemma-?3(?!.*(270m|1b))|minicpm-v', re.IGNORECASE
)
"""Names of models that see, whoever serves them."""

_BLIND = re.compile(r'gpt-3|o1-mini|o3-mini|claude-2|claude-instant|(meta|mistral|deepseek)[./]', re.IGNORECASE)
"""Names of models that do not, of providers whose models do."""

PROVIDERS: Mapping[str, Provider] = _table(
    Provider(
        name='openai', keys=('OPENAI_API_KEY',), url='https://api.openai.com/v1', urls=('OPENAI_BASE_URL',), images=True
    ),
    Provider(
        name='openai-responses',
        keys=('OPENAI_API_KEY',),
        url='https://api.openai.com/v1',
        urls=('OPENAI_BASE_URL',),
        images=True,
    ),
    Provider(
        name='anthropic',
        install='anthropic',
        keys=('ANTHROPIC_API_KEY',),
        url='https://api.anthropic.com',
        urls=('ANTHROPIC_BASE_URL',),
        context_tokens=200_000,
        cache_roles=frozenset({'user', 'tool'}),
        images=True,
    ),
    Provider(
        name='google',
        install='google',
        keys=('GOOGLE_API_KEY', 'GEMINI_API_KEY'),
        url='https://generativelanguage.googleapis.com',
        urls=('GOOGLE_GEMINI_BASE_URL',),
        context_tokens=1_000_000,
        images=True,
        extras='merged',
    ),
    Provider(
        name='mistral',
        install='mistral',
        keys=('MISTRAL_API_KEY',),
        url='https://api.mistral.ai',
        extras='merged',
    ),
    Provider(name='groq', install='groq', keys=('GROQ_API_KEY',), url='https://api.groq.com', urls=('GROQ_BASE_URL',)),
    Provider(
        name='openrouter',
        keys=('OPENROUTER_API_KEY',),
        url='https://openrouter.ai/api/v1',
        cache_roles=frozenset({'user'}),
        images=True,
    ),
    Provider(
        name='bedrock',
        install='bedrock',
        keys=('AWS_BEARER_TOKEN_BEDROCK',),
        needs_key=False,  # boto3 finds roles, profiles and key pairs itself
        urls=('AWS_ENDPOINT_URL_BEDROCK_RUNTIME',),
        context_tokens=200_000,
        cache_roles=frozenset({'user', 'tool'}),
        extras='fields',
        images=True,
    ),
    Provider(
        name='ollama',
        keys=('OLLAMA_API_KEY',),
        needs_key=False,
        url='http://localhost:11434/v1',
        urls=('OLLAMA_BASE_URL', 'OLLAMA_HOST'),
        versioned=True,
        context_tokens=4_096,  # Ollama's default; it silently truncates longer input
        own_server=True,
    ),
    Provider(
        name='vllm',
        keys=('VLLM_API_KEY',),
        needs_key=False,
        url='http://localhost:8000/v1',
        urls=('VLLM_BASE_URL',),
        versioned=True,
        context_tokens=32_768,
        own_server=True,
    ),
    Provider(
        name='llamacpp',
        keys=('LLAMA_API_KEY',),
        needs_key=False,
        url='http://localhost:8080/v1',
        urls=('LLAMACPP_BASE_URL',),
        versioned=True,
        context_tokens=8_192,
        own_server=True,
    ),
    Provider(
        name=OPENAI_COMPATIBLE,
        needs_key=False,
        urls=('OPENAI_COMPATIBLE_BASE_URL',),
        keys=('OPENAI_COMPATIBLE_API_KEY',),
        context_tokens=32_768,
        own_server=True,
    ),
)
"""Every provider of the engine, by name."""


def sees_images(provider: Provider, model: str) -> bool:
    """Whether a model sees images: by its name, else by its provider."""
    return bool(_SEEING.search(model)) or (provider.images and not _BLIND.match(model))


def key_of(provider: Provider, given: str | None = None, environ: Mapping[str, str] = os.environ) -> str | None:
    """The API key: the given one, or the first in the environment."""
    found = (environ.get(variable, '').strip() for variable in provider.keys)
    return (given or '').strip() or next((key for key in found if key), None)


def url_of(provider: Provider, given: str | None = None, environ: Mapping[str, str] = os.environ) -> str | None:
    """The URL of the server: the given one, that of the environment, or the provider's default.

    None: the SDK chooses it (Bedrock, by region). Raises `SettingsError` for an invalid URL.
    """
    if given:
        return _clean(provider, given, source='base_url')
    for variable in provider.urls:
        if found := environ.get(variable):
            return _clean(provider, found, source=variable)
    if provider.url is None and provider.name == OPENAI_COMPATIBLE:
        msg = f'{provider.name} has no default server: set base_url, for instance to http://localhost:8000/v1'
        raise SettingsError(msg)
    return provider.url


def is_local(url: str | None) -> bool:
    """Whether the URL is on this machine."""
    host = _parts(url or '').hostname or ''
    if host == 'localhost' or host.endswith('.localhost'):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def proxy_of(url: str | None) -> str | None:
    """The proxy for a URL, from the system and the environment."""
    parts = _parts(url or '')
    if not parts.hostname or is_local(url) or proxy_bypass(parts.hostname):
        return None
    proxies = getproxies()
    found = proxies.get(parts.scheme) or proxies.get('all')
    return f'http://{found}' if found and '://' not in found else found


def shown_url(url: str | None) -> str:
    """The URL without user, password and query, for messages."""
    parts = _parts(url or '')
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition('@')[2], query=''))


def _parts(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:  # unbalanced brackets
        return urlsplit('')


def _clean(provider: Provider, text: str, *, source: str) -> str:
    text = text.strip()
    url = text if '://' in text else f'http://{text}'
    parts = _parts(url)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, parts._replace(scheme='')
    if source == 'OLLAMA_HOST':  # the listen address of Ollama itself: may be `0.0.0.0` or only a port
        listening_everywhere = host in {None, '0.0.0.0', '::'}
        host = 'localhost' if listening_everywhere else host
        shown = f'[{host}]' if host and ':' in host else host
        parts = parts._replace(netloc=f'{shown}:{port or 11434}')
    if parts.scheme not in {'http', 'https'} or not host or any(character.isspace() for character in url):
        msg = f'{source} is not a valid URL: {shown_url(url)!r}. Use for instance http://localhost:8000/v1'
        raise SettingsError(msg)
    path = parts.path.rstrip('/')
    return urlunsplit(parts._replace(path=path or ('/v1' if provider.versioned else '')))
