"""Each provider's protocol: what is sent has its shape, and what comes back is understood. From recordings."""

from typing import Any

import pytest

from habilis.models.contract import Delta, Message, Options, Reply
from habilis.models.engine import EngineModel
from tests.cases import each_case
from tests.models.conversation import CONVERSATIONS, config_for
from tests.models.protocol_server import BASES, KINDS, Asked, Exchange, ProtocolServer, answer_json, exchange

PROVIDERS = sorted(BASES)


def shape(reply: Reply) -> dict[str, Any]:
    """A reply as the recordings have it."""
    return {
        'text': reply.text,
        'calls': [{'id': call.id, 'name': call.name, 'arguments': call.arguments} for call in reply.calls],
        'thinking': reply.thinking,
        'finish': reply.finish,
        'usage': [reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cached_tokens],
    }


def check_request(asked: Asked, recorded: Exchange) -> None:
    """That this is the request of the recording."""
    assert asked.path == recorded.path
    assert asked.json == recorded.body
    for name, value in recorded.headers.items():
        assert asked.headers[name].startswith(value), name


def check_reply(reply: Reply, recorded: Exchange) -> None:
    """That this is the reply of the recording."""
    assert shape(reply) == recorded.reply
    assert reply.model == f'{recorded.provider}:{recorded.model}'
    assert reply.usage.requests == 1
    assert reply.usage.seconds > 0


@pytest.mark.parametrize('kind', ['plain', 'call'])
@pytest.mark.parametrize('provider', PROVIDERS)
async def test_a_request_and_its_reply(provider: str, kind: str, server: ProtocolServer) -> None:
    recorded = exchange(provider, kind)
    model = EngineModel(config_for(server, provider, recorded.model))
    messages, options = CONVERSATIONS[kind]
    reply = await model.request(messages, options)
    await model.close()
    check_request(server.last, recorded)
    check_reply(reply, recorded)


@pytest.mark.parametrize('provider', PROVIDERS)
async def test_a_stream_gives_bits_and_then_the_whole_reply(provider: str, server: ProtocolServer) -> None:
    recorded = exchange(provider, 'stream')
    model = EngineModel(config_for(server, provider, recorded.model))
    messages, options = CONVERSATIONS['stream']
    items = [item async for item in model.stream(messages, options)]
    await model.close()
    check_request(server.last, recorded)
    *deltas, reply = items
    assert isinstance(reply, Reply)
    check_reply(reply, recorded)
    bits = [delta for delta in deltas if isinstance(delta, Delta)]
    assert len(bits) == len(deltas) >= 3
    assert Delta() not in bits
    assert ''.join(bit.text for bit in bits) == reply.text
    assert ''.join(bit.thinking for bit in bits) == reply.thinking
    assert ''.join(bit.arguments for bit in bits) == reply.calls[0].arguments


@each_case('provider', PROVIDERS)
def test_the_recordings_send_no_thinking_back(provider: str) -> None:
    thought = next(message.thinking for message in CONVERSATIONS['stream'][0] if message.thinking)
    assert thought not in str(exchange(provider, 'stream').body)


def test_every_recording_is_used() -> None:
    from tests.models.protocol_server import EXCHANGES

    assert {path.stem for path in EXCHANGES.iterdir()} == {f'{name}-{kind}' for name in PROVIDERS for kind in KINDS}


async def test_the_tokens_of_a_reply_are_there_if_they_were_asked_for(server: ProtocolServer) -> None:
    tokens = [{'token': text, 'logprob': logprob, 'top_logprobs': ()} for text, logprob in (('a', -0.5), ('b', 0))]
    choice = {
        'index': 0,
        'finish_reason': 'stop',
        'message': {'role': 'assistant', 'content': 'ab'},
        'logprobs': {'content': tokens, 'refusal': None},
    }
    whole = {'id': '1', 'object': 'chat.completion', 'created': 1, 'model': 'm', 'choices': [choice]}
    server.will_answer(answer_json(whole))
    model = EngineModel(config_for(server, 'openai', 'm'))
    reply = await model.request([Message(role='user', text='x')], Options(extra={'logprobs': True}))
    await model.close()
    assert server.last.json['logprobs'] is True
    assert [(token.text, token.logprob) for token in reply.tokens] == [('a', -0.5), ('b', 0.0)]
