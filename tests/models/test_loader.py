"""From a name to a model: who makes it, what is around it, and that each setting is in the request."""

import json
import logging
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from habilis.core.errors import ModelNotFound, ModelUnavailable, NoModel
from habilis.core.logs import configure_logging
from habilis.core.settings import load_settings
from habilis.models.cache import CachedModel
from habilis.models.config import ModelConfig
from habilis.models.contract import Message, Model, Reply
from habilis.models.engine import EngineModel
from habilis.models.fallback import FallbackModel
from habilis.models.loader import load_model
from habilis.models.local import LocalModel
from habilis.models.providers import NO_KEY
from habilis.models.registry import Registry
from habilis.models.retry import RetryModel
from habilis.models.scripted import ScriptedModel
from tests.models.protocol_server import Answer, Asked, ProtocolServer, answer_json
from tests.place import Place

HELLO = [Message(role='user', text='hello')]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


@pytest.fixture
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as server:
        yield server


async def ask(model: Model) -> Reply:
    """One request, and the model is closed."""
    try:
        return await model.request(HELLO)
    finally:
        await model.close()


async def sent(server: ProtocolServer, which: str | ModelConfig | None = None) -> Asked:
    """What the model of that name sends."""
    await ask(load_model(which))
    return server.last


class TestMakers:
    def test_a_model_is_passed_through(self) -> None:
        model = ScriptedModel(['hi'])
        assert load_model(model) is model

    async def test_a_script_is_played_from_its_file(self, place: Place) -> None:
        (place.folder / 'replies.jsonl').write_text('"hello to you"\n')
        model = load_model('scripted:replies.jsonl')
        assert model.traits.scripted
        assert (await ask(model)).text == 'hello to you'

    def test_each_provider_has_its_maker(self, place: Place) -> None:
        assert isinstance(load_model('local', retries=0), LocalModel)
        assert isinstance(load_model('ollama:x', retries=0), EngineModel)
        assert isinstance(load_model('x', base_url='http://127.0.0.1:1/v1', retries=0), EngineModel)
        on_a_server = ModelConfig(model='hf:org/name', base_url='http://127.0.0.1:1/v1', retries=0)
        assert isinstance(load_model(on_a_server), EngineModel)

    def test_hugging_face_is_loaded_or_says_what_to_install(self, place: Place) -> None:
        from importlib.util import find_spec

        if find_spec('torch') and find_spec('transformers'):
            assert load_model('hf:x').name == 'hf:x'
        else:
            with pytest.raises(ImportError, match=r"pip install 'habilis\[hf\]'"):
                load_model('hf:x')

    def test_the_model_is_named_in_full(self, place: Place) -> None:
        assert load_model('ollama/llama3.2').name == 'ollama:llama3.2'

    def test_an_unknown_name_is_an_error(self, place: Place) -> None:
        with pytest.raises(ModelNotFound, match='no such model or alias'):
            load_model('gpt')
        with pytest.raises(ModelNotFound, match="did you mean 'ollama'"):
            load_model('olama:x')

    def test_there_are_no_retries_where_none_are_wanted(self, place: Place) -> None:
        assert isinstance(load_model('ollama:x'), RetryModel)
        place.environment(HABILIS_RETRIES='0')
        assert isinstance(load_model('ollama:x'), EngineModel)

    def test_settings_of_the_folder_are_used_unless_others_are_given(self, place: Place) -> None:
        place.project('model = "ollama:of-the-folder"\n')
        assert load_model().name == 'ollama:of-the-folder'
        assert load_model(settings=load_settings(model='ollama:given')).name == 'ollama:given'

    def test_names_added_at_run_time_are_known(self, place: Place) -> None:
        registry = Registry(load_settings())
        registry.add('mine', 'ollama:x')
        registry.default = 'mine'
        assert load_model('mine', registry=registry).name == 'ollama:x'
        assert load_model(registry=registry).name == 'ollama:x'

    def test_no_model_at_all_says_what_can_be_done(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys.modules['habilis.models.discovery'], 'SERVERS', ())
        with pytest.raises(NoModel, match=r'habilis models install.* or set a key such as OPENAI_API_KEY'):
            load_model()

    async def test_a_model_is_found_also_while_an_event_loop_runs(self, place: Place) -> None:
        place.dotenv('OPENAI_API_KEY=key-of-dotenv\n')
        assert load_model().name.startswith('openai:')


class TestRequests:
    """Each setting of a model is in what is sent, wherever it was set."""

    @pytest.fixture(autouse=True)
    def _at_the_server(self, place: Place, server: ProtocolServer) -> None:  # pyright: ignore[reportUnusedFunction]
        place.environment(HABILIS_MODEL='openai-compatible:m', HABILIS_BASE_URL=server.base_url('openai'))

    async def test_model_and_base_url(self, server: ProtocolServer) -> None:
        asked = await sent(server)
        assert asked.path == '/v1/chat/completions'
        assert asked.json['model'] == 'm'

    async def test_temperature(self, place: Place, server: ProtocolServer) -> None:
        assert 'temperature' not in (await sent(server)).json
        place.environment(HABILIS_TEMPERATURE='0.25')
        assert (await sent(server)).json['temperature'] == 0.25

    async def test_max_tokens(self, place: Place, server: ProtocolServer) -> None:
        assert 'max_tokens' not in (await sent(server)).json
        place.environment(HABILIS_MAX_TOKENS='77')
        assert (await sent(server)).json['max_tokens'] == 77

    async def test_api_key(self, place: Place, server: ProtocolServer) -> None:
        place.environment(HABILIS_API_KEY='key-of-settings')
        assert (await sent(server)).headers['authorization'] == 'Bearer key-of-settings'

    async def test_a_key_of_the_provider_in_dotenv(self, place: Place, server: ProtocolServer) -> None:
        place.dotenv(f'OPENAI_API_KEY=key-of-dotenv\nOPENAI_BASE_URL={server.base_url("openai")}\n')
        assert (await sent(server, 'openai:gpt-4o')).headers['authorization'] == 'Bearer key-of-dotenv'

    async def test_a_key_that_must_not_be_sent_is_not(self, place: Place, server: ProtocolServer) -> None:
        place.environment(OPENAI_API_KEY='my-own-key')
        config = ModelConfig(model='openai:gpt-4o', base_url=server.base_url('openai'), api_key=NO_KEY)
        assert 'my-own-key' not in str((await sent(server, config)).headers)

    async def test_extra(self, place: Place, server: ProtocolServer) -> None:
        place.project('[models.mine]\nmodel = "openai-compatible:m"\nextra = { top_k = 7 }\n')
        assert (await sent(server, 'mine')).json['top_k'] == 7

    async def test_two_aliases_of_one_model_send_different_temperatures(
        self, place: Place, server: ProtocolServer
    ) -> None:
        place.project(
            '[models.careful]\nmodel = "openai-compatible:m"\ntemperature = 0\n'
            '[models.playful]\nmodel = "openai-compatible:m"\ntemperature = 1.5\n'
        )
        bodies = [(await sent(server, name)).json for name in ('careful', 'playful')]
        assert [(body['model'], body['temperature']) for body in bodies] == [('m', 0), ('m', 1.5)]

    async def test_timeout_ends_the_call(self, place: Place, server: ProtocolServer) -> None:
        server.will_answer(Answer(silent_before=True))
        place.environment(HABILIS_TIMEOUT='0.2', HABILIS_RETRIES='0')
        with pytest.raises(ModelUnavailable):
            await ask(load_model())
        assert server.wait_until_hung_up()

    async def test_retries(self, place: Place, server: ProtocolServer) -> None:
        broken = answer_json({'error': {'message': 'busy'}}, status=503, headers={'retry-after': '0'})
        server.will_answer(broken)
        for retries in (0, 2):
            server.requests.clear()
            with pytest.raises(ModelUnavailable):
                await ask(load_model(retries=retries))
            assert len(server.requests) == retries + 1

    async def test_functions_and_context_tokens(self, place: Place) -> None:
        place.project('[models.mine]\nmodel = "openai-compatible:m"\nfunctions = true\ncontext_tokens = 1234\n')
        traits, plain = load_model('mine').traits, load_model().traits
        assert (traits.functions, traits.context_tokens) == (True, 1234)
        assert (plain.functions, plain.context_tokens) != (True, 1234)

    async def test_small(self, place: Place) -> None:
        place.project('[models.mine]\nmodel = "openai-compatible:m"\nsmall = true\n')
        place.environment(HABILIS_MODELS='{"other": {"model": "openai-compatible:m", "small": "true"}}')
        assert load_model('mine').traits.small
        assert load_model('other').traits.small
        assert not load_model('mine', small=False).traits.small
        assert not load_model().traits.small
        assert load_model(small=True).traits.small

    @pytest.mark.parametrize('variable', ['HABILIS_RESPONSE_CACHE', 'ENABLE_RESPONSE_CACHE'])
    async def test_response_cache(self, place: Place, server: ProtocolServer, variable: str) -> None:
        for _ in range(2):
            await ask(load_model())
        assert len(server.requests) == 2
        place.environment(**{variable: 'true'})
        assert isinstance(load_model(), CachedModel)
        replies = [await ask(load_model()) for _ in range(2)]
        assert [reply.cached for reply in replies] == [False, True]
        assert len(server.requests) == 3

    async def test_the_cache_keeps_aliases_apart(self, place: Place, server: ProtocolServer) -> None:
        place.environment(HABILIS_RESPONSE_CACHE='true')
        replies = [await ask(load_model(temperature=temperature)) for temperature in (0, 1)]
        assert [reply.cached for reply in replies] == [False, False]

    async def test_fallback(self, place: Place, server: ProtocolServer) -> None:
        place.project(
            'fallback = ["openai-compatible:m", "second"]\n'
            '[models.second]\nmodel = "openai-compatible:other"\napi_key = "second-key"\n'
        )
        place.environment(HABILIS_RETRIES='0')
        model = load_model(temperature=0.5)
        assert isinstance(model, FallbackModel)
        server.will_answer(answer_json({'error': {'message': 'busy'}}, status=503))
        with pytest.raises(ModelUnavailable):
            await ask(model)
        assert [asked.json['model'] for asked in server.requests] == ['m', 'other']
        assert server.last.headers['authorization'] == 'Bearer second-key'
        assert server.last.json['temperature'] == 0.5


@pytest.mark.parametrize('provider', ['openai', 'anthropic', 'google'])
async def test_a_key_is_not_logged_even_if_everything_is(
    place: Place, server: ProtocolServer, caplog: pytest.LogCaptureFixture, provider: str
) -> None:
    key = f'private-{uuid.uuid4().hex}'
    configure_logging('debug')
    try:
        with caplog.at_level(logging.DEBUG):
            await ask(load_model(f'{provider}:m', base_url=server.base_url(provider), api_key=key))
            logging.getLogger('habilis.models').debug('as careless code would: %s', key)
    finally:
        configure_logging()
    assert key in str(server.last.headers)
    assert 'as careless code would: ***' in caplog.text
    assert key not in caplog.text


PROBE = """
import asyncio, json, sys
from habilis.models.contract import Message
from habilis.models.discovery import discover
from habilis.models.loader import load_model

async def main():
    choice = await discover()
    model = load_model(choice.config)
    await model.request([Message(role='user', text='hello')])
    await model.close()
    return choice.config.model

name = asyncio.run(main())
print(json.dumps({'model': name, 'modules': sorted(sys.modules)}))
"""

OTHERS = {'anthropic', 'groq', 'mistralai', 'google.genai', 'boto3', 'botocore', 'torch', 'transformers', 'xllamacpp'}


def test_with_one_key_only_that_provider_is_imported(place: Place, server: ProtocolServer) -> None:
    place.dotenv(f'OPENAI_API_KEY=only-key\nOPENAI_BASE_URL={server.base_url("openai")}\n')
    child = subprocess.run([sys.executable, '-c', PROBE], capture_output=True, text=True, timeout=600, check=False)
    assert child.returncode == 0, child.stderr
    answer = json.loads(child.stdout)
    assert answer['model'].startswith('openai:')
    assert 'openai' in answer['modules']
    assert OTHERS & set(answer['modules']) == set()
    assert server.last.headers['authorization'] == 'Bearer only-key'
