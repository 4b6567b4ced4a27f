"""Streams: as it comes, and nothing left behind when somebody stops listening."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import cast

import pytest

from habilis.core.errors import ModelUnavailable
from habilis.models.contract import Delta, Reply
from habilis.models.engine import EngineModel
from tests.models.conversation import START, config_for
from tests.models.protocol_server import BASES, ProtocolServer, exchange, wait_for_requests

ALL = sorted(set(BASES) - {'vllm', 'llamacpp'})
FIRST_TEXT = {'anthropic': 9, 'openai-responses': 5, 'openai': 2, 'mistral': 2, 'groq': 2}
"""How many events of the recording it takes until there is text; at most 2 for the others."""


def text_only(provider: str) -> int:
    return FIRST_TEXT.get(provider, 2)


def streaming(server: ProtocolServer, provider: str) -> EngineModel:
    return EngineModel(config_for(server, provider, exchange(provider, 'stream').model))


def bits(model: EngineModel) -> AsyncGenerator[Delta | Reply]:
    return cast('AsyncGenerator[Delta | Reply]', model.stream(START))


@pytest.mark.parametrize('provider', ALL)
async def test_text_is_there_before_the_answer_is_over(provider: str, server: ProtocolServer) -> None:
    server.will_answer(replace(exchange(provider, 'stream').answer(), silent_after=text_only(provider)))
    model = streaming(server, provider)
    async with asyncio.timeout(60), aclosing(bits(model)) as stream:
        first = [item async for item in _until_text(stream)]
    await model.close()
    assert first[-1] == Delta(text='Let me ')


async def _until_text(stream: AsyncGenerator[Delta | Reply]) -> AsyncGenerator[Delta | Reply]:
    async for item in stream:
        yield item
        if item.text:
            return


@pytest.mark.parametrize('provider', ALL)
async def test_who_stops_listening_closes_the_connection(provider: str, server: ProtocolServer) -> None:
    server.will_answer(replace(exchange(provider, 'stream').answer(), silent_after=text_only(provider)))
    model = streaming(server, provider)
    stream = bits(model)
    async with asyncio.timeout(60):
        while not (await anext(stream)).text:
            pass
        await stream.aclose()
        assert await asyncio.to_thread(server.wait_until_hung_up)
    await model.close()


@pytest.mark.parametrize('provider', ALL)
async def test_a_cancelled_task_closes_the_connection(provider: str, server: ProtocolServer) -> None:
    server.will_answer(replace(exchange(provider, 'stream').answer(), silent_after=text_only(provider)))
    model = streaming(server, provider)
    heard = asyncio.Event()

    async def listen() -> None:
        async with aclosing(bits(model)) as stream:
            async for item in stream:
                if item.text:
                    heard.set()

    async with asyncio.timeout(60):
        task = asyncio.create_task(listen())
        await heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.wait_until_hung_up)
    await model.close()


async def test_a_cancelled_request_closes_the_connection(server: ProtocolServer) -> None:
    server.will_answer(replace(exchange('openai', 'plain').answer(), silent_before=True))
    model = streaming(server, 'openai')
    task = asyncio.create_task(model.request(START))
    await asyncio.to_thread(wait_for_requests, server, 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(server.wait_until_hung_up)
    await model.close()


async def _listen(model: EngineModel, heard: list[Delta | Reply]) -> None:
    async for item in model.stream(START):
        heard.append(item)  # noqa: PERF401


@pytest.mark.parametrize('provider', ALL)
async def test_the_timeout_ends_a_stream_that_stalls(provider: str, server: ProtocolServer) -> None:
    server.will_answer(replace(exchange(provider, 'stream').answer(), silent_after=text_only(provider)))
    model = EngineModel(replace(config_for(server, provider, exchange(provider, 'stream').model), timeout=0.5))
    heard: list[Delta | Reply] = []
    with pytest.raises(ModelUnavailable, match=r'sent nothing for 0\.5 s'):
        await _listen(model, heard)
    await model.close()
    assert not any(isinstance(item, Reply) for item in heard)


@pytest.mark.parametrize('provider', ALL)
async def test_a_stream_that_breaks_gives_an_error_and_no_reply(provider: str, server: ProtocolServer) -> None:
    answer = replace(exchange(provider, 'stream').answer(), silent_after=text_only(provider), cut=True)
    server.will_answer(answer)
    model = streaming(server, provider)
    heard: list[Delta | Reply] = []
    with pytest.raises(ModelUnavailable):
        await _listen(model, heard)
    await model.close()
    assert not any(isinstance(item, Reply) for item in heard)


@pytest.mark.parametrize('provider', ALL)
async def test_a_stream_that_ends_cleanly_but_too_early_gives_an_error_and_no_reply(
    provider: str, server: ProtocolServer
) -> None:
    answer = exchange(provider, 'stream').answer()
    server.will_answer(replace(answer, chunks=answer.chunks[: text_only(provider)]))
    model = streaming(server, provider)
    heard: list[Delta | Reply] = []
    with pytest.raises(ModelUnavailable, match='ended its reply in the middle'):
        await _listen(model, heard)
    await model.close()
    assert ''.join(item.text for item in heard).startswith('Let me ')
    assert not any(isinstance(item, Reply) for item in heard)


@pytest.mark.parametrize('provider', ['openai', 'ollama', 'openrouter', 'mistral', 'groq'])
async def test_a_server_that_gives_no_reason_may_end_its_stream_with_the_mark_alone(
    provider: str, server: ProtocolServer
) -> None:
    answer = exchange(provider, 'stream').answer()
    unsaid = tuple(re.sub(rb'finish_reason": "\w+"', b'finish_reason": null', chunk) for chunk in answer.chunks)
    assert unsaid != answer.chunks
    server.will_answer(replace(answer, chunks=unsaid))
    model = streaming(server, provider)
    heard: list[Delta | Reply] = []
    await _listen(model, heard)
    await model.close()
    assert (type(heard[-1]), heard[-1].text) == (Reply, exchange(provider, 'stream').reply['text'])


async def test_a_reply_that_speaks_of_the_mark_does_not_end_with_it(server: ProtocolServer) -> None:
    answer = exchange('openai', 'stream').answer()
    chunks = tuple(chunk.replace(b'Let me ', b'See:\\ndata: [DONE]\\n') for chunk in answer.chunks[:2])
    server.will_answer(replace(answer, chunks=chunks))
    model = streaming(server, 'openai')
    heard: list[Delta | Reply] = []
    with pytest.raises(ModelUnavailable, match='ended its reply in the middle'):
        await _listen(model, heard)
    await model.close()
    assert ''.join(item.text for item in heard) == 'See:\ndata: [DONE]\n'


@pytest.mark.parametrize(('provider', 'is_bounded'), [('ollama', True), ('openai', False)])
async def test_a_reply_of_ollama_is_bounded_unless_its_length_is_set(
    provider: str, is_bounded: bool, server: ProtocolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('habilis.models.engine.OLLAMA_REPLY_TOKENS', 1)
    config = replace(config_for(server, provider, exchange(provider, 'stream').model), max_tokens=None)
    for chosen, bounded in ((config, is_bounded), (replace(config, max_tokens=4096), False)):
        server.will_answer(exchange(provider, 'stream').answer())
        model = EngineModel(chosen)
        items = [item async for item in model.stream(START)]
        await model.close()
        reply = items[-1]
        assert isinstance(reply, Reply)
        assert (len(items) == 2) == bounded
        assert (reply.finish == 'length') == bounded
        assert reply.calls == () or not bounded
