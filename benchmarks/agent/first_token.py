"""Time to the first token of a hosted model: bare SDK, our model layer, our agent."""

import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from benchmarks.agent.chat_server import chat_server
from benchmarks.measurement import Sample, summarize
from benchmarks.sandbox.timings import settle
from habilis.agent import Agent
from habilis.core.errors import ModelError
from habilis.core.settings import Settings
from habilis.models import Delta, Message, Model, ModelConfig, load_model

QUESTION = 'What is 2 + 2?'
KEY = 'none'


@dataclass(frozen=True, kw_only=True)
class FirstToken:
    """Seconds from the request to the first token."""

    sdk: Sample
    model_adds: Sample
    """Seconds that our `Model` adds to the SDK."""

    agent_adds: Sample
    """Seconds that a whole agent adds: a new sandbox, the prompt, the tools."""


async def first_token(rounds: int) -> FirstToken:
    """Measure interleaved, after a first request of each that opens connections and imports packages."""
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
                times = await _sdk(client), await _model(model), await _agent(agent)
                await settle()
                if number:
                    sdk.append(times[0])
                    by_model.append(times[1] - times[0])
                    by_agent.append(times[2] - times[0])
        await model.close()
    return FirstToken(sdk=summarize(sdk), model_adds=summarize(by_model), agent_adds=summarize(by_agent))


async def _sdk(client: Any) -> float:
    async def texts() -> AsyncIterator[str]:
        messages = [{'role': 'user', 'content': QUESTION}]
        async for chunk in await client.chat.completions.create(model='bench', messages=messages, stream=True):
            for choice in chunk.choices:
                yield choice.delta.content or ''

    return await _time_to_text(texts())


async def _model(model: Model) -> float:
    async def texts() -> AsyncIterator[str]:
        async for item in model.stream([Message(role='user', text=QUESTION)]):
            if isinstance(item, Delta):
                yield item.text

    return await _time_to_text(texts())


async def _agent(agent: Agent) -> float:
    async def texts() -> AsyncIterator[str]:
        async with aclosing(agent.stream(QUESTION)) as events:
            async for event in events:
                if event.kind == 'text':
                    yield event.text

    return await _time_to_text(texts())


async def _time_to_text(texts: AsyncIterator[str]) -> float:
    """Seconds until the first text. Reads the whole stream, so that the connection can be reused."""
    started = time.perf_counter()
    first: float | None = None
    async for text in texts:
        if text and first is None:
            first = time.perf_counter() - started
    if first is None:
        msg = 'the benchmark server sent no text'
        raise ModelError(msg)
    return first
