"""Which model to use when nobody has said: a key that is set, a server on this machine, the embedded model.

A scripted model is never the answer: replies from a script must not be taken for those of a model.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from habilis.core.errors import ModelError
from habilis.core.settings import Settings, load_settings
from habilis.models.config import ModelConfig
from habilis.models.providers import NO_KEY, OPENAI_COMPATIBLE, PROVIDERS
from habilis.models.registry import EMBEDDED, Registry, name_of

PROBE_SECONDS = 0.3
"""How long a server on this machine may take to say which models it has."""

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
"""The model to use with a key of each provider: good at code, at a middling price. The order is that of preference."""

_SDKS = {'anthropic': 'anthropic', 'google': 'google.genai', 'mistral': 'mistralai', 'groq': 'groq', 'bedrock': 'boto3'}


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A model that could be used."""

    config: ModelConfig
    reason: str
    """Why this one, for people."""

    ready: bool = True
    """Whether nothing needs to be set, installed or downloaded first."""

    named: bool = False
    """Whether somebody has asked for this very model."""


@dataclass(frozen=True, kw_only=True)
class Server:
    """A place on this machine where a server of models may listen."""

    provider: str
    label: str
    port: int

    @property
    def url(self) -> str:
        """For `base_url`."""
        return f'http://127.0.0.1:{self.port}/v1'


SERVERS = (
    Server(provider='ollama', label='Ollama', port=11434),
    Server(provider='llamacpp', label='llama.cpp', port=8080),
    Server(provider='vllm', label='vLLM', port=8000),
)


async def discover(settings: Settings | None = None, *, servers: Sequence[Server] | None = None) -> Choice:
    """The model to use: the first of `found`. What comes later is not looked for."""
    candidates = _candidates(settings or load_settings(), SERVERS if servers is None else servers)
    async with contextlib.aclosing(candidates):
        return await anext(candidates)


async def found(settings: Settings | None = None, *, servers: Sequence[Server] | None = None) -> list[Choice]:
    """Every model that could be used, the preferred one first: the model set, keys, servers, the embedded model."""
    candidates = _candidates(settings or load_settings(), SERVERS if servers is None else servers)
    return [choice async for choice in candidates]


async def _candidates(settings: Settings, servers: Sequence[Server]) -> AsyncGenerator[Choice, None]:
    registry = Registry(settings)
    if settings.model:
        config = registry.get(settings.model)
        lack = _lack(config)
        reason = f'it is set {_origin(settings, "model")}'
        yield Choice(config=config, reason=f'{reason}, but {lack}' if lack else reason, ready=not lack, named=True)
    for choice in sorted(_with_keys(registry), key=lambda choice: not choice.ready):
        yield choice
    if settings.base_url and not settings.model:
        yield _nameless(settings)
    for server, model in await _listening(servers):
        config = registry.get(f'{server.provider}:{model}', {'base_url': server.url, 'api_key': NO_KEY})
        yield Choice(config=config, reason=f'{server.label} answers on port {server.port}')
    yield _embedded(registry)


def _origin(settings: Settings, name: str) -> str:
    where = {'argument': 'by the program', 'environment': 'in the environment', '.env': 'in .env'}
    return where.get(settings.origin(name), 'in habilis.toml')


def _lack(config: ModelConfig) -> str | None:
    """What a model needs before it can be asked, in words; None if all is there, as far as this machine can tell."""
    name = name_of(config)
    if name.provider == 'scripted':
        return None if Path(name.model).is_file() else f'there is no file {name.model}'
    if name.provider == 'hf':
        missing = [package for package in ('torch', 'transformers') if find_spec(package) is None]
        return f"it needs {missing[0]}: pip install 'habilis[hf]'" if missing else None
    if name.provider == 'local':
        return _lack_of_weights(name.model)
    provider = PROVIDERS[name.provider]
    if not _is_installed(provider.name):
        return f"its SDK is missing: pip install 'habilis[{provider.install}]'"
    if provider.needs_key and not (config.api_key or config.base_url):
        return f'{" or ".join(provider.keys)} is not set'
    return None


def _lack_of_weights(name: str) -> str | None:
    from habilis.models.local import store

    if not _has_llama():
        return "it needs llama.cpp: pip install 'habilis[local]'"
    try:
        store.find(name)
    except ModelError as error:
        return str(error)
    return None


def _has_llama() -> bool:
    return find_spec('xllamacpp') is not None or find_spec('llama_cpp') is not None


def _nameless(settings: Settings) -> Choice:
    """A server without the name of a model: that it was set must not be passed over in silence."""
    config = ModelConfig(model=f'{OPENAI_COMPATIBLE}:NAME', base_url=settings.base_url)
    reason = f'base_url is set {_origin(settings, "base_url")}: name the model that this server has, with HABILIS_MODEL'
    return Choice(config=config, reason=f'{reason} or --model', ready=False)


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
    """Whether the SDK is there; it is not imported."""
    sdk = _SDKS.get(provider)
    if sdk is None:
        return True
    try:
        return find_spec(sdk) is not None
    except (ModuleNotFoundError, ValueError):  # the package around it is missing, or damaged
        return False


async def _listening(servers: Sequence[Server]) -> list[tuple[Server, str]]:
    """The servers that answer, each with the first model it lists. All are asked at the same time."""
    models = await asyncio.gather(*(_first_model(server.port) for server in servers))
    return [(server, model) for server, model in zip(servers, models, strict=True) if model]


async def _first_model(port: int) -> str | None:
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            return _listed(await _get(port, '/v1/models'))
    except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return None


async def _get(port: int, path: str) -> bytes:
    """The body of an answer with status 200, else nothing. HTTP/1.0, so it comes in one piece and then ends."""
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
    """The first model of a list that may be nonsense: anything may listen on that port."""
    try:
        answer: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    data = cast('dict[str, object]', answer).get('data') if isinstance(answer, dict) else None
    for item in cast('list[object]', data) if isinstance(data, list) else []:
        name = cast('dict[str, object]', item).get('id') if isinstance(item, dict) else None
        if isinstance(name, str) and 0 < len(name) <= 200 and name.isprintable() and 'embed' not in name.lower():
            return name
    return None


def _embedded(registry: Registry) -> Choice:
    from habilis.models.local import store

    config = registry.get(f'local:{EMBEDDED}')
    if not _has_llama():
        reason = "the embedded model needs llama.cpp: pip install 'habilis[local]'"
    elif store.installed(EMBEDDED):
        return Choice(config=config, reason='the embedded model: no key is set, and no server answers on this machine')
    else:
        reason = 'the embedded model is not downloaded yet (1.1 GB): habilis models install'
    return Choice(config=config, reason=f'{reason}; or set a key such as OPENAI_API_KEY, or start Ollama', ready=False)
