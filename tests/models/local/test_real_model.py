"""With the real weights, whichever backend is installed. `habilis models install` gets them."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from habilis.core.errors import ContextOverflow, ModelError
from habilis.models.config import ModelConfig
from habilis.models.contract import Delta, Message, Options, Reply
from habilis.models.local import LocalModel, prompt_cache

pytestmark = pytest.mark.model

SYSTEM = Message(role='system', text='You answer with one word. ' + 'Never explain anything to anybody. ' * 12)

SECOND_PROCESS = """
import asyncio, sys
from habilis.models.local import LocalModel, prompt_cache
from habilis.models.config import ModelConfig
from habilis.models.contract import Message
async def main():
    model = LocalModel(ModelConfig(model=sys.argv[1], max_tokens=2, context_tokens=1024))
    reply = await model.request([Message(role='system', text=sys.argv[2]), Message(role='user', text='Say yes.')])
    print(reply.usage.input_tokens, reply.usage.cached_tokens)
    if sys.argv[3] == 'close':
        await model.close()
asyncio.run(main())
"""


@pytest.fixture(scope='module')
def name(real_weights: Path) -> str:
    """By path: the tests have a cache of their own."""
    return f'local:{real_weights}'


@pytest.fixture
async def model(name: str, cache: Path) -> AsyncIterator[LocalModel]:
    opened = LocalModel(ModelConfig(model=name, context_tokens=1024, max_tokens=16))
    yield opened
    await opened.close()


def ask(text: str) -> list[Message]:
    return [SYSTEM, Message(role='user', text=text)]


async def test_a_conversation_is_streamed_and_its_beginning_is_evaluated_once(model: LocalModel) -> None:
    bits = [bit async for bit in model.stream(ask('What is the capital of France?'))]
    reply = bits[-1]
    assert isinstance(reply, Reply)
    assert 'Paris' in reply.text
    assert ''.join(bit.text for bit in bits if isinstance(bit, Delta)) == reply.text
    assert reply.usage.input_tokens > 90
    assert reply.usage.output_tokens >= 1
    more = [*ask('What is the capital of France?'), reply.message, Message(role='user', text='And of Italy?')]
    second = await model.request(more)
    assert 'Rome' in second.text
    assert second.usage.cached_tokens >= reply.usage.input_tokens - 1


async def test_a_reply_does_not_depend_on_what_was_asked_before(model: LocalModel) -> None:
    text = 'Here are words: ' + 'apple, pear, plum, fig, ' * 8
    first = await model.request(ask(f'{text}What is the first one? Answer in a sentence.'))
    for other in (
        f'{text}What is the first letter of the last one?',
        'Say yes.',
        f'{text}What is the first one? Say no.',
    ):
        await model.request(ask(other))
    again = await model.request(ask(f'{text}What is the first one? Answer in a sentence.'))
    assert again.text == first.text
    unlike = await model.request(ask('Say yes.'))
    assert again.usage.cached_tokens == unlike.usage.cached_tokens  # the system prompt, and nothing of the words


async def test_limits_and_stops_are_kept(model: LocalModel) -> None:
    counting = ask('Count from 1 to 20, with commas.')
    cut = await model.request(counting, Options(max_tokens=4))
    assert cut.finish == 'length'
    assert cut.usage.output_tokens <= 5
    stopped = await model.request(counting, Options(max_tokens=40, stop=('3',)))
    assert stopped.finish == 'stop'
    assert '3' not in stopped.text


async def test_too_long_a_request_is_an_overflow_and_the_model_continues(model: LocalModel) -> None:
    with pytest.raises(ContextOverflow, match='tokens'):
        await model.request(ask('word ' * 2000))
    assert (await model.request(ask('Say yes.'))).text


async def test_a_full_context_ends_a_reply(name: str, cache: Path) -> None:
    model = LocalModel(ModelConfig(model=name, context_tokens=256, max_tokens=2000))
    reply = await model.request([Message(role='user', text='Write a poem of ten lines about this:' + ' sun' * 190)])
    assert reply.finish == 'length'
    assert reply.usage.tokens <= 256
    await model.close()


async def test_a_cancelled_request_frees_the_model_for_the_next(model: LocalModel) -> None:
    stream = aiter(model.stream(ask('Count from 1 to 500.'), Options(max_tokens=900)))
    await anext(stream)
    await stream.aclose()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    reply = await model.request(ask('Say yes.'), Options(max_tokens=2))
    assert reply.usage.output_tokens <= 3


async def test_the_event_loop_is_never_blocked(model: LocalModel) -> None:
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.001)
            turns += 1

    other = asyncio.create_task(take_turns())
    await model.request(ask('What is the capital of Spain?'))
    other.cancel()
    assert turns > 100  # a blocked loop has a handful, between one piece and the next


async def test_a_file_that_is_no_model_is_reported(tmp_path: Path, cache: Path) -> None:
    (tmp_path / 'bad.gguf').write_bytes(b'GGUF' + bytes(1000))
    with pytest.raises(ModelError, match='cannot load'):
        await LocalModel(ModelConfig(model=f'local:{tmp_path / "bad.gguf"}')).request(ask('Say yes.'))


def run(name: str, cache: Path, end: str) -> tuple[int, int]:
    """Tokens of the prompt, and how many of them were not evaluated, in a process of its own."""
    done = subprocess.run(
        [sys.executable, '-c', SECOND_PROCESS, name, SYSTEM.text, end],
        env={**os.environ, 'HABILIS_CACHE': str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ''
    prompt, cached = done.stdout.split()
    return int(prompt), int(cached)


def test_the_second_process_finds_the_system_prompt_evaluated_and_nothing_is_printed(name: str, cache: Path) -> None:
    assert run(name, cache, 'close')[1] == 0
    [kept] = prompt_cache.folder().iterdir()
    first = kept.stat().st_mtime_ns
    prompt, cached = run(name, cache, 'leave it open')
    assert prompt - 20 < cached < prompt
    assert kept.stat().st_mtime_ns > first
    kept.write_bytes(kept.read_bytes()[:-1000] + bytes(1000))
    assert run(name, cache, 'close')[1] == 0
    assert len(list(prompt_cache.folder().iterdir())) == 1
