"""Several models in order."""

import pytest

from habilis.core.errors import (
    ContextOverflow,
    DownloadError,
    EmptyReply,
    ModelAccessDenied,
    ModelError,
    ModelNotFound,
    ModelRefused,
    ModelUnavailable,
    NoModel,
    RateLimited,
)
from habilis.models.config import ModelConfig
from habilis.models.contract import Delta, Message, Model, Reply, Traits
from habilis.models.engine import EngineModel
from habilis.models.fallback import FallbackModel
from habilis.models.scripted import ScriptedModel
from tests.models.failing_model import FailingModel, read_into

ASK = (Message(role='user', text='hello'),)


def failing(name: str, error: Exception) -> ScriptedModel:
    return ScriptedModel([error], name=name)


async def test_the_first_model_answers_if_it_can() -> None:
    second = ScriptedModel(['b'], name='scripted:b')
    reply = await FallbackModel([ScriptedModel(['a'], name='scripted:a'), second]).request(ASK)
    assert (reply.text, reply.model) == ('a', 'scripted:a')
    assert second.requests == []


@pytest.mark.parametrize(
    'kind',
    [
        ModelAccessDenied,
        ModelNotFound,
        ModelUnavailable,
        RateLimited,
        ModelRefused,
        EmptyReply,
        DownloadError,
        NoModel,
        ModelError,
    ],
)
async def test_the_next_is_asked_and_the_reply_says_who_answered(kind: type[ModelError]) -> None:
    model = FallbackModel([failing('a:1', kind('no')), failing('b:2', kind('no')), ScriptedModel(['c'], name='c:3')])
    reply = await model.request(ASK)
    assert (reply.text, reply.model) == ('c', 'c:3')


async def test_a_conversation_that_is_too_long_is_not_sent_to_the_next() -> None:
    second = ScriptedModel(['b'])
    with pytest.raises(ContextOverflow):
        await FallbackModel([failing('a:1', ContextOverflow('too long')), second]).request(ASK)
    assert second.requests == []


async def test_when_all_fail_one_line_names_each_and_its_reason() -> None:
    model = FallbackModel(
        [failing('a:1', ModelAccessDenied('wrong key', status=401)), failing('b:2', ModelNotFound('no\n such  model'))]
    )
    with pytest.raises(ModelError) as caught:
        await model.request(ASK)
    assert str(caught.value) == 'all 2 models failed: a:1: wrong key; b:2: no such model'
    assert type(caught.value) is ModelError


async def test_when_all_fail_in_the_same_way_the_error_is_of_that_kind() -> None:
    model = FallbackModel([failing(name, ModelAccessDenied('wrong key', status=401)) for name in ('a:1', 'b:2')])
    with pytest.raises(ModelAccessDenied) as caught:
        await model.request(ASK)
    assert caught.value.status == 401


async def test_when_one_of_them_may_answer_later_so_may_all_together() -> None:
    model = FallbackModel(
        [
            failing('a:1', ModelAccessDenied('wrong key')),
            failing('b:2', RateLimited('busy', retry_after=9.0)),
            failing('c:3', RateLimited('busy', retry_after=3.0)),
        ]
    )
    with pytest.raises(ModelUnavailable) as caught:
        await model.request(ASK)
    assert caught.value.retryable
    assert caught.value.retry_after == 3.0


async def test_a_bug_is_not_hidden_by_the_next_model() -> None:
    with pytest.raises(ZeroDivisionError):
        await FallbackModel([failing('a:1', ZeroDivisionError()), ScriptedModel(['b'])]).request(ASK)


async def test_a_stream_goes_over_to_the_next_model_before_its_first_words() -> None:
    model = FallbackModel([FailingModel([Delta()], ModelUnavailable('down')), ScriptedModel(['b c'], name='b:2')])
    items = [item async for item in model.stream(ASK)]
    assert ''.join(item.text for item in items if isinstance(item, Delta)) == 'b c'
    last = items[-1]
    assert isinstance(last, Reply)
    assert last.model == 'b:2'


async def test_a_stream_that_broke_after_its_first_words_stays_broken() -> None:
    second = ScriptedModel(['b'])
    error = ModelUnavailable('down')
    seen: list[Delta | Reply] = []
    model = FallbackModel([FailingModel([Delta(thinking='hm')], error), second])
    with pytest.raises(ModelUnavailable) as caught:
        await read_into(seen, model.stream(ASK))
    assert caught.value is error
    assert seen == [Delta(thinking='hm')]
    assert second.requests == []


async def test_streams_that_all_fail_are_one_error_too() -> None:
    model = FallbackModel([failing('a:1', ModelNotFound('gone')), failing('b:2', ModelNotFound('gone too'))])
    with pytest.raises(ModelNotFound, match=r'a:1: gone; b:2: gone too'):
        await anext(model.stream(ASK))


async def test_a_stream_that_overflows_is_not_sent_to_the_next() -> None:
    second = ScriptedModel(['b'])
    with pytest.raises(ContextOverflow):
        await anext(FallbackModel([failing('a:1', ContextOverflow('too long')), second]).stream(ASK))
    assert second.requests == []


async def test_a_reply_that_does_not_say_who_gave_it_is_signed() -> None:
    model = FailingModel([Reply(text='a')], ModelError('after the end'), name='a:1')
    first = await anext(FallbackModel([model]).stream(ASK))
    assert isinstance(first, Reply)
    assert first.model == 'a:1'


def test_it_can_what_each_of_them_can() -> None:
    able = ScriptedModel([], functions=True)
    assert FallbackModel([able, able]).traits.functions
    assert not FallbackModel([able, ScriptedModel([])]).traits.functions
    assert FallbackModel([FailingModel([], ModelError('x')), able]).traits.scripted


def test_it_is_small_only_if_all_its_members_are() -> None:
    small, large = ScriptedModel([], small=True), ScriptedModel([])
    assert FallbackModel([small, small]).traits.small
    assert not FallbackModel([small, large]).traits.small
    assert not FallbackModel([large, small]).traits.small


@pytest.mark.usefixtures('no_keys')
def test_a_fallback_of_two_frontier_models_has_their_traits() -> None:
    names = ('anthropic:claude-sonnet-5-5', 'openai:gpt-5.5')
    model = FallbackModel([EngineModel(ModelConfig(model=name)) for name in names])
    assert model.traits == Traits(functions=True, context_tokens=200_000, small=False, local=False, images=True)


def test_it_is_a_model_with_the_name_of_the_first() -> None:
    model = FallbackModel([ScriptedModel([], name='a:1'), ScriptedModel([], name='b:2')])
    assert isinstance(model, Model)
    assert model.name == 'a:1'


def test_a_list_without_models_is_refused() -> None:
    with pytest.raises(NoModel, match='at least one model'):
        FallbackModel([])


async def test_closing_reaches_them_all_also_if_one_fails() -> None:
    models = [FailingModel([], ModelError(f'{number}')) for number in range(3)]
    with pytest.raises(ModelError, match='0'):
        await FallbackModel(models).close()
    assert [model.closed for model in models] == [1, 1, 1]
