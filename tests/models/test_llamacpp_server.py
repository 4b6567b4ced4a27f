"""A real llama.cpp server with real weights, asked as any OpenAI-compatible server is. `habilis models install` gets
the weights."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import pytest

from evals.server import model_server, served_model
from habilis.agent import Agent
from habilis.core.errors import ContextOverflow, ModelError
from habilis.models import Model, ModelConfig, load_model
from habilis.models.contract import Delta, Message, Options, Reply

pytestmark = pytest.mark.model

SYSTEM = Message(role='system', text='You answer with one word.')


@pytest.fixture(scope='module')
def url(real_weights: Path) -> Iterator[str]:
    with model_server(real_weights) as address:
        yield address


def opened(url: str, **settings: object) -> Model:
    return load_model(ModelConfig(model=f'llamacpp:{served_model(url)}', base_url=url).with_changes(**settings))


def ask(text: str) -> list[Message]:
    return [SYSTEM, Message(role='user', text=text)]


async def test_a_reply_is_streamed_and_counted(url: str) -> None:
    model = opened(url, temperature=0, max_tokens=16)
    bits = [bit async for bit in model.stream(ask('What is the capital of France?'))]
    whole = await model.request(ask('What is the capital of France?'))
    await model.close()
    reply = bits[-1]
    assert isinstance(reply, Reply)
    assert 'Paris' in reply.text
    assert ''.join(bit.text for bit in bits if isinstance(bit, Delta)) == reply.text == whole.text
    assert reply.finish == whole.finish == 'stop'
    assert reply.usage.input_tokens == whole.usage.input_tokens > 15
    assert 1 <= reply.usage.output_tokens <= 16


async def test_limits_and_stops_are_kept(url: str) -> None:
    model = opened(url, temperature=0)
    counting = [Message(role='user', text='Count from 1 to 20, with commas.')]
    cut = await model.request(counting, Options(max_tokens=4))
    stopped = await model.request(counting, Options(max_tokens=40, stop=('3',)))
    await model.close()
    assert (cut.finish, cut.usage.output_tokens) == ('length', 4)
    assert stopped.finish == 'stop'
    assert '3' not in stopped.text


async def test_too_long_a_request_is_an_overflow(url: str) -> None:
    model = opened(url, max_tokens=4)
    with pytest.raises(ContextOverflow):
        await model.request(ask('word ' * 40_000))
    assert (await model.request(ask('Say yes.'))).text
    await model.close()


async def test_who_stops_listening_frees_the_server(url: str) -> None:
    model = opened(url)
    endless = Options(max_tokens=2000)
    async with aclosing(cast('AsyncGenerator[Delta | Reply]', model.stream(ask('Count to 9999.'), endless))) as stream:
        await anext(stream)
    async with asyncio.timeout(60):  # it would count for minutes
        assert (await model.request(ask('Say yes.'), Options(max_tokens=2))).text
    await model.close()


async def test_an_agent_works_with_it(url: str) -> None:
    async with Agent(opened(url, temperature=0), output_type=int) as agent:
        result = await agent.run('What is the sum of the squares of the numbers from 1 to 100?')
    assert result.output == 338350
    assert result.usage.input_tokens > 0


def test_so_does_the_command(url: str, tmp_path: Path) -> None:
    command = [sys.executable, '-m', 'habilis', 'run', '--quiet', '--model', f'llamacpp:{served_model(url)}']
    done = subprocess.run(
        [*command, 'What is 12 * 12?'],
        env={**os.environ, 'LLAMACPP_BASE_URL': url, 'HABILIS_JOURNAL': 'off'},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, '144'), done.stderr


async def test_a_server_that_dies_in_the_middle_is_reported(real_weights: Path) -> None:
    with model_server(real_weights) as address:
        model = opened(address, retries=0)
        with pytest.raises(ModelError) as told:
            await _listen_and_kill(model, address)
        await model.close()
    assert '\n' not in str(told.value)


async def _listen_and_kill(model: Model, address: str) -> None:
    async for _ in model.stream(ask('Count to 9999.'), Options(max_tokens=2000)):
        _kill_server(address)


def _kill_server(address: str) -> None:
    port = str(urlsplit(address).port).encode()
    for folder in Path('/proc').glob('[0-9]*'):
        with contextlib.suppress(OSError):  # it ended meanwhile
            if port in (folder / 'cmdline').read_bytes().split(b'\0'):
                os.kill(int(folder.name), signal.SIGKILL)
