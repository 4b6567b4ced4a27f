"""The prebuilt llama.cpp with the real weights: it is cancelled at any moment and says how far it is."""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from habilis.core.errors import ModelRefused
from habilis.models.config import ModelConfig
from habilis.models.contract import Delta, Message, Options, Progress, Reply
from habilis.models.local import LocalModel, ensure_engine
from habilis.models.local.engine_build import installed
from habilis.models.local.llama_library import open_library

pytestmark = pytest.mark.model

LONG = [Message(role='user', text='Here are words: ' + 'apple, pear, plum, fig, ' * 20 + 'Which is the first?')]
SHORT = [Message(role='user', text='What is the capital of France? One word.')]


@pytest.fixture(scope='module')
def engine() -> Path:
    """The real library, installed where the user has it."""
    with pytest.MonkeyPatch.context() as online:
        online.delenv('NPM_CONFIG_OFFLINE')
        folder = asyncio.run(ensure_engine())
    assert folder is not None, 'the prebuilt llama.cpp cannot be installed here'
    return folder


@pytest.fixture
async def model(
    real_weights: Path, engine: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[LocalModel]:
    shutil.copytree(engine, cache / 'engines' / engine.name)
    monkeypatch.setenv('HABILIS_ENGINE', 'prebuilt')
    opened = LocalModel(ModelConfig(model=f'local:{real_weights}', context_tokens=1024, max_tokens=16))
    yield opened
    await opened.close()


async def test_it_loads_reads_and_writes(model: LocalModel) -> None:
    items = [item async for item in model.stream(LONG)]
    reply = items[-1]
    assert isinstance(reply, Reply)
    assert 'apple' in reply.text
    progress = [item.progress for item in items if isinstance(item, Delta) and item.progress]
    assert [item.phase for item in progress] == sorted(item.phase for item in progress)  # loading, then reading
    loading = [item for item in progress if item.phase == 'loading']
    reading = [item for item in progress if item.phase == 'reading']
    assert loading[-1].done == loading[-1].total
    assert len(reading) > 4
    assert reading[0].done == 0
    assert reading[-1].done == reading[-1].total == reply.usage.input_tokens


async def cancel_when(model: LocalModel, reached: Callable[[Delta], bool]) -> None:
    """Start a request and cancel it at a moment, as Ctrl-C does."""
    arrived = asyncio.Event()

    async def ask() -> None:
        async for item in model.stream(LONG, Options(max_tokens=500)):
            if isinstance(item, Delta) and reached(item):
                arrived.set()

    task = asyncio.create_task(ask())
    await arrived.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def is_loading(delta: Delta) -> bool:
    return delta.progress is not None and delta.progress.phase == 'loading' and delta.progress.done > 0


def is_reading(delta: Delta) -> bool:
    return delta.progress is not None and delta.progress.phase == 'reading'


def is_writing(delta: Delta) -> bool:
    return bool(delta.text)


@pytest.mark.parametrize('moment', [is_loading, is_reading, is_writing])
async def test_a_cancelled_request_uses_no_processor_and_the_next_is_answered(
    model: LocalModel, moment: Callable[[Delta], bool]
) -> None:
    await cancel_when(model, moment)
    before = time.process_time()
    await asyncio.sleep(3)
    assert time.process_time() - before < 1.0  # a thread that goes on uses 3 s, or 6 s if there are two
    assert 'Paris' in (await model.request(SHORT)).text


async def test_a_grammar_restricts_the_reply_and_a_wrong_one_is_refused(model: LocalModel) -> None:
    reply = await model.request(SHORT, Options(extra={'grammar': 'root ::= "Lyon" | "Nice"'}))
    assert reply.text in ('Lyon', 'Nice')
    with pytest.raises(ModelRefused, match='not valid GBNF'):
        await model.request(SHORT, Options(extra={'grammar': 'root ::= ('}))
    seeded = Options(temperature=1.0, extra={'seed': 7, 'top_k': 50, 'repeat_penalty': 1.1})
    assert (await model.request(SHORT, seeded)).text == (await model.request(SHORT, seeded)).text


async def test_the_whole_prompt_in_the_cache_is_read_from_its_last_token(model: LocalModel) -> None:
    first, second = await model.request(SHORT), await model.request(SHORT)
    assert second.text == first.text
    items = [item async for item in model.stream(SHORT)]
    [start, end] = [item.progress for item in items if isinstance(item, Delta) and item.progress]
    total = first.usage.input_tokens
    assert (start, end) == (
        Progress(phase='reading', done=total - 1, total=total),
        Progress(phase='reading', done=total, total=total),
    )


def test_the_library_is_the_version_that_its_declarations_follow(engine: Path) -> None:
    assert installed() == engine
    assert open_library(engine).llama_version().startswith(b'0.4.0')
