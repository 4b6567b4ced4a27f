"""Row B11 (a script instead of a model, always labelled) and B16 (each reply carries its seconds)."""

import asyncio
import contextlib
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.core.errors import ModelError, RateLimited
from habilis.models.contract import Delta, Finish, FunctionCall, Message, Model, Options, Reply, Usage
from habilis.models.reply_codec import reply_from_json, reply_to_json
from habilis.models.scripted import MAX_REQUESTS, ScriptedModel, record

ASK = (Message(role='user', text='What is 6 times 7?'),)
CALL = FunctionCall(id='c1', name='python', arguments='{"code": "6 * 7"}')


async def test_it_answers_from_a_list_in_order() -> None:
    model = ScriptedModel(['one', Reply(text='two', finish='length')])
    assert [(await model.request(ASK)).text, (await model.request(ASK)).finish] == ['one', 'length']


async def test_it_is_a_model_that_is_labelled_as_scripted() -> None:
    model = ScriptedModel([], name='scripted:demo', functions=True)
    assert isinstance(model, Model)
    assert model.traits.scripted
    assert model.traits.functions
    assert model.name == 'scripted:demo'


async def test_the_label_is_on_each_reply_unless_the_script_says_another() -> None:
    model = ScriptedModel(['a', Reply(text='b', model='openai:recorded')])
    assert [(await model.request(ASK)).model for _ in range(2)] == ['scripted:script', 'openai:recorded']


async def test_running_out_says_how_many_replies_there_were() -> None:
    model = ScriptedModel(['a', 'b'])
    await model.request(ASK)
    await model.request(ASK)
    with pytest.raises(ModelError, match=r'request 3, but the script has only 2'):
        await model.request(ASK)


async def test_an_empty_script_has_nothing_to_say() -> None:
    with pytest.raises(ModelError, match=r'the script has only 0'):
        await ScriptedModel([]).request(ASK)


async def test_an_error_in_the_script_is_raised_and_the_next_reply_follows() -> None:
    model = ScriptedModel([RateLimited('slow down', status=429), ValueError('not ours'), 'at last'])
    with pytest.raises(RateLimited, match='slow down'):
        await model.request(ASK)
    with pytest.raises(ValueError, match='not ours'):
        await anext(model.stream(ASK))
    assert (await model.request(ASK)).text == 'at last'


async def test_a_function_of_the_messages_makes_the_replies() -> None:
    def script(messages: Sequence[Message]) -> str | Reply | Exception:
        return ModelError('too much') if len(messages) > 1 else messages[-1].text.upper()

    model = ScriptedModel(script)
    assert (await model.request(ASK)).text == 'WHAT IS 6 TIMES 7?'
    with pytest.raises(ModelError, match='too much'):
        await model.request(ASK * 2)


async def test_a_function_finds_the_options_of_its_request() -> None:
    model = ScriptedModel(lambda _: f'{model.requests[-1].options.fallback_temperature}')
    assert (await model.request(ASK, Options(fallback_temperature=0.6))).text == '0.6'


def test_it_is_small_if_declared_small() -> None:
    assert ScriptedModel([], small=True).traits.small
    assert not ScriptedModel([]).traits.small


async def test_the_function_may_be_async() -> None:
    async def script(messages: Sequence[Message]) -> str:
        await asyncio.sleep(0)
        return f'{len(messages)} heard'

    assert (await ScriptedModel(script).request(ASK)).text == '1 heard'


async def test_it_keeps_what_it_was_asked_also_when_it_fails() -> None:
    model = ScriptedModel(['a'])
    messages, options = list(ASK), Options(temperature=0.5)
    await model.request(messages, options)
    messages.append(Message(role='assistant', text='changed later'))
    with pytest.raises(ModelError):
        await model.request(messages)
    assert model.requests[0].messages == ASK
    assert model.requests[0].options is options
    assert len(model.requests[1].messages) == 2


async def test_a_stream_comes_word_by_word_and_ends_with_the_reply() -> None:
    reply = Reply(text='Six times\nseven is 42.', thinking='easy one', calls=(CALL,), finish='calls')
    items = [item async for item in ScriptedModel([reply]).stream(ASK)]
    deltas = [item for item in items if isinstance(item, Delta)]
    assert [delta.text for delta in deltas if delta.text] == ['Six ', 'times\n', 'seven ', 'is ', '42.']
    assert ''.join(delta.thinking for delta in deltas) == 'easy one'
    assert ''.join(delta.arguments for delta in deltas) == CALL.arguments
    last = items[-1]
    assert isinstance(last, Reply)
    assert (last.text, last.calls, last.finish) == (reply.text, reply.calls, 'calls')


@given(st.text())
async def test_the_words_of_a_stream_are_the_text_whatever_it_is(text: str) -> None:
    items = [item async for item in ScriptedModel([text]).stream(ASK)]
    assert ''.join(item.text for item in items if isinstance(item, Delta)) == text


async def test_usage_is_counted_and_timed() -> None:
    usage = (await ScriptedModel(['The answer is 42.']).request(ASK)).usage
    assert usage.requests == 1
    assert usage.input_tokens > usage.output_tokens > 3
    assert usage.cost == 0.0
    assert usage.seconds > 0


async def test_usage_that_the_script_gives_is_left_as_it_is() -> None:
    given_usage = Usage(requests=1, input_tokens=1000, output_tokens=10, seconds=2.5, cost=0.25)
    assert (await ScriptedModel([Reply(text='x', usage=given_usage)]).request(ASK)).usage == given_usage


async def test_latency_is_part_of_the_seconds() -> None:
    model = ScriptedModel(['one two three'] * 2, latency=0.03)
    assert (await model.request(ASK)).usage.seconds >= 0.03
    last = [item async for item in model.stream(ASK)][-1]
    assert isinstance(last, Reply)
    assert last.usage.seconds >= 0.03


async def test_closing_twice_is_fine() -> None:
    model = ScriptedModel([])
    await model.close()
    await model.close()


async def test_what_was_recorded_can_be_played(tmp_path: Path) -> None:
    path = tmp_path / 'new folder' / 'talk.jsonl'
    real = ScriptedModel(['first', ModelError('lost'), Reply(text='zwei Ü 🎉', calls=(CALL,), thinking='hm')])
    recorder = record(real, path)
    first = await recorder.request(ASK)
    with pytest.raises(ModelError, match='lost'):
        await recorder.request(ASK)
    last = [item async for item in recorder.stream(ASK)][-1]
    played = ScriptedModel.from_file(path)
    assert (recorder.name, played.name) == (real.name, 'scripted:talk')
    assert [await played.request(ASK), await played.request(ASK)] == [first, last]


async def test_a_recording_begins_anew_and_holds_what_came_before_a_crash(tmp_path: Path) -> None:
    path = tmp_path / 'talk.jsonl'
    path.write_text('"old"\n')
    recorder = record(ScriptedModel(['a', 'b']), path)
    assert path.read_text() == '"old"\n'
    await recorder.request(ASK)
    assert [json.loads(line)['text'] for line in path.read_text().splitlines()] == ['a']
    await recorder.request(ASK)
    assert [json.loads(line)['text'] for line in path.read_text().splitlines()] == ['a', 'b']


@pytest.mark.parametrize('content', ['["a", {"text": "b"}]', '"a"\n\n{"text": "b"}\n', '\ufeff"a"\r\n{"text": "b"}'])
async def test_a_script_file_is_a_list_or_lines(tmp_path: Path, content: str) -> None:
    path = tmp_path / 'script.json'
    path.write_bytes(content.encode())
    model = ScriptedModel.from_file(path, name='scripted:mine', functions=True)
    assert [(await model.request(ASK)).text, (await model.request(ASK)).text] == ['a', 'b']
    assert (model.name, model.traits.functions) == ('scripted:mine', True)


@pytest.mark.parametrize(
    ('content', 'problem'),
    [
        (b'[1]', 'item 1: expected a string or an object, not int'),
        (b'"a"\nnull', 'line 2: expected a string or an object, not NoneType'),
        (b'{"txt": "a"}', "line 1: unknown field 'txt'"),
        (b'{"text": 5}', 'line 1: text: '),
        (b'{"finish": "whenever"}', 'line 1: finish: '),
        (b'{"calls": [{"id": "1"}]}', 'line 1: calls.0.name: '),
        (b'{"text": "a"', 'line 1 is not JSON'),
        (b'["a",', 'the list is not JSON'),
        (b'[' * 100_000, 'the list is not JSON'),
        (b'\xff\xfe\x00', 'cannot read the script'),
    ],
)
def test_a_bad_file_is_named_with_the_place_and_the_problem(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / 'bad.json'
    path.write_bytes(content)
    with pytest.raises(ModelError) as caught:
        ScriptedModel.from_file(path)
    assert str(path) in str(caught.value)
    assert problem in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r'cannot read the script .*nowhere\.json'):
        ScriptedModel.from_file(tmp_path / 'nowhere.json')


FINISHES: list[Finish] = ['stop', 'length', 'calls', 'filter', 'early', 'other']
CALLS = st.builds(FunctionCall, id=st.text(), name=st.text(), arguments=st.text())
COUNTS = st.integers(0, 10**12)
USAGES = st.builds(
    Usage, requests=COUNTS, input_tokens=COUNTS, seconds=st.floats(0, 1e9), cost=st.none() | st.floats(0, 1e6)
)
REPLIES = st.builds(
    Reply,
    text=st.text(),
    calls=st.lists(CALLS, max_size=3).map(tuple),
    thinking=st.text(),
    finish=st.sampled_from(FINISHES),
    model=st.text(),
    usage=USAGES,
    cached=st.booleans(),
)


@given(REPLIES)
def test_a_reply_comes_back_from_json_as_it_was(reply: Reply) -> None:
    assert reply_from_json(json.loads(json.dumps(reply_to_json(reply)))) == reply


def test_half_a_character_does_not_break_a_recording() -> None:
    assert reply_from_json(reply_to_json(Reply(text='a\ud800b'))).text == 'a?b'


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(['text', 'calls', 'usage', 'x']), inner)
    ),
    max_leaves=8,
)


@given(JSON)
def test_any_json_is_a_reply_or_a_value_error(item: str | None) -> None:
    with contextlib.suppress(ValueError):
        assert type(reply_from_json(item).text) is str


async def test_only_the_latest_requests_are_remembered() -> None:
    model = ScriptedModel(lambda messages: messages[-1].text)
    for number in range(MAX_REQUESTS + 5):
        await model.request([Message(role='user', text=str(number))])
    assert [int(one.messages[-1].text) for one in model.requests] == list(range(5, MAX_REQUESTS + 5))
