"""The embedded model as the house sees it: one request at a time, streamed, cancelled, shared and freed."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from habilis.core.errors import ModelError, ModelNotFound, ModelRefused, ModelUnavailable, NoModel, SettingsError
from habilis.models.config import ModelConfig
from habilis.models.contract import Delta, Function, FunctionCall, Message, Model, Options, Progress, Reply
from habilis.models.local import LocalModel, backend
from habilis.models.local.model import to_turn
from tests.models.local import paced_backend


@pytest.fixture(autouse=True)
def _paced(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """Weights are run by the paced backend, which is at full speed and has seen nothing."""
    monkeypatch.setattr(backend, 'BACKENDS', {'json': 'tests.models.local.paced_backend'})
    for seen in (paced_backend.loaded, paced_backend.closed, paced_backend.asks):
        seen.clear()
    paced_backend.began.clear()
    paced_backend.loading.clear()
    paced_backend.stopped.clear()
    paced_backend.go.set()
    paced_backend.can_load.set()
    yield
    paced_backend.go.set()


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / 'own.gguf'
    path.write_bytes(b'GGUF')
    return path


@pytest.fixture
async def model(weights: Path) -> AsyncIterator[LocalModel]:
    opened = LocalModel(ModelConfig(model=f'local:{weights}'))
    yield opened
    await opened.close()


def said(text: str) -> list[Message]:
    return [Message(role='user', text=text)]


def test_it_is_a_model_and_names_itself(weights: Path) -> None:
    model = LocalModel(ModelConfig(model='local:'))
    assert isinstance(model, Model)
    assert model.name == 'local:qwen2.5-coder-1.5b'
    assert LocalModel(ModelConfig(model='local:qwen2.5-coder-0.5b')).name == 'local:qwen2.5-coder-0.5b'
    assert LocalModel(ModelConfig(model=f'local:{weights}')).name == f'local:{weights}'


def test_its_traits_say_what_to_expect() -> None:
    traits = LocalModel(ModelConfig(model='local:')).traits
    assert (traits.functions, traits.local, traits.scripted, traits.context_tokens) == (False, True, False, 8192)
    assert LocalModel(ModelConfig(model='local:', context_tokens=1024)).traits.context_tokens == 1024


def test_the_catalogue_says_that_it_is_small_and_settings_win(weights: Path) -> None:
    assert LocalModel(ModelConfig(model='local:')).traits.small
    assert LocalModel(ModelConfig(model='local:qwen2.5-coder-0.5b')).traits.small
    assert not LocalModel(ModelConfig(model='local:', small=False)).traits.small
    assert not LocalModel(ModelConfig(model=f'local:{weights}')).traits.small
    assert LocalModel(ModelConfig(model=f'local:{weights}', small=True)).traits.small


def test_an_unknown_name_is_reported_at_once() -> None:
    with pytest.raises(ModelNotFound, match='did you mean'):
        LocalModel(ModelConfig(model='local:qwen'))


async def test_a_reply_has_its_text_and_what_it_used(model: LocalModel) -> None:
    reply = await model.request(said('one two three'))
    assert reply.text == 'one two three '
    assert (reply.finish, reply.model) == ('stop', model.name)
    usage = reply.usage
    assert (usage.requests, usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (1, 7, 3, 3)
    assert usage.cost == 0.0
    assert usage.seconds > 0


async def test_words_are_streamed_as_they_come(model: LocalModel) -> None:
    bits = [bit async for bit in model.stream(said('one two')) if not (isinstance(bit, Delta) and bit.progress)]
    assert bits[:2] == [Delta(text='one '), Delta(text='two ')]
    assert isinstance(bits[2], Reply)
    assert bits[2].text == 'one two '


async def test_loading_and_reading_are_reported_before_the_first_word(model: LocalModel) -> None:
    items = [item async for item in model.stream([Message(role='user', text='one two')])]
    progress = [item.progress for item in items if isinstance(item, Delta) and item.progress]
    assert progress == [
        Progress(phase='loading'),
        Progress(phase='loading', done=1, total=2),
        Progress(phase='reading', done=7, total=7),
    ]
    again = [item async for item in model.stream([Message(role='user', text='three')])]
    assert [item.progress.phase for item in again if isinstance(item, Delta) and item.progress] == ['reading']


async def test_a_request_cancelled_while_loading_stops_and_the_next_loads_again(model: LocalModel) -> None:
    paced_backend.can_load.clear()
    task = asyncio.create_task(model.request([Message(role='user', text='one')]))
    await asyncio.to_thread(paced_backend.loading.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(paced_backend.stopped.wait)
    paced_backend.can_load.set()
    assert (await model.request([Message(role='user', text='two')])).text == 'two '


async def test_nothing_is_loaded_before_the_first_request(weights: Path) -> None:
    model = LocalModel(ModelConfig(model=f'local:{weights}', context_tokens=512))
    assert paced_backend.loaded == []
    await model.request(said('one'))
    await model.request(said('two'))
    assert paced_backend.loaded == [(weights, 512)]
    await model.close()
    assert paced_backend.closed == [weights]
    await model.close()


# Settings -------------------------------------------------------------------------------------------------------------


async def test_without_settings_it_is_deterministic_and_bounded(model: LocalModel) -> None:
    await model.request(said('one'))
    [ask] = paced_backend.asks
    assert (ask.temperature, ask.max_tokens, ask.stop, ask.extra) == (0.0, 1024, (), {})


async def test_settings_reach_the_backend_and_options_win(weights: Path) -> None:
    config = ModelConfig(model=f'local:{weights}', temperature=0.5, max_tokens=2, extra={'top_k': 1, 'seed': 1})
    model = LocalModel(config)
    assert (await model.request(said('one two three'))).finish == 'length'
    await model.request(said('one'), Options(temperature=0.0, max_tokens=9, stop=('#',), extra={'seed': 2}))
    await model.close()
    first, second = paced_backend.asks
    assert (first.temperature, first.max_tokens, first.extra) == (0.5, 2, {'top_k': 1, 'seed': 1})
    assert (second.temperature, second.max_tokens, second.stop) == (0.0, 9, ('#',))
    assert second.extra == {'top_k': 1, 'seed': 2}


async def test_a_fallback_temperature_yields_to_the_settings(weights: Path) -> None:
    config = ModelConfig(model=f'local:{weights}')
    for each in (config, config.with_changes(temperature=0.0)):
        model = LocalModel(each)
        await model.request(said('one'), Options(fallback_temperature=0.6))
        await model.close()
    assert [ask.temperature for ask in paced_backend.asks] == [0.6, 0.0]


async def test_functions_are_refused_with_what_to_do_instead(model: LocalModel) -> None:
    functions = (Function(name='add', description='', parameters={}),)
    with pytest.raises(ModelRefused, match='fenced block'):
        await model.request(said('one'), Options(functions=functions))


def test_calls_and_their_answers_become_text() -> None:
    call = FunctionCall(id='1', name='add', arguments='{"a": 1}')
    assert to_turn(Message(role='assistant', text='So:', calls=(call,))) == {
        'role': 'assistant',
        'content': 'So:\nadd({"a": 1})',
    }
    answer = Message(role='tool', text='3', call_id='1', call_name='add')
    assert to_turn(answer) == {'role': 'user', 'content': 'add returned:\n3'}
    assert to_turn(Message(role='system', text='Be brief.')) == {'role': 'system', 'content': 'Be brief.'}


# Many at once, and cancellation ---------------------------------------------------------------------------------------


async def _begun() -> None:
    """The backend has the first request: which of two is the first would be a matter of luck."""
    await asyncio.to_thread(paced_backend.began.wait)


async def test_requests_wait_for_each_other(model: LocalModel) -> None:
    replies = await asyncio.gather(*(model.request(said(f'number {number}')) for number in range(20)))
    assert [reply.text for reply in replies] == [f'number {number} ' for number in range(20)]


async def test_the_event_loop_continues_meanwhile(model: LocalModel) -> None:
    paced_backend.go.clear()
    task = asyncio.create_task(model.request(said('one wait')))
    for _ in range(50):
        await asyncio.sleep(0)
    assert not task.done()
    paced_backend.go.set()
    assert (await task).text == 'one wait '


async def test_a_cancelled_request_stops_and_the_next_is_answered(model: LocalModel) -> None:
    paced_backend.go.clear()
    stream = aiter(model.stream(said('one wait three')))
    while (delta := await anext(stream)) != Delta(text='one '):
        assert isinstance(delta, Delta)
        assert delta.progress is not None
    task = asyncio.create_task(model.request(said('four')))
    await asyncio.sleep(0)
    await stream.aclose()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    await asyncio.to_thread(paced_backend.stopped.wait)
    assert (await task).text == 'four '


async def test_a_request_cancelled_while_it_waits_is_never_run(model: LocalModel) -> None:
    paced_backend.go.clear()
    first = asyncio.create_task(model.request(said('wait')))
    await _begun()
    second = asyncio.create_task(model.request(said('second')))
    for _ in range(50):
        await asyncio.sleep(0)
    assert not second.done()
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    paced_backend.go.set()
    assert (await first).text == 'wait '
    await model.request(said('third'))
    assert [ask.turns[-1]['content'] for ask in paced_backend.asks] == ['wait', 'third']


async def test_no_progress_for_too_long_is_given_up(weights: Path) -> None:
    model = LocalModel(ModelConfig(model=f'local:{weights}', timeout=0.05))
    paced_backend.go.clear()
    with pytest.raises(ModelUnavailable, match=r'no progress for 0\.05 s'):
        await model.request(said('wait'))
    await model.close()


async def test_waiting_for_another_request_is_no_timeout(model: LocalModel, weights: Path) -> None:
    impatient = LocalModel(ModelConfig(model=f'local:{weights}', timeout=0.05))
    paced_backend.go.clear()
    first = asyncio.create_task(model.request(said('wait')))
    await _begun()
    second = asyncio.create_task(impatient.request(said('second')))
    await asyncio.sleep(0.3)
    assert not second.done()
    paced_backend.go.set()
    assert [(await first).text, (await second).text] == ['wait ', 'second ']
    await impatient.close()


# Shared and freed -----------------------------------------------------------------------------------------------------


async def test_models_with_the_same_file_and_context_share_it(weights: Path) -> None:
    config = ModelConfig(model=f'local:{weights}')
    one, two = LocalModel(config), LocalModel(config.with_changes(temperature=0.9))
    await asyncio.gather(one.request(said('one')), two.request(said('two')))
    assert len(paced_backend.loaded) == 1
    await one.close()
    assert paced_backend.closed == []
    await two.request(said('still there'))
    await two.close()
    assert paced_backend.closed == [weights]


async def test_another_context_has_its_own(weights: Path) -> None:
    small = LocalModel(ModelConfig(model=f'local:{weights}', context_tokens=512))
    large = LocalModel(ModelConfig(model=f'local:{weights}'))
    await asyncio.gather(small.request(said('one')), large.request(said('two')))
    assert {context for _, context in paced_backend.loaded} == {512, 8192}
    await asyncio.gather(small.close(), large.close())
    assert len(paced_backend.closed) == 2


async def test_a_closed_model_leaves_no_thread(weights: Path) -> None:
    model = LocalModel(ModelConfig(model=f'local:{weights}'))
    await model.request(said('one'))
    assert any(thread.name.startswith('habilis-local') for thread in threading.enumerate())
    await model.close()
    assert not any(thread.name.startswith('habilis-local') for thread in threading.enumerate())


def test_it_outlives_an_event_loop(weights: Path) -> None:
    model = LocalModel(ModelConfig(model=f'local:{weights}'))
    assert asyncio.run(model.request(said('one'))).text == 'one '
    assert asyncio.run(model.request(said('two'))).text == 'two '
    assert len(paced_backend.loaded) == 1
    asyncio.run(model.close())


# What can be missing or break -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures('cache')
async def test_missing_weights_say_how_to_get_them() -> None:
    with pytest.raises(NoModel, match='habilis models install'):
        await LocalModel(ModelConfig(model='local:')).request(said('one'))


async def test_a_missing_backend_says_what_to_install(model: LocalModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, 'BACKENDS', {'xllamacpp': ''})
    monkeypatch.setitem(sys.modules, 'xllamacpp', None)
    with pytest.raises(ModelError, match=r"pip install 'habilis\[local\]'"):
        await model.request(said('one'))


async def test_the_next_backend_is_used_where_the_first_cannot_be_imported(
    model: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, 'xllamacpp', None)
    monkeypatch.setattr(backend, 'BACKENDS', {'xllamacpp': 'nowhere', **backend.BACKENDS})
    assert (await model.request(said('one'))).text == 'one '


async def test_a_backend_that_is_unavailable_leaves_a_line_in_the_log(
    model: LocalModel, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    paced_backend.unavailable.append('it is not installed')
    monkeypatch.setattr(backend, 'BACKENDS', {'re': 'tests.models.local.paced_backend', **backend.BACKENDS})
    assert (await model.request(said('one'))).text == 'one '
    assert caplog.messages == ['the embedded model uses json, which is slower: it is not installed']


async def test_the_environment_names_the_backend(model: LocalModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(backend.VARIABLE, 'fastest')
    with pytest.raises(SettingsError, match='HABILIS_ENGINE=fastest is not one of paced_backend'):
        await model.request(said('one'))
    monkeypatch.setenv(backend.VARIABLE, 'paced_backend')
    assert (await model.request(said('one'))).text == 'one '


async def test_a_failure_inside_llama_cpp_is_reported_and_the_weights_are_loaded_anew(model: LocalModel) -> None:
    with pytest.raises(ModelError, match='llama_decode returned -3'):
        await model.request(said('fail'))
    assert (await model.request(said('one'))).text == 'one '
    assert len(paced_backend.loaded) == 2
