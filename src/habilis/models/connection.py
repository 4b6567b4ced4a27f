"""Connections to providers: the SDK's client without its own retries, wrapped by pydantic-ai's model class.

Each function imports only the SDK of its provider.
"""

import json
import os
from collections.abc import Callable, Coroutine, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import httpx2
from pydantic_ai.models import Model as VendorModel
from pydantic_ai.models import create_async_httpx2_client

from habilis.core.codec import Json
from habilis.models.http_response import OBSERVED, ObservedResponse
from habilis.models.providers import NO_KEY, is_local

if TYPE_CHECKING:
    from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile

AnyVendorModel = VendorModel[Any]

CONNECT_SECONDS = 10.0
_LIMITS = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)

MERGED: ContextVar[Mapping[str, Json]] = ContextVar('habilis_merged_options')
"""Fields to merge into the body of the request being sent, for SDKs that cannot pass them."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """Parameters of a connection."""

    provider: str
    model: str
    url: str | None
    key: str | None
    seconds: float
    """Timeout of the SDK; longer than the timeout of the engine."""


@dataclass(frozen=True, kw_only=True)
class ProviderConnection:
    """An open connection to a provider."""

    model: AnyVendorModel
    close: Callable[[], Coroutine[object, object, None]]


def connect(target: Target) -> ProviderConnection:
    """Create the client; sends nothing. Raises `ImportError` if the SDK is missing."""
    if target.provider == 'bedrock':
        return _bedrock(target)
    if target.provider == 'groq':
        return _groq(target)
    client = _http_client(target)
    client.event_hooks['request'].append(_merge_options)
    client.event_hooks['response'].append(_observe_response)
    make = _MAKERS.get(target.provider, _openai_compatible)
    return ProviderConnection(model=make(target, client), close=client.aclose)


def connect_embeddings(target: Target) -> 'OpenAIEmbeddingModel':
    """The embedding model of a server with the protocol of OpenAI; sends nothing."""
    from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = _openai_client(target, _http_client(target))
    return OpenAIEmbeddingModel(target.model, provider=OpenAIProvider(openai_client=client))


def _http_client(target: Target) -> httpx2.AsyncClient:
    timeout = httpx2.Timeout(target.seconds, connect=CONNECT_SECONDS)
    # With an explicit transport, the client does not read proxies from the environment.
    direct = httpx2.AsyncHTTPTransport(limits=_LIMITS) if is_local(target.url) else None
    return create_async_httpx2_client(timeout=timeout, transport=direct)


async def _merge_options(request: httpx2.Request) -> None:
    extra = MERGED.get({})
    if not extra or request.method != 'POST':
        return
    body = json.dumps(_merged(json.loads(request.content), extra), ensure_ascii=False).encode()
    request.stream = httpx2.ByteStream(body)
    request.headers['Content-Length'] = str(len(body))


class _ObservedResponse(ObservedResponse, httpx2.AsyncByteStream):
    pass


async def _observe_response(response: httpx2.Response) -> None:
    response.stream = observed = _ObservedResponse(response)
    OBSERVED.get([]).append(observed)


def _merged(body: Json, extra: Mapping[str, Json]) -> Json:
    if not isinstance(body, dict):
        return body
    merged = dict(body)
    for name, value in extra.items():
        merged[name] = _merged(merged[name], value) if name in merged and isinstance(value, dict) else value
    return merged


def _openai_client(target: Target, client: httpx2.AsyncClient) -> Any:
    from openai import AsyncOpenAI

    sdk = AsyncOpenAI(
        api_key=target.key or NO_KEY,
        base_url=target.url,
        http_client=client,
        max_retries=0,
        timeout=target.seconds,
    )
    if not (_has_key(target) and target.provider in {'openai', 'openai-responses'}):
        sdk.organization = sdk.project = None
        _drop_custom_headers(sdk)
    return sdk


def _has_key(target: Target) -> bool:
    return target.key not in {None, NO_KEY}


def _drop_custom_headers(sdk: Any) -> None:
    """Drop what the SDK took from a variable such as `OPENAI_CUSTOM_HEADERS`: it may be a key of another server."""
    sdk._custom_headers = {}


def _openai(target: Target, client: httpx2.AsyncClient) -> AnyVendorModel:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIChatModel(target.model, provider=OpenAIProvider(openai_client=_openai_client(target, client)))


def _openai_responses(target: Target, client: httpx2.AsyncClient) -> AnyVendorModel:
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIResponsesModel(target.model, provider=OpenAIProvider(openai_client=_openai_client(target, client)))


def _openai_compatible(target: Target, client: httpx2.AsyncClient) -> AnyVendorModel:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    # These servers know the old name `max_tokens`, and several silently ignore the new one; `strict` is OpenAI's only.
    profile: OpenAIModelProfile = {
        'openai_chat_supports_max_completion_tokens': False,
        'openai_supports_strict_tool_definition': False,
    }
    provider = OpenAICompatibleProvider(target.provider, openai_client=_openai_client(target, client), profile=profile)
    return OpenAIChatModel(target.model, provider=provider)


def _openrouter(target: Target, client: httpx2.AsyncClient) -> AnyVendorModel:
    from pydantic_ai.models.openrouter import OpenRouterModel
    from pydantic_ai.providers.openrouter import OpenRouterProvider

    return OpenRouterModel(target.model, provider=OpenRouterProvider(openai_client=_openai_client(target, client)))


def _anthropic(target: Target, client: httpx2.AsyncClient) -> AnyVendorModel:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    sdk = AsyncAnthropic(
        api_key=target.key or NO_KEY,
        base_url=target.url,
        http_client=client,
        max_retries=0,
        timeout=target.seconds,
    )
    if not _has_key(target):
        _drop_custom_headers(sdk)
    return AnthropicModel(target.model, provider=AnthropicProvider(anthropic_client=sdk))


def _google(target: Target, client: httpx2.AsyncClient) -> AnyVendorModel:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    provider = GoogleProvider(api_key=target.key or NO_KEY, base_url=target.url, http_client=client)
    return GoogleModel(target.model, provider=provider)


def _mistral(target: Target, client: httpx2.AsyncClient) -> AnyVendorModel:
    from pydantic_ai.models.mistral import MistralModel
    from pydantic_ai.providers.mistral import MistralProvider

    provider = MistralProvider(api_key=target.key or NO_KEY, base_url=target.url, http_client=client)
    return MistralModel(target.model, provider=provider)


def _groq(target: Target) -> ProviderConnection:
    import httpx
    from groq import AsyncGroq
    from pydantic_ai.models.groq import GroqModel
    from pydantic_ai.providers.groq import GroqProvider

    class HttpxObservedResponse(ObservedResponse, httpx.AsyncByteStream):
        pass

    async def observe_response(response: httpx.Response) -> None:
        response.stream = observed = HttpxObservedResponse(response)
        OBSERVED.get([]).append(observed)

    client = httpx.AsyncClient(
        timeout=httpx.Timeout(target.seconds, connect=CONNECT_SECONDS),
        transport=httpx.AsyncHTTPTransport() if is_local(target.url) else None,
        event_hooks={'response': [observe_response]},
    )
    sdk = AsyncGroq(
        api_key=target.key or NO_KEY,
        base_url=target.url,
        http_client=client,
        max_retries=0,
        timeout=httpx.Timeout(target.seconds, connect=CONNECT_SECONDS),
    )
    if not _has_key(target):
        _drop_custom_headers(sdk)
    return ProviderConnection(
        model=GroqModel(target.model, provider=GroqProvider(groq_client=sdk)), close=client.aclose
    )


def _bedrock(target: Target) -> ProviderConnection:
    import boto3  # pyright: ignore[reportMissingTypeStubs]
    from botocore.config import Config  # pyright: ignore[reportMissingTypeStubs]
    from pydantic_ai.models.bedrock import BedrockConverseModel
    from pydantic_ai.providers.bedrock import BedrockProvider

    # The region is part of the default URL; with another URL any region will do.
    region = (
        os.environ.get('AWS_REGION') or os.environ.get('AWS_DEFAULT_REGION') or ('us-east-1' if target.url else None)
    )
    config = Config(
        read_timeout=target.seconds,
        connect_timeout=CONNECT_SECONDS,
        retries={'total_max_attempts': 1, 'mode': 'standard'},
        signature_version='bearer' if target.key else None,
        proxies={} if is_local(target.url) else None,
    )
    session = boto3.Session(botocore_session=_bearer_session(target.key) if target.key else None, region_name=region)
    client = cast('Any', session).client('bedrock-runtime', config=config, endpoint_url=target.url)
    model = BedrockConverseModel(target.model, provider=BedrockProvider(bedrock_client=client))

    async def close() -> None:
        client.close()

    return ProviderConnection(model=model, close=close)


def _bearer_session(key: str) -> Any:
    from botocore.session import Session  # pyright: ignore[reportMissingTypeStubs]
    from botocore.tokens import FrozenAuthToken  # pyright: ignore[reportMissingTypeStubs]

    class Bearer:
        def load_token(self, **_scope: object) -> FrozenAuthToken:
            return FrozenAuthToken(key)

    session = cast('Any', Session())
    session.register_component('token_provider', Bearer())
    return session


_MAKERS: Mapping[str, Callable[[Target, httpx2.AsyncClient], AnyVendorModel]] = {
    'openai': _openai,
    'openai-responses': _openai_responses,
    'anthropic': _anthropic,
    'google': _google,
    'mistral': _mistral,
    'openrouter': _openrouter,
}
