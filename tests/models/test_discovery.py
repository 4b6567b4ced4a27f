"""Which model is used when nobody says: keys, servers on this machine, the embedded model; never a script."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.core.settings import Settings
from habilis.models.discovery import DEFAULTS, SERVERS, Server, discover, discover_all
from habilis.models.local import catalogue, store
from habilis.models.providers import NO_KEY, PROVIDERS
from tests.models.protocol_server import free_port
from tests.place import Place

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


def answering(body: bytes, status: str = '200 OK') -> Serve:
    """A server that gives one answer to whatever it is asked."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b'\r\n\r\n')
        writer.write(f'HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n\r\n'.encode() + body)
        await writer.drain()
        writer.close()

    return serve


def listing(*models: str) -> bytes:
    """The answer to `/v1/models`."""
    return json.dumps({'object': 'list', 'data': [{'id': model} for model in models]}).encode()


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Never answers."""
    await reader.read()
    writer.close()


@asynccontextmanager
async def listening(serve: Serve, provider: str = 'ollama') -> AsyncGenerator[Server]:
    """A server on this machine."""
    server = await asyncio.start_server(serve, '127.0.0.1', 0)
    async with server:
        yield Server(provider=provider, label=provider, port=server.sockets[0].getsockname()[1])


def nobody() -> Server:
    """A port that is closed."""
    return Server(provider='vllm', label='vLLM', port=free_port())


class TestOrder:
    async def test_the_model_that_is_set_comes_first(self, place: Place) -> None:
        place.environment(OPENAI_API_KEY='some-key', HABILIS_MODEL='ollama:x')
        choice = await discover(servers=())
        assert (choice.config.model, choice.reason, choice.ready) == ('ollama:x', 'it is set in the environment', True)

    @pytest.mark.parametrize(
        ('model', 'lack'),
        [
            ('openai:x', 'OPENAI_API_KEY is not set'),
            ('local:', 'the model qwen2.5-coder-1.5b is not installed; run `habilis models install'),
            ('local:qwen2.5-coder-0.5b', 'the model qwen2.5-coder-0.5b is not installed; run `habilis models install'),
            ('local:nofile', "the catalogue has no model 'nofile'"),
            ('local:no/file.gguf', 'cannot read the weights no/file.gguf'),
            ('scripted:nofile', 'the file nofile does not exist'),
        ],
    )
    async def test_the_model_that_is_set_may_lack_something(self, place: Place, model: str, lack: str) -> None:
        place.environment(HABILIS_MODEL=model)
        choice = await discover(servers=())
        assert (choice.ready, choice.named) == (False, True)
        assert choice.reason.startswith(f'it is set in the environment, but {lack}')

    async def test_a_script_that_is_set_is_ready_if_it_is_there(self, place: Place) -> None:
        (place.folder / 'replies.jsonl').write_text('"hi"\n')
        place.environment(HABILIS_MODEL='scripted:replies.jsonl')
        assert (await discover(servers=())).ready

    async def test_an_sdk_that_is_missing_is_missing_for_a_model_that_is_set_too(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, 'anthropic', None)
        place.environment(ANTHROPIC_API_KEY='some-key', HABILIS_MODEL='anthropic:x')
        choice = await discover(servers=())
        assert (choice.ready, choice.reason.partition(', but ')[2]) == (
            False,
            "its SDK is missing: pip install 'habilis[anthropic]'",
        )

    async def test_a_server_that_is_set_wants_the_name_of_a_model(self, place: Place) -> None:
        place.environment(HABILIS_BASE_URL='http://127.0.0.1:1/v1')
        choice = await discover(servers=())
        assert not choice.ready
        assert choice.reason.startswith(
            'base_url is set in the environment: set HABILIS_MODEL or --model to one of its models'
        )

    async def test_an_alias_that_is_set_stands_for_its_model(self, place: Place) -> None:
        place.project('model = "mine"\n[models.mine]\nmodel = "ollama:x"\ntemperature = 0.5\n')
        choice = await discover(servers=())
        assert (choice.config.model, choice.config.temperature) == ('ollama:x', 0.5)
        assert choice.reason == 'it is set in habilis.toml'

    @pytest.mark.parametrize('provider', DEFAULTS)
    async def test_a_key_chooses_its_provider(self, place: Place, provider: str) -> None:
        variable = PROVIDERS[provider].keys[0]
        place.dotenv(f'{variable}=key-of-dotenv\n')
        choice = await discover(servers=())
        assert choice.config.model == f'{provider}:{DEFAULTS[provider]}'
        assert choice.config.api_key == 'key-of-dotenv'
        assert choice.reason.startswith(f'{variable} is set')

    async def test_a_key_wins_over_a_server(self, place: Place) -> None:
        place.environment(OPENAI_API_KEY='some-key')
        async with listening(answering(listing('llama3'))) as server:
            assert (await discover(servers=[server])).config.model.startswith('openai:')

    async def test_a_key_whose_sdk_is_missing_comes_after_those_that_work(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, 'anthropic', None)
        place.environment(ANTHROPIC_API_KEY='some-key')
        choice = await discover(servers=())
        assert not choice.ready
        assert choice.reason == "ANTHROPIC_API_KEY is set, but its SDK is missing: pip install 'habilis[anthropic]'"
        place.environment(OPENAI_API_KEY='some-key')
        assert (await discover(servers=())).config.model.startswith('openai:')

    async def test_a_server_wins_over_the_embedded_model(self, place: Place) -> None:
        async with listening(answering(listing('llama3.2:1b', 'other'))) as server:
            choice = await discover(servers=[nobody(), server])
        assert choice.config.model == 'ollama:llama3.2:1b'
        assert choice.config.base_url == server.url
        assert choice.reason == f'ollama answers on port {server.port}'

    async def test_the_first_server_of_the_list_wins(self, place: Place) -> None:
        async with listening(answering(listing('a'))) as one, listening(answering(listing('b')), 'vllm') as two:
            assert (await discover(servers=[two, one])).config.model == 'vllm:b'

    async def test_all_candidates_are_found_in_order(self, place: Place) -> None:
        place.environment(HABILIS_MODEL='ollama:set', OPENAI_API_KEY='some-key', GROQ_API_KEY='some-key')
        async with listening(answering(listing('a'))) as server:
            choices = await discover_all(servers=[server])
        names = [choice.config.model.partition(':')[0] for choice in choices]
        assert names == ['ollama', 'openai', 'groq', 'ollama', 'local']

    def test_the_usual_ports_are_asked(self) -> None:
        assert {server.provider: server.port for server in SERVERS} == {'ollama': 11434, 'llamacpp': 8080, 'vllm': 8000}
        assert {server.provider for server in SERVERS} <= PROVIDERS.keys()


class TestEmbedded:
    async def test_it_is_not_ready_before_it_is_downloaded(self, place: Place) -> None:
        choice = await discover(servers=())
        assert choice.config.model == 'local:qwen2.5-coder-1.5b'
        assert not choice.ready
        assert 'habilis models install' in choice.reason

    async def test_it_is_ready_once_it_is_there(self, place: Place) -> None:
        weights = store.weights_path(catalogue.entry('qwen2.5-coder-1.5b'))
        weights.parent.mkdir(parents=True)
        with weights.open('wb') as file:
            file.truncate(catalogue.entry('qwen2.5-coder-1.5b').bytes)
        assert find_spec('xllamacpp')
        assert (await discover(servers=())).ready

    async def test_without_llama_cpp_it_says_what_to_install(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, 'xllamacpp', None)
        choice = await discover(servers=())
        assert not choice.ready
        assert "pip install 'habilis[local]'" in choice.reason

    async def test_a_script_is_never_chosen(self, place: Place) -> None:
        (place.folder / 'replies.jsonl').write_text('"hi"\n')
        place.environment(OPENAI_API_KEY='some-key')
        assert [choice for choice in await discover_all(servers=()) if 'scripted' in choice.config.model] == []


class TestServers:
    @pytest.mark.parametrize(
        'body',
        [
            b'',
            b'<html>hello</html>',
            b'\xff\xfe',
            b'[]',
            b'{}',
            b'null',
            b'{"data": null}',
            b'{"data": {}}',
            b'{"data": []}',
            b'{"data": [1, "x", null, {}]}',
            b'{"data": [{"id": 3}, {"id": ""}, {"id": "a\\nb"}]}',
            b'[' * 100_000,
            listing('x' * 1000),
        ],
    )
    async def test_nonsense_is_not_a_model(self, place: Place, body: bytes) -> None:
        async with listening(answering(body)) as server:
            assert (await discover(servers=[server])).config.provider == 'local'

    @given(st.binary(max_size=200))
    async def test_any_bytes_at_all_do_no_harm(self, answer: bytes) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(answer)
            writer.close()

        async with listening(serve) as server:
            choices = await discover_all(Settings(), servers=[server])
            assert choices[-1].config.provider == 'local'

    @pytest.mark.parametrize('status', ['404 Not Found', '500 Broken', '401 Who are you'])
    async def test_an_error_is_not_a_model(self, place: Place, status: str) -> None:
        async with listening(answering(listing('a'), status)) as server:
            assert (await discover(servers=[server])).config.provider == 'local'

    async def test_a_server_that_never_answers_is_left(self, place: Place) -> None:
        async with listening(silent) as server, listening(answering(listing('a')), 'vllm') as other:
            assert (await discover(servers=[server, other])).config.model == 'vllm:a'

    async def test_a_model_that_only_embeds_is_passed_over(self, place: Place) -> None:
        async with listening(answering(listing('nomic-embed-text:latest', 'qwen2.5-coder'))) as server:
            assert (await discover(servers=[server])).config.model == 'ollama:qwen2.5-coder'

    async def test_no_key_goes_to_a_server_that_was_only_found(self, place: Place) -> None:
        place.environment(HABILIS_API_KEY='some-key', OLLAMA_API_KEY='some-key')
        async with listening(answering(listing('a'))) as server:
            assert (await discover(servers=[server])).config.api_key == NO_KEY


def test_every_default_is_a_model_that_the_engine_knows() -> None:
    from pydantic_ai.models import KnownModelName

    known = set(get_args(KnownModelName.__value__))
    named = {f'{provider}:{model}' for provider, model in DEFAULTS.items() if provider != 'openrouter'}
    assert named - known == set()
