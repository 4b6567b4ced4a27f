"""The engine: settings arrive in the request, the right server is asked, and only what is needed is imported."""

import asyncio
import itertools
import json
import subprocess
import sys
from dataclasses import replace

import pytest

from habilis.core.codec import Json
from habilis.core.errors import ModelAccessDenied, ModelNotFound, SettingsError
from habilis.models.config import ModelConfig
from habilis.models.contract import Message, Model, Options, Reply, Traits
from habilis.models.engine import EngineModel
from habilis.models.prices import cost_of
from habilis.models.providers import PROVIDERS
from habilis.models.sync import request_sync
from tests.models.conversation import KEY, ONE_STEP, RUN_PYTHON, START, config_for
from tests.models.protocol_server import BASES, ProtocolServer, exchange

CHAT = '/v1/chat/completions'


async def ask(config: ModelConfig, options: Options | None = None) -> Reply:
    """One request with a model that is closed afterwards."""
    model = EngineModel(config)
    try:
        return await model.request(START, options or Options())
    finally:
        await model.close()


def configured(server: ProtocolServer, provider: str) -> ModelConfig:
    return config_for(server, provider, exchange(provider, 'plain').model)


def found(body: Json, name: str) -> Json:
    """The value of that name, wherever the provider has it in the body."""
    if isinstance(body, dict):
        if name in body:
            return body[name]
        return next((value for inner in body.values() if (value := found(inner, name)) is not None), None)
    return None


def test_it_is_a_model() -> None:
    assert isinstance(EngineModel(ModelConfig(model='ollama:llama3')), Model)


MAX_TOKENS = {
    'openai': 'max_completion_tokens',
    'openai-responses': 'max_output_tokens',
    'google': 'maxOutputTokens',
    'bedrock': 'maxTokens',
}
STOP = {'anthropic': 'stop_sequences', 'google': 'stopSequences', 'bedrock': 'stopSequences'}


@pytest.mark.parametrize('provider', sorted(BASES))
async def test_temperature_limit_and_stop_words_are_in_the_request(provider: str, server: ProtocolServer) -> None:
    config = replace(configured(server, provider), temperature=0.7, max_tokens=321)
    await ask(config, Options(stop=('END',)))
    assert found(server.last.json, 'temperature') == 0.7
    assert found(server.last.json, MAX_TOKENS.get(provider, 'max_tokens')) == 321
    if provider != 'openai-responses':
        assert found(server.last.json, STOP.get(provider, 'stop')) == ['END']


async def test_options_of_a_request_win_over_the_settings(server: ProtocolServer) -> None:
    config = replace(configured(server, 'vllm'), extra={'top_k': 5, 'min_p': 0.1})
    await ask(config, Options(temperature=0.0, max_tokens=7, extra={'top_k': 9}))
    body = server.last.json
    assert (body['temperature'], body['max_tokens'], body['top_k'], body['min_p']) == (0.0, 7, 9, 0.1)


@pytest.mark.parametrize(
    ('configured_temperature', 'options', 'sent'),
    [
        (None, Options(fallback_temperature=0.6), 0.6),
        (0.0, Options(fallback_temperature=0.6), 0.0),
        (0.0, Options(temperature=0.9, fallback_temperature=0.6), 0.9),
        (None, Options(temperature=0.0, fallback_temperature=0.6), 0.0),
    ],
)
async def test_a_fallback_temperature_yields_to_the_settings_and_to_the_request(
    server: ProtocolServer, configured_temperature: float | None, options: Options, sent: float
) -> None:
    await ask(replace(configured(server, 'vllm'), temperature=configured_temperature), options)
    assert server.last.json['temperature'] == sent


async def test_a_fallback_temperature_yields_to_one_among_the_extra_options(server: ProtocolServer) -> None:
    config = replace(configured(server, 'vllm'), temperature=None, extra={'temperature': 0.2})
    await ask(config, Options(fallback_temperature=0.6))
    assert server.last.json['temperature'] == 0.2


async def test_what_is_not_set_is_not_sent(server: ProtocolServer) -> None:
    await ask(replace(configured(server, 'ollama'), temperature=None, max_tokens=None))
    assert set(server.last.json) == {'model', 'messages', 'stream'}


@pytest.mark.parametrize('provider', sorted(BASES))
async def test_more_options_are_passed_through(provider: str, server: ProtocolServer) -> None:
    extra: dict[str, Json] = {'num_ctx': 8192, 'nested': {'deep': [1, None, 'ä']}}
    await ask(replace(configured(server, provider), extra=extra))
    body = server.last.json
    assert found(body, 'num_ctx') == 8192
    assert found(body, 'nested') == {'deep': [1, None, 'ä']}


@pytest.mark.parametrize(('provider', 'name'), [('google', 'topP'), ('mistral', 'top_p'), ('bedrock', 'topP')])
async def test_an_option_that_each_spells_differently_is_spelled_right(
    provider: str, name: str, server: ProtocolServer
) -> None:
    await ask(replace(configured(server, provider), extra={'top_p': 0.5}))
    assert found(server.last.json, name) == 0.5


async def test_merged_options_leave_what_is_beside_them(server: ProtocolServer) -> None:
    await ask(replace(configured(server, 'google'), extra={'generationConfig': {'topK': 3}}))
    sent = server.last.json['generationConfig']
    assert (sent['topK'], sent['temperature']) == (3, 0.2)


@pytest.mark.parametrize('provider', sorted(set(BASES) - {'bedrock', 'google'}))
async def test_the_key_is_sent(provider: str, server: ProtocolServer) -> None:
    await ask(configured(server, provider))
    assert server.last.headers['authorization'] == f'Bearer {KEY}'


async def test_the_key_of_the_environment_is_sent(server: ProtocolServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('GEMINI_API_KEY', 'from-the-environment')
    await ask(replace(configured(server, 'google'), api_key=None))
    assert server.last.headers['x-goog-api-key'] == 'from-the-environment'


@pytest.mark.parametrize('name', ['Qwen/Qwen2.5-7B', 'openai/gpt-oss-20b', 'google/gemma-3-1b-it', 'claude-sonnet-4-6'])
async def test_a_url_wins_over_what_the_name_looks_like(
    name: str, server: ProtocolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('OPENAI_API_KEY', 'not-for-strangers')
    reply = await ask(ModelConfig(model=name, base_url=f'{server.url}/v1'))
    assert (server.last.path, server.last.json['model']) == (CHAT, name)
    assert 'not-for-strangers' not in str(server.last.headers)
    assert reply.model == f'openai-compatible:{name}'


@pytest.mark.parametrize('name', ['ollama:llama3.2', 'ollama/llama3.2'])
async def test_ollama_answers_without_a_key(name: str, server: ProtocolServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('OLLAMA_HOST', server.url.removeprefix('http://'))
    reply = await ask(ModelConfig(model=name))
    assert (reply.text, reply.model, server.last.path) == ('6 × 7 is 42.', 'ollama:llama3.2', CHAT)


@pytest.mark.parametrize('provider', sorted(name for name, row in PROVIDERS.items() if row.needs_key))
@pytest.mark.usefixtures('no_keys')
async def test_a_missing_key_is_said_before_anything_is_sent(provider: str) -> None:
    with pytest.raises(ModelAccessDenied, match=f'set {PROVIDERS[provider].keys[0]}'):
        await ask(ModelConfig(model=f'{provider}:x'))


def test_a_name_without_a_known_provider_is_not_found() -> None:
    with pytest.raises(ModelNotFound, match='hf:meta-llama/Llama-3 or openrouter:meta-llama/Llama-3'):
        EngineModel(ModelConfig(model='meta-llama/Llama-3'))
    with pytest.raises(ModelNotFound, match='openai-compatible'):
        EngineModel(ModelConfig(model='nobody-knows-me'))


@pytest.mark.usefixtures('no_keys')
def test_an_openai_compatible_server_without_a_url_is_a_wrong_setting() -> None:
    with pytest.raises(SettingsError, match='base_url'):
        EngineModel(ModelConfig(model='openai-compatible:x'))


@pytest.mark.usefixtures('no_keys')
def test_traits_come_from_the_table_and_the_settings_win() -> None:
    assert EngineModel(ModelConfig(model='anthropic:x')).traits == Traits(
        functions=True, context_tokens=200_000, images=True
    )
    silent = 'http://127.0.0.1:1/v1'
    assert EngineModel(ModelConfig(model='ollama:x', base_url=silent)).traits == Traits(context_tokens=4_096)
    config = ModelConfig(model='vllm:x', base_url=silent, functions=False, context_tokens=999, images=True)
    assert EngineModel(config).traits == Traits(functions=False, context_tokens=999, images=True)


@pytest.mark.usefixtures('no_keys')
@pytest.mark.parametrize(
    'model', ['openai:x', 'anthropic:x', 'ollama:x', 'vllm:x', 'llamacpp:x', 'openai-compatible:x']
)
def test_a_served_model_is_small_only_if_configured_so(model: str) -> None:
    config = ModelConfig(model=model, base_url='http://localhost:8000/v1')
    assert not EngineModel(config).traits.small
    assert EngineModel(replace(config, small=True)).traits.small


async def test_usage_has_seconds_and_the_price_that_is_known(server: ProtocolServer) -> None:
    reply = await ask(configured(server, 'openai'))
    assert reply.usage.seconds > 0
    assert reply.usage.cost == cost_of('openai:gpt-4.1-mini', 1219, 9, 1024)


async def test_stop_words_work_where_the_protocol_has_none(server: ProtocolServer) -> None:
    model = EngineModel(configured(server, 'openai-responses'))
    options = Options(stop=('check',))
    items = [item async for item in model.stream(START, options)]
    reply = await model.request(START, Options(stop=(' is',)))
    await model.close()
    assert 'stop' not in server.last.json
    assert reply.text == '6 × 7'
    assert isinstance(items[-1], Reply)
    assert items[-1].text == 'Let me ' == ''.join(item.text for item in items[:-1])


@pytest.mark.parametrize(
    ('provider', 'field'),
    [
        ('openai', 'messages'),
        ('openai-responses', 'input'),
        ('anthropic', 'messages'),
        ('google', 'contents'),
        ('mistral', 'messages'),
        ('groq', 'messages'),
        ('openrouter', 'messages'),
        ('bedrock', 'messages'),
        ('ollama', 'messages'),
    ],
)
async def test_the_next_step_begins_with_the_same_bytes(provider: str, field: str, server: ProtocolServer) -> None:
    """A provider, or llama.cpp, reads the same beginning from its cache only if not a byte of it changes."""
    model = EngineModel(configured(server, provider))
    more = (*ONE_STEP, Message(role='assistant', text='42, ä.'), Message(role='user', text='And 7 × 8?'))
    for messages in (START, ONE_STEP, more):
        await model.request(messages, Options(functions=(RUN_PYTHON,)))
    await model.close()
    spans = [_span(asked.body.decode(), field) for asked in server.requests]
    for (rest, conversation), (next_rest, next_conversation) in itertools.pairwise(spans):
        assert next_conversation.startswith(conversation.removesuffix(']'))
        assert next_conversation != conversation
        assert next_rest == rest


def _span(body: str, field: str) -> tuple[str, str]:
    """The rest of a body, and the text of one of its fields."""
    begin = body.index(f'"{field}":') + len(field) + 3
    begin += len(body[begin:]) - len(body[begin:].lstrip())
    _, end = json.JSONDecoder().raw_decode(body, begin)
    return body[:begin] + body[end:], body[begin:end]


async def test_requests_side_by_side_share_one_model(server: ProtocolServer) -> None:
    model = EngineModel(configured(server, 'openai'))
    replies = await asyncio.gather(*(model.request(START) for _ in range(20)))
    await model.close()
    await model.close()
    assert {reply.text for reply in replies} == {'6 × 7 is 42.'}
    assert len(server.requests) == 20


async def test_extras_of_requests_side_by_side_do_not_mix(server: ProtocolServer) -> None:
    model = EngineModel(configured(server, 'mistral'))
    await asyncio.gather(*(model.request(START, Options(extra={'number': number})) for number in range(10)))
    await model.close()
    assert sorted(asked.json['number'] for asked in server.requests) == list(range(10))


async def test_a_closed_model_opens_again_when_asked(server: ProtocolServer) -> None:
    model = EngineModel(configured(server, 'anthropic'))
    await model.close()
    assert (await model.request(START)).text == '6 × 7 is 42.'
    await model.close()


@pytest.mark.parametrize('provider', ['openai', 'groq', 'bedrock'])
async def test_sync_and_async_give_the_same_answer(provider: str, server: ProtocolServer) -> None:
    model = EngineModel(configured(server, provider))
    waited = await model.request(START)
    at_once = request_sync(model, START)  # inside a running loop, as in a notebook
    again = await asyncio.to_thread(request_sync, model, START)
    await model.close()
    same = replace(waited, usage=replace(waited.usage, seconds=0))
    assert [replace(reply, usage=replace(reply.usage, seconds=0)) for reply in (at_once, again)] == [same, same]


def test_a_sync_request_raises_what_the_async_one_would(server: ProtocolServer) -> None:
    model = EngineModel(ModelConfig(model='openai:x'))
    with pytest.raises(ModelAccessDenied):
        request_sync(model, START)


async def test_what_a_file_name_can_hold_is_sent_as_text(server: ProtocolServer) -> None:
    model = EngineModel(configured(server, 'openai'))
    await model.request((Message(role='user', text='half \ud800 of a character'),))
    await model.close()
    assert server.last.json['messages'][0]['content'] == 'half ? of a character'


async def test_a_system_message_in_the_middle_is_sent_as_the_users(server: ProtocolServer) -> None:
    model = EngineModel(configured(server, 'anthropic'))
    await model.request((*START, Message(role='assistant', text='42'), Message(role='system', text='Be brief.')))
    await model.close()
    body = server.last.json
    assert body['system'] == 'You write Python.'
    assert [turn['role'] for turn in body['messages']] == ['user', 'assistant', 'user']


ONLY = """
import asyncio, sys
from habilis.models.config import ModelConfig
from habilis.models.contract import Message
from habilis.models.engine import EngineModel

async def main():
    model = EngineModel(ModelConfig(model={model!r}, base_url={url!r}, api_key='key'))
    assert 'pydantic_ai' not in sys.modules, 'imported before the first request'
    await model.request([Message(role='user', text='hi')])
    await model.close()

asyncio.run(main())
sdks = {{'openai', 'anthropic', 'google.genai', 'mistralai', 'groq', 'boto3'}}
print(*sorted(sdks & set(sys.modules)))
"""


@pytest.mark.parametrize(
    ('provider', 'sdk'),
    [('anthropic', 'anthropic'), ('google', 'google.genai'), ('mistral', 'mistralai')],
)
def test_only_the_sdk_of_the_chosen_provider_is_imported(provider: str, sdk: str, server: ProtocolServer) -> None:
    code = ONLY.format(model=f'{provider}:{exchange(provider, "plain").model}', url=server.base_url(provider))
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == [sdk], done.stderr


def test_other_tasks_continue_while_the_sdk_is_imported(server: ProtocolServer) -> None:
    code = f"""
import asyncio
from habilis.models.config import ModelConfig
from habilis.models.contract import Message
from habilis.models.engine import EngineModel

async def main():
    model = EngineModel(ModelConfig(model='vllm:x', base_url={server.base_url('vllm')!r}))
    task = asyncio.create_task(model.request([Message(role='user', text='hi')]))
    turns = 0
    while not task.done():
        await asyncio.sleep(0.001)
        turns += 1
    await task
    await model.close()
    print(turns)

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=False)
    assert int(done.stdout or 0) > 50, done.stderr  # importing takes a second or more: hundreds of turns


def test_a_missing_sdk_names_the_extra_to_install(server: ProtocolServer) -> None:
    code = f"""
import asyncio, sys
sys.modules['anthropic'] = None
from habilis.core.errors import ModelError
from habilis.models.config import ModelConfig
from habilis.models.engine import EngineModel
try:
    asyncio.run(EngineModel(ModelConfig(model='anthropic:x', base_url={server.url!r})).request([]))
except ImportError as error:
    print(isinstance(error, ModelError), error)
"""
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=False)
    assert done.stdout.startswith('True '), done.stderr
    assert "pip install 'habilis[anthropic]'" in done.stdout
    assert server.requests == []
