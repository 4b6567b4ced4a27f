"""How much later the first token of a hosted model comes through us than through the bare SDK."""

import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from habilis.agent import Agent
from habilis.bench.agent.chat_server import chat_server
from habilis.bench.measurement import Sample, sample
from habilis.bench.sandbox.timings import settle
from habilis.core.errors import ModelError
from habilis.core.settings import Settings
from habilis.models import Delta, Message, Model, ModelConfig, load_model

QUESTION = 'What is 2 + 2?'
KEY = 'none'


@dataclass(frozen=True, kw_only=True)
class FirstToken:
    """Seconds from the question to the first token."""

    sdk: Sample
    model_adds: Sample
    """Through our `Model`, more than through the SDK."""

    agent_adds: Sample
    """Through a whole agent: a new sandbox, the prompt, the tools."""


async def first_token(rounds: int) -> FirstToken:
    """In turns, after a first request of each: connections are open and packages are imported."""
    from openai import AsyncOpenAI

    sdk: list[float] = []
    by_model: list[float] = []
    by_agent: list[float] = []
    with chat_server() as url:
        settings = Settings()
        model = load_model(ModelConfig(model='openai:bench', base_url=url, api_key=KEY), settings=settings)
        client = AsyncOpenAI(base_url=url, api_key=KEY)
        async with client, Agent(model, settings=settings) as agent:
            for number in range(rounds + 1):
                times = await _bare(client), await _through_model(model), await _through_agent(agent)
                await settle()
                if number:
                    sdk.append(times[0])
                    by_model.append(times[1] - times[0])
                    by_agent.append(times[2] - times[0])
        await model.close()
    return FirstToken(sdk=sample(sdk), model_adds=sample(by_model), agent_adds=sample(by_agent))


async def _bare(client: Any) -> float:
    async def texts() -> AsyncIterator[str]:
        messages = [{'role': 'user', 'content': QUESTION}]
        async for chunk in await client.chat.completions.create(model='bench', messages=messages, stream=True):
            for choice in chunk.choices:
                yield choice.delta.content or ''

    return await _until_first(texts())


async def _through_model(model: Model) -> float:
    async def texts() -> AsyncIterator[str]:
        async for item in model.stream([Message(role='user', text=QUESTION)]):
            if isinstance(item, Delta):
                yield item.text

    return await _until_first(texts())


async def _through_agent(agent: Agent) -> float:
    async def texts() -> AsyncIterator[str]:
        async with aclosing(agent.stream(QUESTION)) as events:
            async for event in events:
                if event.kind == 'text':
                    yield event.text

    return await _until_first(texts())


async def _until_first(texts: AsyncIterator[str]) -> float:
    """Seconds until there is text; the rest is read too, so that the connection can be used again."""
    started = time.perf_counter()
    first: float | None = None
    async for text in texts:
        if text and first is None:
            first = time.perf_counter() - started
    if first is None:
        msg = 'the server of the benchmark sent no text'
        raise ModelError(msg)
    return first
