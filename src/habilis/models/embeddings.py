"""`ProviderEmbedder`: vectors from an OpenAI-compatible endpoint `/embeddings`, for the memory.

It is in this room because it needs keys, URLs, error messages and retries of providers. The memory knows only its own
protocol `Embedder`, which this class has without importing it.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from habilis.core.errors import ModelError, ModelRefused
from habilis.core.settings import Settings, load_settings
from habilis.models import provider_errors
from habilis.models.config import ModelConfig
from habilis.models.model_names import parse_name
from habilis.models.provider_errors import Endpoint
from habilis.models.providers import PROVIDERS, key_of, url_of
from habilis.models.registry import Overrides, Registry
from habilis.models.retry import Backoff

if TYPE_CHECKING:
    from pydantic_ai.embeddings import EmbeddingSettings
    from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel

MAX_BATCH = 64
"""Maximum number of texts of one request."""

_OTHER_PROTOCOLS = frozenset({'anthropic', 'google', 'bedrock', 'groq', 'mistral', 'scripted', 'local', 'hf'})


class ProviderEmbedder:
    """An `Embedder` of the memory: `Memory(embedder=ProviderEmbedder('openai:text-embedding-3-small'))`.

    Works with OpenAI and every server of its protocol: Ollama, vLLM, llama.cpp, LiteLLM.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        dimensions: int | None = None,
        timeout: float = 60.0,
        retries: int = 4,
        settings: Settings | None = None,
    ) -> None:
        """Nothing is sent yet. Raises `ModelNotFound`, `ModelRefused` or `SettingsError`.

        Args:
            model: `provider:model`, such as `ollama:nomic-embed-text`.
            base_url: URL of another server, which usually ends in `/v1`.
            api_key: the key; by default that of the provider in the environment.
            dimensions: length of the vectors, where the model has a choice.
            timeout: seconds for one request.
            retries: maximum number of retries after a transient error.
            settings: instead of those of the environment and `habilis.toml`.
        """
        given = {'base_url': base_url, 'api_key': api_key, 'timeout': timeout}
        overrides = Overrides(**{name: value for name, value in given.items() if value is not None})  # pyright: ignore[reportArgumentType]
        config = Registry(settings or load_settings()).get(model, overrides)
        self._endpoint = _endpoint(config)
        self._has_own_url = config.base_url is not None
        self._dimensions = dimensions
        self._backoff = Backoff(str(self._endpoint.name), retries=retries)
        self._model: OpenAIEmbeddingModel | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        """That of the connections of `_model`."""

    @property
    def name(self) -> str:
        """Names the model, and the length of the vectors if it was chosen."""
        return f'{self._endpoint.name}/{self._dimensions}' if self._dimensions else str(self._endpoint.name)

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector per text. Raises `ModelError`."""
        if self._endpoint.provider.needs_key and not self._endpoint.key and not self._has_own_url:
            raise provider_errors.missing_key(self._endpoint)
        if self._loop is not (loop := asyncio.get_running_loop()) or self._model is None:
            self._model, self._loop = await asyncio.to_thread(self._connect), loop
        vectors: list[Sequence[float]] = []
        for start in range(0, len(texts), MAX_BATCH):
            vectors += await self._batch(self._model, list(texts[start : start + MAX_BATCH]))
        if len({len(vector) for vector in vectors}) > 1:
            raise provider_errors.invalid_response(self._endpoint, detail='vectors of different lengths')
        return vectors

    def _connect(self) -> 'OpenAIEmbeddingModel':
        from habilis.models.connection import Target, connect_embeddings  # imports pydantic-ai

        name, endpoint = self._endpoint.name, self._endpoint
        return connect_embeddings(
            Target(
                provider=name.provider, model=name.model, url=endpoint.url, key=endpoint.key, seconds=endpoint.seconds
            )
        )

    async def _batch(self, model: 'OpenAIEmbeddingModel', texts: list[str]) -> Sequence[Sequence[float]]:
        attempt = 1
        while True:
            try:
                return await self._request(model, texts)
            except ModelError as error:
                await self._backoff.wait(attempt, error)
            attempt += 1

    async def _request(self, model: 'OpenAIEmbeddingModel', texts: list[str]) -> Sequence[Sequence[float]]:
        sent = [text.encode('utf-8', 'replace').decode() or ' ' for text in texts]  # several servers refuse ''
        settings: EmbeddingSettings = {} if self._dimensions is None else {'dimensions': self._dimensions}
        try:
            async with asyncio.timeout(self._endpoint.seconds):
                vectors = (await model.embed(sent, input_type='document', settings=settings)).embeddings
        except TimeoutError:
            raise provider_errors.timed_out(self._endpoint, reply_started=False) from None
        except (AttributeError, TypeError, ValueError):  # the SDK does not validate what a server sends
            raise provider_errors.invalid_response(self._endpoint) from None
        except Exception as error:
            raise provider_errors.translate(error, self._endpoint) from None
        if len(vectors) != len(texts):
            detail = f'{len(vectors)} vectors for {len(texts)} texts'
            raise provider_errors.invalid_response(self._endpoint, detail=detail)
        return vectors


def _endpoint(config: ModelConfig) -> Endpoint:
    """Where the model is. Raises `ModelNotFound` or `ModelRefused`."""
    name = parse_name(config.model, base_url=config.base_url)
    if name.provider in _OTHER_PROTOCOLS:
        msg = f'{name.provider} has no OpenAI-compatible embeddings: use openai:…, ollama:…, or a base_url'
        raise ModelRefused(msg)
    provider = PROVIDERS[name.provider]
    return Endpoint(
        name=name,
        provider=provider,
        url=url_of(provider, config.base_url),
        key=key_of(provider, config.api_key),
        seconds=config.timeout,
    )
