"""The providers the engine knows: where each lives, which key it wants, and what can be expected of it."""

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import SplitResult, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from habilis.core.errors import SettingsError
from habilis.models.contract import Role

Extras = Literal['body', 'merged', 'fields']
"""How more options travel: in the body by the SDK; merged into the body by us; in Bedrock's own field for them."""


NO_KEY = 'none'
"""Stands for a key that is not sent: with an empty one an SDK would look for a key by itself."""


@dataclass(frozen=True, kw_only=True)
class Provider:
    """One row of the table."""

    name: str
    install: str | None = None
    """The extra of Habilis that brings its SDK; None where it comes with Habilis."""

    keys: tuple[str, ...] = ()
    """Environment variables that may hold the key, the first that is set wins."""

    needs_key: bool = True
    url: str | None = None
    urls: tuple[str, ...] = ()
    """Environment variables that may hold another url."""

    versioned: bool = False
    """Its url ends in `/v1`; it is added where only a host is given."""

    functions: bool = True
    """Whether its models call functions reliably."""

    context_tokens: int = 128_000
    marks: frozenset[Role] = frozenset()
    """Which messages may carry a mark for its prompt cache, beside the instructions. Empty: it takes no marks."""

    own_server: bool = False
    """A server that people run themselves: it may be on this machine, and wants no key."""

    extras: Extras = 'body'


def _table(*providers: Provider) -> dict[str, Provider]:
    return {provider.name: provider for provider in providers}


OPENAI_COMPATIBLE = 'openai-compatible'

PROVIDERS: Mapping[str, Provider] = _table(
    Provider(name='openai', keys=('OPENAI_API_KEY',), url='https://api.openai.com/v1', urls=('OPENAI_BASE_URL',)),
    Provider(
        name='openai-responses', keys=('OPENAI_API_KEY',), url='https://api.openai.com/v1', urls=('OPENAI_BASE_URL',)
    ),
    Provider(
        name='anthropic',
        install='anthropic',
        keys=('ANTHROPIC_API_KEY',),
        url='https://api.anthropic.com',
        urls=('ANTHROPIC_BASE_URL',),
        context_tokens=200_000,
        marks=frozenset({'user', 'tool'}),
    ),
    Provider(
        name='google',
        install='google',
        keys=('GOOGLE_API_KEY', 'GEMINI_API_KEY'),
        url='https://generativelanguage.googleapis.com',
        urls=('GOOGLE_GEMINI_BASE_URL',),
        context_tokens=1_000_000,
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
        name='openrouter', keys=('OPENROUTER_API_KEY',), url='https://openrouter.ai/api/v1', marks=frozenset({'user'})
    ),
    Provider(
        name='bedrock',
        install='bedrock',
        keys=('AWS_BEARER_TOKEN_BEDROCK',),
        needs_key=False,  # boto3 finds roles, profiles and key pairs by itself
        urls=('AWS_ENDPOINT_URL_BEDROCK_RUNTIME',),
        context_tokens=200_000,
        marks=frozenset({'user', 'tool'}),
        extras='fields',
    ),
    Provider(
        name='ollama',
        keys=('OLLAMA_API_KEY',),
        needs_key=False,
        url='http://localhost:11434/v1',
        urls=('OLLAMA_BASE_URL', 'OLLAMA_HOST'),
        versioned=True,
        functions=False,
        context_tokens=4_096,  # what Ollama gives a model unless told otherwise; it cuts the rest off in silence
        own_server=True,
    ),
    Provider(
        name='vllm',
        keys=('VLLM_API_KEY',),
        needs_key=False,
        url='http://localhost:8000/v1',
        urls=('VLLM_BASE_URL',),
        versioned=True,
        functions=False,
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
        functions=False,
        context_tokens=8_192,
        own_server=True,
    ),
    Provider(
        name=OPENAI_COMPATIBLE,
        needs_key=False,
        urls=('OPENAI_COMPATIBLE_BASE_URL',),
        keys=('OPENAI_COMPATIBLE_API_KEY',),
        functions=False,
        context_tokens=32_768,
        own_server=True,
    ),
)
"""Every provider of the engine, by name."""


def key_of(provider: Provider, given: str | None = None, environ: Mapping[str, str] = os.environ) -> str | None:
    """The key to use: the one given, or the first that the environment has."""
    found = (environ.get(variable, '').strip() for variable in provider.keys)
    return (given or '').strip() or next((key for key in found if key), None)


def url_of(provider: Provider, given: str | None = None, environ: Mapping[str, str] = os.environ) -> str | None:
    """The url of its server: the one given, or what the environment says, or the provider's own.

    Raises `SettingsError` for a url that cannot be one. None means that the SDK knows (Bedrock, by region).
    """
    if given:
        return _clean(provider, given, source='base_url')
    for variable in provider.urls:
        if found := environ.get(variable):
            return _clean(provider, found, source=variable)
    if provider.url is None and provider.name == OPENAI_COMPATIBLE:
        msg = f'no server is known for {provider.name}: set base_url, for instance to http://localhost:8000/v1'
        raise SettingsError(msg)
    return provider.url


def is_local(url: str | None) -> bool:
    """Whether that server is on this machine."""
    host = _parts(url or '').hostname or ''
    if host == 'localhost' or host.endswith('.localhost'):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def proxy_of(url: str | None) -> str | None:
    """The proxy through which that server is asked, as the system and the environment have it."""
    parts = _parts(url or '')
    if not parts.hostname or is_local(url) or proxy_bypass(parts.hostname):
        return None
    proxies = getproxies()
    found = proxies.get(parts.scheme) or proxies.get('all')
    return f'http://{found}' if found and '://' not in found else found


def shown_url(url: str | None) -> str:
    """A url without name and password, for messages."""
    parts = _parts(url or '')
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition('@')[2], query=''))


def _parts(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:  # brackets that do not match
        return urlsplit('')


def _clean(provider: Provider, text: str, *, source: str) -> str:
    text = text.strip()
    url = text if '://' in text else f'http://{text}'
    parts = _parts(url)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, parts._replace(scheme='')
    if source == 'OLLAMA_HOST':  # the address Ollama itself listens on: it may be `0.0.0.0` or only a port
        listening_everywhere = host in {None, '0.0.0.0', '::'}
        host = 'localhost' if listening_everywhere else host
        shown = f'[{host}]' if host and ':' in host else host
        parts = parts._replace(netloc=f'{shown}:{port or 11434}')
    if parts.scheme not in {'http', 'https'} or not host or any(character.isspace() for character in url):
        msg = f'{source} is not the url of a server: {shown_url(url)!r}. It looks like http://localhost:8000/v1'
        raise SettingsError(msg)
    path = parts.path.rstrip('/')
    return urlunsplit(parts._replace(path=path or ('/v1' if provider.versioned else '')))
