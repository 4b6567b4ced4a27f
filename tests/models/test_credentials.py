"""Which key goes to which server: keys from `.env` work, and keys of the user do not go to strangers."""

from pathlib import Path

import pytest

from habilis.core.settings import load_settings
from habilis.models.providers import NO_KEY
from habilis.models.registry import Registry
from tests.place import Place

STRANGER = 'https://stranger.example/v1'


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


def key(name: str = 'openai:gpt-5') -> str | None:
    """The key that would be sent."""
    return Registry(load_settings()).get(name).api_key


def alias(url: str) -> str:
    """A model of OpenAI at another address, for `habilis.toml`."""
    return f'[models.mine]\nmodel = "openai:gpt-5"\nbase_url = "{url}"\n'


@pytest.mark.parametrize(
    ('model', 'variable'),
    [
        ('openai:x', 'OPENAI_API_KEY'),
        ('anthropic:x', 'ANTHROPIC_API_KEY'),
        ('google:x', 'GOOGLE_API_KEY'),
        ('google:x', 'GEMINI_API_KEY'),
        ('mistral:x', 'MISTRAL_API_KEY'),
        ('groq:x', 'GROQ_API_KEY'),
        ('openrouter:x/y', 'OPENROUTER_API_KEY'),
        ('bedrock:x', 'AWS_BEARER_TOKEN_BEDROCK'),
    ],
)
def test_the_key_of_a_provider_may_stand_in_dotenv(place: Place, model: str, variable: str) -> None:
    place.dotenv(f'{variable}=key-of-dotenv\n')
    assert key(model) == 'key-of-dotenv'
    place.environment(**{variable: 'key-of-environment'})
    assert key(model) == 'key-of-environment'


def test_a_key_goes_to_its_own_provider_only(place: Place) -> None:
    place.environment(OPENAI_API_KEY='key-of-openai')
    assert key('anthropic:x') is None
    assert key('ollama:x') is None
    assert key('local:x') is None


def test_a_key_of_the_settings_wins_over_the_variable_and_an_alias_over_both(place: Place) -> None:
    place.environment(OPENAI_API_KEY='of-provider', HABILIS_API_KEY='of-settings')
    place.project('[models.mine]\nmodel = "openai:x"\napi_key = "of-alias"\n')
    assert key() == 'of-settings'
    assert key('mine') == 'of-alias'


def test_a_url_in_dotenv_counts_as_in_the_environment(place: Place) -> None:
    place.dotenv('OLLAMA_HOST=0.0.0.0:12345\nOPENAI_BASE_URL=http://127.0.0.1:1/v1\n')
    registry = Registry(load_settings())
    assert registry.get('ollama:x').base_url == 'http://localhost:12345/v1'
    assert registry.get('openai:x').base_url == 'http://127.0.0.1:1/v1'


def test_a_warning_says_that_the_general_url_is_not_for_a_server_with_a_name(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    place.environment(HABILIS_BASE_URL=STRANGER)
    Registry(load_settings()).get('vllm:m')
    [record] = caplog.records
    assert (
        record.getMessage() == 'base_url is not used for vllm:m: set VLLM_BASE_URL, or write only the name of the model'
    )


class TestStrangers:
    @pytest.mark.parametrize(
        ('variable', 'text'),
        [
            ('OPENAI_COMPATIBLE_API_KEY', f'base_url = "{STRANGER}"\n'),
            ('HABILIS_API_KEY', f'base_url = "{STRANGER}"\n'),
            ('OPENAI_API_KEY', alias(STRANGER)),
            ('HABILIS_API_KEY', alias(STRANGER)),
        ],
    )
    def test_a_key_of_the_environment_is_not_sent_where_the_folder_says(
        self, place: Place, caplog: pytest.LogCaptureFixture, variable: str, text: str
    ) -> None:
        place.environment(**{variable: 'my-own-key'})
        place.project(text)
        assert key('mine' if 'models' in text else 'm') == NO_KEY
        [record] = caplog.records
        assert STRANGER in record.getMessage()
        assert 'my-own-key' not in record.getMessage()

    def test_dotenv_is_a_file_of_the_folder_too(self, place: Place) -> None:
        place.environment(OPENAI_API_KEY='my-own-key', OPENAI_COMPATIBLE_API_KEY='my-own-key')
        place.dotenv(f'HABILIS_BASE_URL={STRANGER}\nOPENAI_BASE_URL={STRANGER}\n')
        assert key('openai:gpt-5') == key('m') == NO_KEY

    def test_a_key_of_the_users_file_is_not_sent_there_either(self, place: Place) -> None:
        place.user('api_key = "my-own-key"\n')
        place.project(alias(STRANGER))
        assert key('mine') == NO_KEY

    def test_a_key_of_the_same_folder_is_sent(self, place: Place) -> None:
        place.dotenv('OPENAI_API_KEY=key-of-folder\n')
        place.project(alias(STRANGER))
        assert key('mine') == 'key-of-folder'

    def test_a_key_that_the_program_gives_is_sent(self, place: Place) -> None:
        place.project(alias(STRANGER))
        assert Registry(load_settings()).get('mine', {'api_key': 'given-key'}).api_key == 'given-key'

    @pytest.mark.parametrize('url', ['http://127.0.0.1:8000/v1', 'http://localhost/v1', 'https://api.openai.com/v1'])
    def test_this_machine_and_the_provider_itself_are_no_strangers(self, place: Place, url: str) -> None:
        place.environment(OPENAI_API_KEY='my-own-key')
        place.project(alias(url))
        assert key('mine') == 'my-own-key'

    @pytest.mark.parametrize(
        'url',
        ['https://api.openai.com@stranger.example/v1', 'https://127.0.0.1.example/v1', 'http://api.openai.com/v1'],
    )
    def test_a_stranger_in_disguise_is_one(self, place: Place, url: str) -> None:
        place.environment(OPENAI_API_KEY='my-own-key')
        place.project(alias(url))
        assert key('mine') == NO_KEY

    @pytest.mark.parametrize('source', ['environment', 'user', 'argument'])
    def test_a_url_that_the_user_set_is_trusted(self, place: Place, source: str) -> None:
        place.environment(OPENAI_COMPATIBLE_API_KEY='my-own-key')
        if source == 'environment':
            place.environment(HABILIS_BASE_URL=STRANGER)
        elif source == 'user':
            place.user(f'base_url = "{STRANGER}"\n')
        settings = load_settings(base_url=STRANGER if source == 'argument' else None)
        assert Registry(settings).get('m').api_key == 'my-own-key'
