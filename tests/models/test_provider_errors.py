"""What goes wrong with a provider is one error of ours, with one clear line and never the key."""

import json
import math
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from email.utils import formatdate
from importlib.util import find_spec
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.core.errors import (
    ContextOverflow,
    ModelAccessDenied,
    ModelError,
    ModelNotFound,
    ModelRefused,
    ModelUnavailable,
    RateLimited,
)
from habilis.models.config import ModelConfig
from habilis.models.contract import NO_OPTIONS, Options, Reply
from habilis.models.engine import EngineModel
from habilis.models.provider_errors import redacted
from habilis.models.providers import PROVIDERS
from tests.cases import each_case
from tests.models.conversation import KEY, START, config_for
from tests.models.protocol_server import (
    BASES,
    Answer,
    ProtocolServer,
    answer_json,
    answer_text,
    exchange,
    free_port,
)

ALL = sorted(set(BASES) - {'vllm', 'llamacpp'})
EACH_SDK = ['anthropic', 'bedrock', 'google', 'groq', 'mistral', 'openai', 'openai-responses']
"""One provider of each SDK: how it fails does not depend on the name of the provider."""


async def fault(config: ModelConfig, *, stream: bool = False, options: Options = NO_OPTIONS) -> ModelError:
    """The error that asking ends with."""
    async with opened(config) as model:
        return await fault_of(model, stream=stream, options=options)


@asynccontextmanager
async def opened(config: ModelConfig) -> AsyncGenerator[EngineModel]:
    """A model that is closed in the end. To make the client of an SDK takes longer than ten requests with it."""
    model = EngineModel(config)
    try:
        yield model
    finally:
        await model.close()


async def fault_of(model: EngineModel, *, stream: bool = False, options: Options = NO_OPTIONS) -> ModelError:
    """The error that asking this model ends with."""
    with pytest.raises(ModelError) as caught:
        await (_drained(model.stream(START, options)) if stream else model.request(START, options))
    error = caught.value
    assert str(error)
    assert '\n' not in str(error)
    assert KEY not in str(error)
    assert error.__suppress_context__ or error.__context__ is None, 'the error of the vendor would be printed too'
    return error


async def _drained(stream: AsyncIterator[object]) -> None:
    async for _ in stream:
        pass


def asking(server: ProtocolServer, provider: str) -> ModelConfig:
    return config_for(server, provider, exchange(provider, 'plain').model)


def _key(provider: str) -> str | None:
    return None if provider == 'bedrock' else KEY


def said(provider: str, text: str, code: str | None = None) -> object:
    """The body of an error as that provider writes it."""
    if provider == 'bedrock':
        return {'message': text}
    if provider == 'anthropic':
        return {'type': 'error', 'error': {'type': 'invalid_request_error', 'message': text}, 'request_id': 'req_1'}
    if provider == 'google':
        return {'error': {'code': 400, 'message': text, 'status': 'INVALID_ARGUMENT'}}
    if provider == 'mistral':
        return {'object': 'error', 'message': text, 'type': 'invalid_request_error', 'param': None, 'code': code}
    return {'error': {'message': text, 'type': 'invalid_request_error', 'param': None, 'code': code}}


@pytest.mark.parametrize('provider', ALL)
async def test_a_refused_key_names_the_variable_that_holds_it(provider: str, server: ProtocolServer) -> None:
    async with opened(asking(server, provider)) as model:
        for status, stream in product((401, 403), (False, True)):
            server.will_answer(answer_json(said(provider, f'Incorrect API key provided: {KEY}'), status=status))
            error = await fault_of(model, stream=stream)
            assert isinstance(error, ModelAccessDenied)
            assert error.status == status
            assert PROVIDERS[provider].keys[0] in str(error)


@pytest.mark.parametrize('provider', ALL)
async def test_an_unknown_model_is_not_found(provider: str, server: ProtocolServer) -> None:
    server.will_answer(answer_json(said(provider, 'no such model', 'model_not_found'), status=404))
    error = await fault(asking(server, provider))
    assert isinstance(error, ModelNotFound)
    assert exchange(provider, 'plain').model in str(error)
    assert not error.retryable


@pytest.mark.parametrize('provider', ALL)
async def test_too_many_requests_say_how_long_to_wait_and_are_sent_once(provider: str, server: ProtocolServer) -> None:
    answer = answer_json(said(provider, 'slow down', 'rate_limit_exceeded'), status=429, headers={'Retry-After': '7'})
    server.will_answer(answer)
    error = await fault(asking(server, provider))
    assert isinstance(error, RateLimited)
    assert (error.status, error.retry_after, error.retryable) == (429, 7.0, True)
    assert len(server.requests) == 1


async def test_how_long_to_wait_may_be_a_date(server: ProtocolServer) -> None:
    later = formatdate(time.time() + 3600, usegmt=True)
    server.will_answer(answer_json(said('openai', 'slow'), status=429, headers={'Retry-After': later}))
    error = await fault(asking(server, 'openai'))
    assert error.retry_after is not None
    assert 3000 < error.retry_after <= 3600


async def test_nonsense_about_waiting_is_no_waiting(server: ProtocolServer) -> None:
    async with opened(asking(server, 'openai')) as model:
        for value in ('soon', '-5', '', '9' * 400):
            server.will_answer(answer_json(said('openai', 'slow'), status=429, headers={'Retry-After': value}))
            assert (await fault_of(model)).retry_after is None


async def test_a_server_in_trouble_is_unavailable_for_now(server: ProtocolServer) -> None:
    async with opened(asking(server, 'openai')) as model:
        for status, stream in product((408, 500, 502, 503, 504, 529), (False, True)):
            server.requests.clear()
            server.will_answer(answer_text('<html><title>Bad Gateway</title></html>', status=status))
            error = await fault_of(model, stream=stream)
            assert isinstance(error, ModelUnavailable)
            assert (error.status, error.retryable, len(server.requests)) == (status, True, 1)
            assert "a web page named 'Bad Gateway'" in str(error)


@pytest.mark.parametrize('provider', EACH_SDK)
async def test_a_server_in_trouble_is_asked_once(provider: str, server: ProtocolServer) -> None:
    server.will_answer(answer_json(said(provider, 'overloaded'), status=503))
    assert isinstance(await fault(asking(server, provider)), ModelUnavailable)
    assert len(server.requests) == 1


TOO_LONG = {
    'openai': "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
    'openai-responses': 'Your input exceeds the context window of this model. Please adjust your input and try again.',
    'anthropic': 'prompt is too long: 210000 tokens > 200000 maximum',
    'google': 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
    'mistral': 'Prompt contains 140000 tokens, too large for model with 131072 maximum context length',
    'groq': 'Please reduce the length of the messages or completion.',
    'openrouter': "This endpoint's maximum context length is 131072 tokens. However, you requested 200000 tokens.",
    'bedrock': 'Input is too long for requested model.',
    'ollama': 'the request exceeds the available context size. try increasing the context size',
}


@pytest.mark.parametrize('provider', EACH_SDK)
async def test_too_long_a_conversation_overflows(provider: str, server: ProtocolServer) -> None:
    server.will_answer(
        answer_json(
            said(provider, TOO_LONG[provider], 'context_length_exceeded' if provider == 'groq' else None),
            status=400,
            headers={'x-amzn-ErrorType': 'ValidationException'},
        )
    )
    error = await fault(asking(server, provider))
    assert isinstance(error, ContextOverflow)
    assert error.status == 400


@pytest.mark.parametrize('provider', ['openai', 'anthropic', 'google', 'mistral', 'ollama'])
async def test_another_refusal_says_what_the_provider_says(provider: str, server: ProtocolServer) -> None:
    async with opened(asking(server, provider)) as model:
        for status in (400, 409, 418, 422):
            server.will_answer(answer_json(said(provider, 'temperature must be\n below 2'), status=status))
            error = await fault_of(model)
            assert type(error) is ModelRefused
            assert error.status == status
            assert 'temperature must be below 2' in str(error)


async def test_an_account_without_credit_is_not_asked_to_wait(server: ProtocolServer) -> None:
    server.will_answer(answer_json(said('openai', 'no quota', 'insufficient_quota'), status=429))
    error = await fault(asking(server, 'openai'))
    assert isinstance(error, ModelAccessDenied)
    assert not error.retryable


GARBAGE = {
    'a web page': answer_text('<!DOCTYPE html><html><title>Welcome</title></html>'),
    'nothing': answer_text('', content_type='application/json'),
    'half of it': answer_text('{"id": "x", "choices": [{"mess', content_type='application/json'),
    'null': answer_json(None),
    'a list': answer_json([]),
    'something else': answer_json({'hello': 'world'}),
    'bytes': Answer(headers={'content-type': 'application/json'}, chunks=(b'\xff\xfe\x00{',)),
    'a stream of nonsense': answer_text('data: {"a": [\n\ndata: ]\n\n', content_type='text/event-stream'),
}


@pytest.mark.parametrize('stream', [False, True])
@pytest.mark.parametrize('provider', EACH_SDK)
async def test_garbage_is_an_error_of_ours(provider: str, stream: bool, server: ProtocolServer) -> None:
    async with opened(asking(server, provider)) as model:
        for what, garbage in GARBAGE.items():
            server.will_answer(garbage)
            assert isinstance(await fault_of(model, stream=stream), ModelUnavailable), what


@pytest.mark.parametrize('stream', [False, True])
@pytest.mark.parametrize('provider', EACH_SDK)
@pytest.mark.usefixtures('no_keys')
async def test_a_dead_server_refuses_the_connection(provider: str, stream: bool) -> None:
    url = f'http://127.0.0.1:{free_port()}'
    name = f'{provider}:{exchange(provider, "plain").model}'
    error = await fault(ModelConfig(model=name, base_url=url, api_key=_key(provider)), stream=stream)
    assert isinstance(error, ModelUnavailable)
    assert f'the server at {url}' in str(error)
    assert str(error).endswith('refused the connection: is it running?')


@pytest.mark.parametrize('provider', ['openai', 'groq', 'bedrock'])
@pytest.mark.usefixtures('no_keys')
async def test_a_host_that_does_not_exist_cannot_be_found(provider: str) -> None:
    name = f'{provider}:{exchange(provider, "plain").model}'
    error = await fault(ModelConfig(model=name, base_url='http://nowhere.invalid/v1', api_key=_key(provider)))
    assert isinstance(error, ModelUnavailable)
    assert 'nowhere.invalid' in str(error)


@pytest.mark.parametrize('stream', [False, True])
@pytest.mark.parametrize('provider', EACH_SDK)
async def test_the_timeout_ends_a_call_that_is_never_answered(
    provider: str, stream: bool, server: ProtocolServer
) -> None:
    server.will_answer(Answer(silent_before=True))
    error = await fault(replace(asking(server, provider), timeout=0.3), stream=stream)
    assert isinstance(error, ModelUnavailable)
    assert 'did not answer within 0.3 s' in str(error)


@pytest.mark.parametrize('provider', EACH_SDK)
async def test_a_connection_that_breaks_in_the_answer_is_unavailable(provider: str, server: ProtocolServer) -> None:
    server.will_answer(replace(exchange(provider, 'plain').answer(), silent_after=0, cut=True))
    assert isinstance(await fault(asking(server, provider)), ModelUnavailable)


async def test_bedrock_without_a_region_says_what_to_set(no_keys: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('AWS_CONFIG_FILE', 'no-such-file')
    error = await fault(ModelConfig(model='bedrock:x'))
    assert 'AWS_REGION' in str(error)


# Before anything is sent ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize('provider', ['openai', 'groq', 'google', 'mistral', 'anthropic', 'bedrock'])
async def test_a_key_that_cannot_be_sent_is_said_to_be_so(provider: str, server: ProtocolServer) -> None:
    for key in ('sk-клю“”', 'sk-abc\ndef', 'sk-a\x00b'):
        error = await fault(replace(asking(server, provider), api_key=key))
        assert isinstance(error, ModelAccessDenied)
        assert 'contains characters that cannot be sent' in str(error)
        assert PROVIDERS[provider].keys[0] in str(error)
        assert (key in str(error), server.requests) == (False, [])


@pytest.mark.parametrize('provider', ['openai', 'groq', 'anthropic'])
async def test_what_cannot_be_sent_is_not_the_fault_of_the_server(provider: str, server: ProtocolServer) -> None:
    error = await fault(asking(server, provider), options=Options(temperature=math.nan))
    assert isinstance(error, ModelRefused)
    assert 'cannot accept the request' in str(error)
    assert server.requests == []


# An error where an answer should be -----------------------------------------------------------------------------------

EXPLODED = {'error': {'message': 'backend exploded', 'type': 'x', 'code': None}}


@pytest.mark.parametrize(
    ('answer', 'stream'),
    [
        (answer_json(EXPLODED), False),
        (answer_json(EXPLODED), True),
        (answer_text(f'data: {json.dumps(EXPLODED)}\n\n', content_type='text/event-stream'), True),
    ],
    ids=['whole', 'whole instead of a stream', 'in the stream'],
)
@pytest.mark.parametrize('provider', ['openai', 'ollama', 'openrouter', 'groq'])
async def test_an_error_with_the_status_of_an_answer_is_reported(
    provider: str, answer: Answer, stream: bool, server: ProtocolServer
) -> None:
    server.will_answer(answer)
    error = await fault(asking(server, provider), stream=stream)
    assert isinstance(error, ModelUnavailable)
    assert 'backend exploded' in str(error)


async def test_too_long_a_conversation_overflows_also_with_the_status_of_an_answer(server: ProtocolServer) -> None:
    server.will_answer(answer_json({'error': {'message': TOO_LONG['openai']}}))
    assert isinstance(await fault(asking(server, 'openai')), ContextOverflow)


@pytest.mark.parametrize('provider', ['openai', 'openai-responses', 'anthropic', 'google', 'mistral', 'groq', 'ollama'])
async def test_a_redirect_says_which_address_to_use(provider: str, server: ProtocolServer) -> None:
    async with opened(asking(server, provider)) as model:
        for status, stream in product((301, 302, 307, 308), (False, True)):
            server.requests.clear()
            server.will_answer(Answer(status=status, headers={'location': 'https://other.example/v1/things?key=1'}))
            error = await fault_of(model, stream=stream)
            assert type(error) is ModelRefused
            assert (error.status, len(server.requests)) == (status, 1)
            assert 'redirects to https://other.example/v1/things; use that URL as base_url' in str(error)


async def test_a_redirect_names_the_address_without_what_each_request_adds_to_it(server: ProtocolServer) -> None:
    server.will_answer(Answer(status=308, headers={'location': 'https://other.example/v2/chat/completions'}))
    assert 'redirects to https://other.example/v2; use' in str(await fault(asking(server, 'openai')))


async def test_a_server_cannot_steer_the_terminal(server: ProtocolServer) -> None:
    server.will_answer(answer_json(said('openai', 'bad \x1b[31mred\x07 \u202eevil'), status=400))
    error = await fault(replace(asking(server, 'openai'), model='openai:m\x1b[2J'))
    assert str(error).isprintable()
    assert 'bad \\x1b[31mred\\x07' in str(error)
    server.will_answer(Answer(silent_before=True))
    assert str(await fault(replace(asking(server, 'openai'), model='openai:m\x1b[2J', timeout=0.2))).isprintable()


# Proxies --------------------------------------------------------------------------------------------------------------


def through(monkeypatch: pytest.MonkeyPatch, **proxies: str) -> None:
    for name in ('HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'):
        monkeypatch.delenv(name.lower(), raising=False)
        monkeypatch.delenv(name, raising=False)
    for name, value in proxies.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize('provider', ALL)
async def test_a_server_on_this_machine_is_asked_without_a_proxy(
    provider: str, server: ProtocolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = f'http://127.0.0.1:{free_port()}'
    through(monkeypatch, HTTP_PROXY=proxy, ALL_PROXY=proxy)
    model = EngineModel(asking(server, provider))
    assert (await model.request(START)).text
    await model.close()


@pytest.mark.parametrize('provider', ['openai', 'anthropic', 'groq', 'bedrock'])
@pytest.mark.usefixtures('no_keys')
async def test_a_dead_proxy_is_named(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = f'127.0.0.1:{free_port()}'
    through(monkeypatch, HTTPS_PROXY=f'http://me:secret@{proxy}')
    monkeypatch.setenv('AWS_REGION', 'us-east-1')
    config = ModelConfig(model=f'{provider}:m', base_url='https://models.example/v1', api_key=_key(provider))
    error = await fault(config)
    assert isinstance(error, ModelUnavailable)
    assert str(error).startswith(f'the proxy at http://{proxy}, which is used for ')
    assert str(error).endswith(' refused the connection: is it running?')


@pytest.mark.skipif(find_spec('socksio') is not None, reason='the package is there')
@pytest.mark.parametrize('provider', ['openai', 'groq'])
@pytest.mark.usefixtures('no_keys')
async def test_a_socks_proxy_needs_a_package_that_has_a_name(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    through(monkeypatch, ALL_PROXY='socks5://proxy.example:1')
    error = await fault(ModelConfig(model=f'{provider}:m', api_key=KEY))
    assert isinstance(error, ImportError)
    assert "proxy socks5://proxy.example:1 needs a package that is not installed: pip install 'httpx[socks]'" in str(
        error
    )


@pytest.mark.usefixtures('no_keys')
async def test_a_proxy_of_no_known_kind_is_not_the_fault_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    through(monkeypatch, ALL_PROXY='ftp://proxy.example')
    error = await fault(ModelConfig(model='openai:m', api_key=KEY))
    assert isinstance(error, ModelRefused)
    assert 'ftp://proxy.example' in str(error)


async def test_an_empty_reply_is_a_reply(server: ProtocolServer) -> None:
    body = exchange('openai', 'plain').response['body']
    body['choices'][0]['message']['content'] = ''
    server.will_answer(answer_json(body))
    model = EngineModel(asking(server, 'openai'))
    reply = await model.request(START, Options())
    await model.close()
    assert (reply.text, reply.finish) == ('', 'stop')


async def test_an_empty_stream_with_an_end_is_a_reply(server: ProtocolServer) -> None:
    events = exchange('openai', 'stream').answer().chunks
    end = events[-3].replace(b'"tool_calls"', b'"stop"')
    server.will_answer(Answer(headers={'content-type': 'text/event-stream'}, chunks=(events[0], end, *events[-2:])))
    model = EngineModel(asking(server, 'openai'))
    items = [item async for item in model.stream(START)]
    await model.close()
    assert [type(item) for item in items] == [Reply]


@given(st.text(max_size=40), st.text(max_size=40), st.text(alphabet='abcdef0123456789', min_size=16, max_size=40))
def test_a_key_never_stays_in_a_text(before: str, after: str, key: str) -> None:
    assert key not in redacted(f'{before}{key}{after}', key)


@each_case(
    'text',
    [
        'key sk-abcdefghijklmnop',
        'Bearer abc.def',
        'AIzaSyA1234567890abc',
        'gsk_abcdefghijk',
        'Basic dXNlcjpwYXNzd29yZA==',
    ],
)
def test_what_looks_like_a_key_is_hidden_too(text: str) -> None:
    assert text.rsplit(maxsplit=1)[-1] not in redacted(text, None)
