"""Images and files, and how they reach the servers of models."""

import base64
import json
from pathlib import Path

import pytest

from habilis import File, Image
from habilis.core.errors import ModelRefused
from habilis.models.cache import CachedModel
from habilis.models.config import ModelConfig
from habilis.models.contract import Message, Traits
from habilis.models.engine import EngineModel
from habilis.models.files import MAX_IMAGE_BYTES
from habilis.models.local.model import LocalModel
from habilis.models.providers import PROVIDERS, sees_images
from habilis.models.scripted import ScriptedModel
from habilis.models.tokens import TOKENS_PER_IMAGE, count_message_tokens
from tests.cases import each_case
from tests.models.conversation import config_for
from tests.models.protocol_server import ProtocolServer, exchange

PNG = base64.b64decode(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=='
)
"""One red pixel."""

QUESTION = Message(role='user', text='What is in this?', images=(Image(PNG, name='a.png'),))


def test_an_image_is_a_path_or_bytes(tmp_path: Path) -> None:
    path = tmp_path / 'a.png'
    path.write_bytes(PNG)
    image = Image(path)
    assert (image.name, image.media_type, image.data) == ('a.png', 'image/png', PNG)
    assert image == Image(str(path)) == Image(PNG, name='a.png')
    assert repr(image) == f"Image('a.png', {len(PNG)} bytes)"
    assert image.without_data() == image
    assert image.without_data().with_data(PNG).data == PNG


def test_a_file_is_anything(tmp_path: Path) -> None:
    path = tmp_path / 'sales.csv'
    path.write_text('a,b\n1,2\n')
    assert (File(path).media_type, File(path).data) == ('text/csv', b'a,b\n1,2\n')
    assert File(b'x').name == 'file'
    assert File(b'x', name='x.unknown').media_type == 'application/octet-stream'


@each_case(
    ('source', 'kind', 'words'),
    [
        (b'BM bitmap', ValueError, 'not a PNG, JPEG, GIF or WebP'),
        ('https://example.org/a.png', ValueError, 'not a URL'),
        (b'\x89PNG\r\n\x1a\n' + bytes(MAX_IMAGE_BYTES), ValueError, 'make it smaller'),
        (3, TypeError, 'a path or bytes, not int'),
        ('no such file.png', FileNotFoundError, 'no such file.png'),
    ],
)
def test_what_is_no_image_is_refused_at_once(source: object, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        Image(source)  # pyright: ignore[reportArgumentType]


# Models ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('provider', ['openai', 'openai-responses', 'anthropic', 'google', 'openrouter', 'bedrock'])
async def test_the_bytes_of_an_image_arrive_at_the_server(server: ProtocolServer, provider: str) -> None:
    model = EngineModel(config_for(server, provider, exchange(provider, 'plain').model).with_changes(images=True))
    try:
        await model.request([QUESTION])
    finally:
        await model.close()
    body = json.dumps(server.last.json).replace('_', '/').replace('-', '+')  # Google has its own alphabet
    assert 'What is in this?' in body
    assert base64.b64encode(PNG).decode().rstrip('=') in body
    assert 'png' in body


async def test_a_model_that_does_not_see_says_so_by_its_name(server: ProtocolServer) -> None:
    blind = EngineModel(config_for(server, 'ollama', 'llama3'))
    for model in (blind, ScriptedModel(['x']), LocalModel(ModelConfig(model='local:qwen2.5-coder-1.5b'))):
        with pytest.raises(ModelRefused, match=rf'{model.name} does not see images \(a.png\)'):
            await model.request([QUESTION])
    assert not server.requests
    await blind.close()


@each_case(
    ('model', 'sees'),
    [
        ('openai:gpt-5', True),
        ('openai:gpt-3.5-turbo', False),
        ('anthropic:claude-sonnet-5-5', True),
        ('bedrock:anthropic.claude-sonnet', True),
        ('bedrock:meta.llama3-8b', False),
        ('ollama:llama3', False),
        ('ollama:qwen2.5-vl:7b', True),
        ('vllm:llava-1.6', True),
        ('mistral:pixtral-large', True),
        ('groq:llama-3.3-70b', False),
    ],
)
def test_who_sees_is_known_by_provider_and_name(model: str, sees: bool) -> None:
    provider, _, name = model.partition(':')
    assert sees_images(PROVIDERS[provider], name) is sees
    assert EngineModel(ModelConfig(model=model)).traits.images is sees
    assert EngineModel(ModelConfig(model=model, images=not sees)).traits.images is not sees


def test_an_image_counts_and_is_part_of_the_key_of_the_cache(tmp_path: Path) -> None:
    assert Traits().images is False
    without = Message(role='user', text='What is in this?')
    assert count_message_tokens([QUESTION]) == count_message_tokens([without]) + TOKENS_PER_IMAGE
    cached = CachedModel(ScriptedModel(['x']), tmp_path)
    assert cached.key([QUESTION]) != cached.key([without])
