"""Row B12: the same request twice makes one provider call."""

import asyncio
import dataclasses
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

import pytest

from habilis.core.errors import ModelUnavailable
from habilis.models.cache import CachedModel
from habilis.models.config import ModelConfig
from habilis.models.contract import Delta, Function, FunctionCall, Message, Model, Options, Reply, Usage
from habilis.models.scripted import Scripted, ScriptedModel
from tests.models.failing_model import FailingModel

ASK = (Message(role='user', text='hello'),)
CALL = FunctionCall(id='c1', name='python', arguments='{"code": "1"}')
CONFIG = ModelConfig(model='openai:gpt-4o', api_key='secret')


def counting() -> ScriptedModel:
    """Each reply of it is another."""
    replies: list[Scripted] = [f'reply {number}' for number in range(100)]
    return ScriptedModel(replies)


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob('*') if path.is_file()]


async def test_the_same_request_twice_makes_one_call(tmp_path: Path) -> None:
    inner = counting()
    model = CachedModel(inner, tmp_path)
    first, second = await model.request(ASK), await model.request(ASK)
    assert first.text == second.text == 'reply 0'
    assert (first.cached, second.cached) == (False, True)
    assert len(inner.requests) == 1


async def test_without_the_cache_it_makes_two() -> None:
    inner = counting()
    assert [(await inner.request(ASK)).text for _ in range(2)] == ['reply 0', 'reply 1']


async def test_a_cached_reply_costs_nothing_and_keeps_the_rest(tmp_path: Path) -> None:
    usage = Usage(requests=1, input_tokens=1000, output_tokens=50, seconds=9.0, cost=0.75)
    reply = Reply(text='Ü 🎉', calls=(CALL,), thinking='hm', finish='calls', model='openai:gpt-4o', usage=usage)
    model = CachedModel(ScriptedModel([reply]), tmp_path)
    assert await model.request(ASK) == reply
    again = await model.request(ASK)
    assert dataclasses.replace(again, usage=usage, cached=False) == reply
    assert (again.usage.requests, again.usage.tokens, again.usage.cost) == (0, 0, 0.0)
    assert 0 < again.usage.seconds < 9.0


async def test_the_cache_outlives_the_model(tmp_path: Path) -> None:
    await CachedModel(counting(), tmp_path).request(ASK)
    inner = counting()
    assert (await CachedModel(inner, tmp_path).request(ASK)).cached
    assert inner.requests == []


OTHER_MESSAGES: list[tuple[Message, ...]] = [
    (),
    (Message(role='user', text='hello '),),
    (Message(role='system', text='hello'),),
    (*ASK, *ASK),
    (Message(role='assistant', text='hello', calls=(CALL,)),),
    (Message(role='assistant', text='hello', calls=(dataclasses.replace(CALL, id='c2'),)),),
    (Message(role='tool', text='hello', call_id='c1'),),
    (Message(role='tool', text='hello', call_id='c2'),),
    (Message(role='user', text='hello\ud800'),),
]
OTHER_OPTIONS = [
    Options(temperature=0.0),
    Options(fallback_temperature=0.0),
    Options(fallback_temperature=0.5),
    Options(max_tokens=5),
    Options(stop=('x',)),
    Options(extra={'seed': 1}),
    Options(extra={'seed': 2}),
    Options(functions=(Function(name='f', description='', parameters={'type': 'object'}),)),
    Options(functions=(Function(name='f', description='other', parameters={'type': 'object'}),)),
]
OTHER_CONFIGS = [
    CONFIG,
    CONFIG.with_changes(temperature=0.5),
    CONFIG.with_changes(max_tokens=9),
    CONFIG.with_changes(base_url='http://localhost:1'),
    CONFIG.with_changes(extra={'top_p': 0.5}),
    CONFIG.with_changes(functions=False),
]


def test_whatever_reaches_the_model_makes_another_key(tmp_path: Path) -> None:
    plain = CachedModel(counting(), tmp_path)
    keys = [plain.key(ASK)]
    keys += [plain.key(messages) for messages in OTHER_MESSAGES]
    keys += [plain.key(ASK, options) for options in OTHER_OPTIONS]
    keys += [CachedModel(counting(), tmp_path, config=config).key(ASK) for config in OTHER_CONFIGS]
    keys.append(CachedModel(ScriptedModel([], name='scripted:other'), tmp_path).key(ASK))
    assert len(set(keys)) == len(keys)


def test_what_does_not_reach_the_model_makes_no_other_key(tmp_path: Path) -> None:
    model = CachedModel(counting(), tmp_path, config=CONFIG)
    later = Message(role='user', text='hello', thinking='hm', cache=True, created_at=datetime(2024, 1, 1, tzinfo=UTC))
    patient = CONFIG.with_changes(api_key='another', timeout=5.0, retries=1)
    assert model.key([later]) == model.key(ASK)
    assert CachedModel(counting(), tmp_path, config=patient).key(ASK) == model.key(ASK)


def test_a_fallback_temperature_is_part_of_the_key_only_where_it_is_used(tmp_path: Path) -> None:
    other = Options(fallback_temperature=0.6)
    unset = CachedModel(counting(), tmp_path, config=CONFIG)
    assert unset.key(ASK, other) != unset.key(ASK)
    cold = CachedModel(counting(), tmp_path, config=CONFIG.with_changes(temperature=0.0))
    assert cold.key(ASK, other) == cold.key(ASK)
    both = Options(temperature=0.1, fallback_temperature=0.6)
    assert unset.key(ASK, both) == unset.key(ASK, Options(temperature=0.1))


def test_the_order_and_the_kind_of_a_mapping_do_not_matter(tmp_path: Path) -> None:
    model = CachedModel(counting(), tmp_path)
    ordered = Options(extra={'a': 1, 'b': {'c': 2, 'd': 3}})
    other = Options(extra=MappingProxyType({'b': {'d': 3, 'c': 2}, 'a': 1}))
    assert model.key(ASK, ordered) == model.key(ASK, other)


async def test_equal_requests_at_the_same_time_make_one_call(tmp_path: Path) -> None:
    inner = ScriptedModel(['one', 'two'], latency=0.01)
    model = CachedModel(inner, tmp_path)
    replies = await asyncio.gather(*(model.request(ASK) for _ in range(10)), _last(model))
    assert {reply.text for reply in replies} == {'one'}
    assert [reply.cached for reply in replies].count(False) == 1
    assert len(inner.requests) == 1


async def _last(model: Model) -> Reply:
    last = [item async for item in model.stream(ASK)][-1]
    assert isinstance(last, Reply)
    return last


async def test_different_requests_do_not_wait_for_each_other(tmp_path: Path) -> None:
    second_came = asyncio.Event()

    async def script(messages: Sequence[Message]) -> str:
        if messages == ASK:
            await second_came.wait()
        else:
            second_came.set()
        return 'done'

    model = CachedModel(ScriptedModel(script), tmp_path)
    async with asyncio.timeout(60):
        await asyncio.gather(model.request(ASK), model.request(ASK * 2))


async def test_when_the_first_of_two_is_cancelled_the_second_asks_itself(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def script(_: Sequence[Message]) -> str:
        if not begun.is_set():
            begun.set()
            await asyncio.Event().wait()
        return 'done'

    model = CachedModel(ScriptedModel(script), tmp_path)
    first, second = asyncio.create_task(model.request(ASK)), asyncio.create_task(model.request(ASK))
    await begun.wait()
    first.cancel()
    assert (await second).text == 'done'
    with pytest.raises(asyncio.CancelledError):
        await first


def test_one_model_serves_one_loop_after_the_other(tmp_path: Path) -> None:
    inner = counting()
    model = CachedModel(inner, tmp_path)

    async def both() -> tuple[Reply, Reply]:
        return await asyncio.gather(model.request(ASK), model.request(ASK))

    assert [reply.text for _ in range(2) for reply in asyncio.run(both())] == ['reply 0'] * 4
    assert len(inner.requests) == 1


@pytest.mark.parametrize(
    'reply',
    [
        ModelUnavailable('down'),
        '',
        Reply(text='', thinking='only thoughts'),
        Reply(text='cut o', finish='length'),
    ],
)
async def test_errors_empty_replies_and_cut_ones_are_not_kept(tmp_path: Path, reply: Scripted) -> None:
    model = CachedModel(ScriptedModel([reply, reply, 'good']), tmp_path)
    for _ in range(2):
        if isinstance(reply, Exception):
            with pytest.raises(ModelUnavailable):
                await model.request(ASK)
        else:
            assert not (await model.request(ASK)).cached
    assert files(tmp_path) == []
    assert (await model.request(ASK)).text == 'good'


async def test_a_reply_that_is_only_calls_is_kept(tmp_path: Path) -> None:
    model = CachedModel(ScriptedModel([Reply(calls=(CALL,))]), tmp_path)
    await model.request(ASK)
    assert (await model.request(ASK)).calls == (CALL,)


@pytest.mark.parametrize(
    'damage',
    [b'', b'{', b'\xff\xfe', b'null', b'[]', b'{"version": 1}', b'{"version": 1, "reply": {"text": 3}}', b'[' * 99_999],
)
async def test_a_damaged_file_is_ignored_and_written_anew(tmp_path: Path, damage: bytes) -> None:
    inner = counting()
    model = CachedModel(inner, tmp_path)
    await model.request(ASK)
    [path] = files(tmp_path)
    path.write_bytes(damage)
    assert (await model.request(ASK)).text == 'reply 1'
    assert (await model.request(ASK)).text == 'reply 1'
    assert files(tmp_path) == [path]


async def test_a_file_of_another_version_is_not_read(tmp_path: Path) -> None:
    model = CachedModel(counting(), tmp_path)
    await model.request(ASK)
    [path] = files(tmp_path)
    path.write_text(json.dumps({**json.loads(path.read_text()), 'version': 0}))
    assert (await model.request(ASK)).text == 'reply 1'


async def test_a_folder_that_cannot_be_written_loses_no_reply(tmp_path: Path) -> None:
    (tmp_path / 'cache').write_text('a file is in the way')
    model = CachedModel(counting(), tmp_path / 'cache')
    assert [(await model.request(ASK)).text for _ in range(2)] == ['reply 0', 'reply 1']


async def test_no_key_and_no_draft_is_left_in_the_folder(tmp_path: Path) -> None:
    await CachedModel(counting(), tmp_path, config=CONFIG).request(ASK)
    [path] = files(tmp_path)
    assert path.suffix == '.json'
    assert 'secret' not in path.read_text()


async def test_a_stream_is_kept_and_replayed_as_one_bit(tmp_path: Path) -> None:
    reply = Reply(text='one two', thinking='hm', calls=(CALL,))
    inner = ScriptedModel([reply])
    model = CachedModel(inner, tmp_path)
    live = [item async for item in model.stream(ASK)]
    bit, last = [item async for item in model.stream(ASK)]
    assert len(live) > 3
    assert bit == Delta(text='one two', thinking='hm', arguments=CALL.arguments)
    assert isinstance(last, Reply)
    assert (last.text, last.cached) == ('one two', True)
    assert len(inner.requests) == 1


async def test_a_stream_that_breaks_or_is_left_is_not_kept(tmp_path: Path) -> None:
    inner = FailingModel([Delta(text='a'), Delta(text='b')], ModelUnavailable('down'))
    model = CachedModel(inner, tmp_path)
    stream = model.stream(ASK)
    await anext(stream)
    await stream.aclose()
    with pytest.raises(ModelUnavailable):
        async for _ in model.stream(ASK):
            pass
    assert (inner.begun, inner.ended) == (2, 2)
    assert files(tmp_path) == []


def test_it_is_the_model_inside_in_all_else(tmp_path: Path) -> None:
    inner = counting()
    model = CachedModel(inner, tmp_path)
    assert isinstance(model, Model)
    assert (model.name, model.traits) == (inner.name, inner.traits)
