"""Find the model to use when none is configured: an API key, a server on this machine, or the embedded model.

A scripted model is never chosen, so that nobody mistakes its replies for those of a language model.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass, replace
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

from habilis.core.errors import ModelError
from habilis.core.narrowing import fields_in, items_in
from habilis.core.settings import Settings, load_settings
from habilis.models.config import ModelConfig
from habilis.models.providers import NO_KEY, OPENAI_COMPATIBLE, PROVIDERS, is_local, shown_url, url_of
from habilis.models.registry import EMBEDDED, Registry, resolve_name

PROBE_SECONDS = 0.3
"""Timeout for listing the models of a server on this machine."""

SERVER_SECONDS = 3.0
"""Timeout for a configured server."""

_MAX_ANSWER = 1_000_000

DEFAULTS = {
    'anthropic': 'claude-sonnet-5-5',
    'openai': 'gpt-6.1-terra',
    'google': 'gemini-flash-latest',
    'mistral': 'mistral-large-latest',
    'groq': 'openai/gpt-oss-120b',
    'openrouter': 'anthropic/claude-sonnet-5.5',
    'bedrock': 'us.anthropic.claude-sonnet-5',
}
"""Default model of each provider, in order of preference: good at code at a moderate price."""

_SDKS = {'anthropic': 'anthropic', 'google': 'google.genai', 'mistral': 'mistralai', 'groq': 'groq', 'bedrock': 'boto3'}


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A usable model, and why it was found."""

    config: ModelConfig
    reason: str
    """Why this model, for display."""

    ready: bool = True
    """Whether it works without further settings, packages or downloads."""

    named: bool = False
    """Whether the settings name this model."""


@dataclass(frozen=True, kw_only=True)
class Server:
    """A port of this machine on which a model server may listen."""

    provider: str
    label: str
    port: int

    @property
    def url(self) -> str:
        """The `base_url` of the server."""
        return f'http://127.0.0.1:{self.port}/v1'


SERVERS = (
    Server(provider='ollama', label='Ollama', port=11434),
    Server(provider='llamacpp', label='llama.cpp', port=8080),
    Server(provider='vllm', label='vLLM', port=8000),
)


async def discover(settings: Settings | None = None, *, servers: Sequence[Server] | None = None) -> Choice:
    """The first model of `discover_all`; stops searching there."""
    candidates = _candidates(settings or load_settings(), SERVERS if servers is None else servers)
    async with contextlib.aclosing(candidates):
        return await anext(candidates)


async def discover_all(settings: Settings | None = None, *, servers: Sequence[Server] | None = None) -> list[Choice]:
    """All usable models in order of preference: the configured one, API keys, local servers, the embedded model."""
    candidates = _candidates(settings or load_settings(), SERVERS if servers is None else servers)
    return [choice async for choice in candidates]


async def list_models(settings: Settings) -> dict[str, Choice]:
    """All models by the name to choose them by: aliases of the settings, then what `discover_all` finds.

    Those that cannot answer now are not ready, and say why.
    """
    registry = Registry(settings)
    found = {alias: _alias(registry.get(alias)) for alias in registry.names()}
    found |= {choice.config.model: choice for choice in await discover_all(settings)}
    return dict(zip(found, await asyncio.gather(*map(check_server, found.values())), strict=True))


def _alias(config: ModelConfig) -> Choice:
    missing = missing_requirement(config)
    reason = 'alias of the settings'
    return Choice(config=config, reason=f'{reason}, but {missing}' if missing else reason, ready=not missing)


async def check_server(choice: Choice) -> Choice:
    """The choice, not ready if it is a model of a server without a key that does not answer."""
    provider = PROVIDERS.get(resolve_name(choice.config).provider)
    if not choice.ready or provider is None or provider.needs_key:
        return choice
    url = url_of(provider, choice.config.base_url) or ''
    try:
        await asyncio.to_thread(_try_server, url)
    except (OSError, HTTPException, ValueError):
        reason = f'{choice.reason}, but the server at {shown_url(url)} does not answer'
        return replace(choice, reason=reason, ready=False)
    return choice


def _try_server(url: str) -> None:
    opener = build_opener(ProxyHandler({})) if is_local(url) else build_opener()
    with contextlib.suppress(HTTPError):  # it answers, for instance that a key is missing
        opener.open(f'{url}/models', timeout=SERVER_SECONDS).close()


async def _candidates(settings: Settings, servers: Sequence[Server]) -> AsyncGenerator[Choice, None]:
    registry = Registry(settings)
    if settings.model:
        config = registry.get(settings.model)
        missing = missing_requirement(config)
        reason = f'it is set {_origin(settings, "model")}'
        yield Choice(
            config=config, reason=f'{reason}, but {missing}' if missing else reason, ready=not missing, named=True
        )
    for choice in sorted(_with_keys(registry), key=lambda choice: not choice.ready):
        yield choice
    if settings.base_url and not settings.model:
        yield _server_without_model(settings)
    for server, model in await _responding(servers):
        config = registry.get(f'{server.provider}:{model}', {'base_url': server.url, 'api_key': NO_KEY})
        yield Choice(config=config, reason=f'{server.label} answers on port {server.port}')
    yield _embedded(registry)


def _origin(settings: Settings, name: str) -> str:
    where = {'argument': 'by the program', 'environment': 'in the environment', '.env': 'in .env'}
    return where.get(settings.origin(name), 'in habilis.toml')


def missing_requirement(config: ModelConfig) -> str | None:
    """What the model still needs, as text for the user; None if it is ready as far as known."""
    name = resolve_name(config)
    if name.provider == 'scripted':
        return None if Path(name.model).is_file() else f'the file {name.model} does not exist'
    if name.provider == 'hf':
        missing = [package for package in ('torch', 'transformers') if find_spec(package) is None]
        return f"it needs {missing[0]}: pip install 'habilis[hf]'" if missing else None
    if name.provider == 'local':
        return _missing_weights(name.model)
    provider = PROVIDERS[name.provider]
    if not _is_installed(provider.name):
        return f"its SDK is missing: pip install 'habilis[{provider.install}]'"
    if provider.needs_key and not (config.api_key or config.base_url):
        return f'{" or ".join(provider.keys)} is not set'
    return None


def _missing_weights(name: str) -> str | None:
    from habilis.models.local import store

    if find_spec('xllamacpp') is None:
        return "it needs llama.cpp: pip install 'habilis[local]'"
    try:
        store.find(name)
    except ModelError as error:
        return str(error)
    return None


def _server_without_model(settings: Settings) -> Choice:
    """A configured server without a model name: reported, not silently ignored."""
    config = ModelConfig(model=f'{OPENAI_COMPATIBLE}:NAME', base_url=settings.base_url)
    reason = f'base_url is set {_origin(settings, "base_url")}: set HABILIS_MODEL or --model to one of its models'
    return Choice(config=config, reason=reason, ready=False)


def _with_keys(registry: Registry) -> Iterator[Choice]:
    for name, model in DEFAULTS.items():
        provider = PROVIDERS[name]
        variable = next((variable for variable in provider.keys if registry.settings.secret(variable)), None)
        if variable:
            ready = _is_installed(name)
            advice = '' if ready else f", but its SDK is missing: pip install 'habilis[{provider.install}]'"
            config = registry.get(f'{name}:{model}')
            yield Choice(config=config, reason=f'{variable} is set{advice}', ready=ready)


def _is_installed(provider: str) -> bool:
    """Whether the SDK is installed; does not import it."""
    sdk = _SDKS.get(provider)
    if sdk is None:
        return True
    try:
        return find_spec(sdk) is not None
    except (ModuleNotFoundError, ValueError):  # its parent package is missing or damaged
        return False


async def _responding(servers: Sequence[Server]) -> list[tuple[Server, str]]:
    """The servers that answer, each with its first model. Probes all concurrently."""
    models = await asyncio.gather(*(_first_model(server.port) for server in servers))
    return [(server, model) for server, model in zip(servers, models, strict=True) if model]


async def _first_model(port: int) -> str | None:
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            return _listed(await _get(port, '/v1/models'))
    except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return None


async def _get(port: int, path: str) -> bytes:
    """The body of a response with status 200, else b''. HTTP/1.0: no chunked encoding, and the server closes."""
    reader, writer = await asyncio.open_connection('127.0.0.1', port)
    try:
        writer.write(f'GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nAccept: application/json\r\n\r\n'.encode())
        status = (await reader.readline()).split(maxsplit=2)
        if len(status) < 2 or status[1] != b'200':
            return b''
        while (await reader.readline()).strip():
            pass
        return await reader.read(_MAX_ANSWER)
    finally:
        writer.close()


def _listed(body: bytes) -> str | None:
    """The first chat model of a `/v1/models` response, which is untrusted: any program may listen on that port."""
    try:
        answer: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    for item in items_in(fields_in(answer).get('data')):
        name = fields_in(item).get('id')
        if isinstance(name, str) and 0 < len(name) <= 200 and name.isprintable() and 'embed' not in name.lower():
            return name
    return None


def _embedded(registry: Registry) -> Choice:
    from habilis.models.local import store

    config = registry.get(f'local:{EMBEDDED}')
    if find_spec('xllamacpp') is None:
        reason = "the embedded model needs llama.cpp: pip install 'habilis[local]'"
    elif store.installed(EMBEDDED):
        return Choice(config=config, reason='the embedded model: no key is set, and no server answers on this machine')
    else:
        reason = 'the embedded model is not downloaded yet (1.1 GB): habilis models install'
    return Choice(config=config, reason=f'{reason}; or set a key such as OPENAI_API_KEY, or start Ollama', ready=False)
