"""Settings: what there is, who wins, and what is said about mistakes."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import SecretStr

from habilis.core.errors import SettingsError
from habilis.core.limits import Limits
from habilis.core.settings import NAMES, Settings, load_settings
from habilis.models.config import ModelConfig
from tests.cases import each_case
from tests.place import Place, as_toml, as_variable

VALUES: dict[str, tuple[object, object]] = {
    'model': ('openai:gpt-5', 'ollama:llama3.2'),
    'fallback': (('openai:gpt-5', 'fast'), ('ollama:llama3.2',)),
    'models': ({'fast': 'openai:gpt-5'}, {'fast': {'model': 'openai:gpt-5', 'temperature': 1.5}}),
    'temperature': (0.25, 1.0),
    'max_tokens': (100, 200),
    'timeout': (5.0, 6.5),
    'base_url': ('http://127.0.0.1:1/v1', 'https://models.example/v1'),
    'api_key': ('key-number-one', 'key-number-two'),
    'retries': (0, 7),
    'response_cache': (True, False),
    'max_steps': (3, 4),
    'max_seconds': (60.0, 61.0),
    'max_run_tokens': (1000, 2000),
    'max_cost': (0.5, 0.75),
    'max_tool_calls': (10, 11),
    'journal': ('runs.db', 'off'),
    'user': ('ann', 'bob'),
    'library': ('tools', 'other/tools'),
    'memory': ('memory.db', 'other.db'),
    'embedder': ('off', 'minilm'),
    'sandbox': ('process', 'docker'),
    'sandbox_seconds': (5.0, 6.0),
    'sandbox_memory_mb': (64, 128),
    'sandbox_protect': (False, True),
    'searxng_url': ('http://127.0.0.1:8888', 'https://search.example'),
    'web_hosts': (('wiki.example', '10.0.0.5:8080'), ('127.0.0.1',)),
    'observation_tokens': (500, 600),
    'observation_lines': (50, 60),
    'tool_tokens': (500, 600),
    'summary': ('default', 'Say it in a word.'),
    'notebook_view': (False, True),
    'status': (False, True),
    'keys': ('vim', 'emacs'),
    'bell': (0.0, 5.5),
    'log_level': ('debug', 'warning,models=info'),
    'debug': (True, False),
}
"""Two values of each setting. The first is never the default."""

Setter = Callable[[Place, dict[str, object]], object]


def _environment(place: Place, values: dict[str, object]) -> None:
    place.environment(**{f'HABILIS_{name.upper()}': as_variable(value) for name, value in values.items()})


def _dotenv(place: Place, values: dict[str, object]) -> None:
    place.dotenv(''.join(f"HABILIS_{name.upper()}='{as_variable(value)}'\n" for name, value in values.items()))


def _toml(values: dict[str, object]) -> str:
    return ''.join(f'{name} = {as_toml(value)}\n' for name, value in values.items())


SOURCES: dict[str, Setter] = {
    'environment': _environment,
    '.env': _dotenv,
    'project': lambda place, values: place.project(_toml(values)),
    'user': lambda place, values: place.user(_toml(values)),
}
"""All but arguments, the strongest first."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


def value_of(settings: Settings, name: str) -> object:
    """What was set, as `VALUES` has it."""
    value = getattr(settings, name)
    return value.get_secret_value() if isinstance(value, SecretStr) else value


def loaded(name: str, value: object) -> object:
    """What a value of the table becomes."""
    return value_of(Settings.model_validate({name: value}), name)


def test_the_table_of_values_has_every_setting() -> None:
    assert tuple(VALUES) == NAMES


@each_case('name', NAMES)
def test_the_first_value_of_the_table_is_not_the_default(name: str) -> None:
    assert loaded(name, VALUES[name][0]) != value_of(Settings(), name)


@pytest.mark.parametrize('name', NAMES)
@pytest.mark.parametrize('source', SOURCES)
def test_each_setting_can_be_set_in_each_source(place: Place, source: str, name: str) -> None:
    value = VALUES[name][0]
    SOURCES[source](place, {name: value})
    settings = load_settings()
    assert value_of(settings, name) == loaded(name, value)
    assert settings.origin('models.fast' if name == 'models' else name) == source


@pytest.mark.parametrize('name', NAMES)
def test_each_setting_can_be_an_argument(place: Place, name: str) -> None:
    settings = load_settings(None, **{name: VALUES[name][0]})
    assert value_of(settings, name) == loaded(name, VALUES[name][0])
    assert settings.origin('models.fast' if name == 'models' else name) == 'argument'


@pytest.mark.parametrize('order', [0, 1])
@pytest.mark.parametrize(('strong', 'weak'), list(itertools.combinations(SOURCES, 2)))
def test_the_stronger_of_two_sources_wins_for_every_setting(place: Place, strong: str, weak: str, order: int) -> None:
    SOURCES[weak](place, {name: values[1 - order] for name, values in VALUES.items()})
    SOURCES[strong](place, {name: values[order] for name, values in VALUES.items()})
    settings = load_settings()
    winners = {name: loaded(name, values[order]) for name, values in VALUES.items()}
    assert {name: value_of(settings, name) for name in NAMES} == winners


@pytest.mark.parametrize('order', [0, 1])
@pytest.mark.parametrize('weak', SOURCES)
def test_an_argument_wins_over_every_source_for_every_setting(place: Place, weak: str, order: int) -> None:
    SOURCES[weak](place, {name: values[1 - order] for name, values in VALUES.items()})
    settings = load_settings(None, **{name: values[order] for name, values in VALUES.items()})
    winners = {name: loaded(name, values[order]) for name, values in VALUES.items()}
    assert {name: value_of(settings, name) for name in NAMES} == winners


def test_without_any_source_there_are_defaults(place: Place) -> None:
    assert load_settings() == Settings()
    assert load_settings().origin('model') == 'default'


def test_the_defaults_are_those_of_what_they_set() -> None:
    defaults, config, limits = Settings(), ModelConfig(model='x:y'), Limits()
    assert (defaults.timeout, defaults.retries) == (config.timeout, config.retries)
    assert (defaults.sandbox_seconds, defaults.sandbox_memory_mb) == (limits.seconds, limits.memory_mb)


def test_an_argument_that_is_none_is_as_not_given(place: Place) -> None:
    place.environment(HABILIS_MAX_STEPS='3')
    assert load_settings(max_steps=None).max_steps == 3


def test_an_empty_variable_is_as_not_set(place: Place) -> None:
    place.dotenv('HABILIS_MAX_STEPS=\n')
    place.environment(HABILIS_MODEL='  ')
    place.project('model = "openai:gpt-5"\nmax_steps = 9\n')
    settings = load_settings()
    assert (settings.model, settings.max_steps) == ('openai:gpt-5', 9)


@pytest.mark.parametrize(('text', 'on'), [('1', True), ('yes', True), ('TRUE', True), ('0', False), ('off', False)])
def test_a_switch_is_written_in_many_ways(place: Place, text: str, on: bool) -> None:
    place.environment(HABILIS_DEBUG=text)
    assert load_settings().debug is on


@pytest.mark.parametrize(
    ('plain', 'name', 'value', 'stronger'),
    [('LOG_LEVEL', 'log_level', 'info', 'error'), ('ENABLE_RESPONSE_CACHE', 'response_cache', '1', '0')],
)
def test_a_shared_variable_counts_and_yields_to_ours(
    place: Place, plain: str, name: str, value: str, stronger: str
) -> None:
    place.environment(**{plain: value})
    assert value_of(load_settings(), name) == loaded(name, value)
    place.environment(**{f'HABILIS_{name.upper()}': stronger})
    assert value_of(load_settings(), name) == loaded(name, stronger)


def test_a_folder_can_be_named(place: Place, tmp_path: Path) -> None:
    place.project('max_steps = 3')
    other = tmp_path / 'other'
    other.mkdir()
    (other / 'habilis.toml').write_text('max_steps = 5')
    assert load_settings(other).max_steps == 5


class TestAliases:
    def test_aliases_of_all_sources_come_together(self, place: Place) -> None:
        place.user('[models]\na = "x:user"\nb = "x:user"\nc = "x:user"\n')
        place.project('[models.b]\nmodel = "x:project"\ntemperature = 1\n[models]\nc = "x:project"\n')
        place.environment(HABILIS_MODELS=json.dumps({'c': {'model': 'x:environment'}}))
        models = load_settings().models
        assert {alias: model.model for alias, model in models.items()} == {
            'a': 'x:user',
            'b': 'x:project',
            'c': 'x:environment',
        }

    def test_a_stronger_source_replaces_an_alias_as_a_whole(self, place: Place) -> None:
        place.user('[models.a]\nmodel = "x:user"\ntemperature = 1\n')
        place.project('[models]\na = "x:project"\n')
        assert load_settings().models['a'].temperature is None

    def test_two_aliases_of_one_model_differ(self, place: Place) -> None:
        place.project('[models.a]\nmodel = "x:y"\ntemperature = 0\n[models.b]\nmodel = "x:y"\ntemperature = 1\n')
        models = load_settings().models
        assert (models['a'].temperature, models['b'].temperature) == (0, 1)

    def test_an_alias_has_every_field_of_a_model_config(self) -> None:
        from dataclasses import fields

        from habilis.core.settings import ModelSettings

        assert set(ModelSettings.model_fields) == {field.name for field in fields(ModelConfig)}


MISTAKES: list[tuple[str, object, str]] = [
    ('max_steps', 'many', "is 'many': expected a whole number, 1 or more"),
    ('max_steps', 0, 'is 0: expected a whole number, 1 or more'),
    ('max_steps', True, 'is True: expected a whole number, 1 or more'),
    ('max_steps', 1.5, 'is 1.5: expected a whole number, 1 or more'),
    ('max_steps', [1], 'expected a whole number, 1 or more'),
    ('temperature', 3, 'is 3: expected a number from 0 to 2'),
    ('temperature', 'nan', "is 'nan': expected a number from 0 to 2"),
    ('timeout', 0, 'is 0: expected a number of seconds above 0'),
    ('timeout', 'inf', "is 'inf': expected a number of seconds above 0"),
    ('retries', -1, 'is -1: expected a whole number from 0 to 100'),
    ('max_cost', -0.5, 'is -0.5: expected a number of US dollars above 0'),
    ('sandbox_memory_mb', 1, 'is 1: expected a whole number from 48 to 4096'),
    ('base_url', 'models.example', "is 'models.example': expected a URL such as"),
    ('base_url', 'file:///etc/passwd', 'expected a URL such as'),
    ('base_url', 'http://a b/', 'expected a URL such as'),
    ('base_url', 'http://[', 'expected a URL such as'),
    ('model', ' ', 'expected a name such as provider:model'),
    ('model', 3, 'is 3: expected a name such as provider:model'),
    ('fallback', 3, 'is 3: expected names such as provider:model'),
    ('debug', 'perhaps', "is 'perhaps': expected true or false"),
    ('response_cache', 2, 'is 2: expected true or false'),
    ('log_level', 'loud', "unknown log level 'loud'"),
    ('log_level', 'modles=debug', 'did you mean models?'),
    ('summary', '', "is '': expected text"),
    ('models', 3, 'expected a table of aliases'),
    ('models', {'a': 3}, 'expected a table with a model'),
    ('models', {'a': {}}, 'model is missing'),
    ('models', {'a': {'model': 'x:y', 'temperature': 9}}, 'models.a.temperature is 9: expected a number from 0 to 2'),
    ('models', {'a': {'modle': 'x:y'}}, 'models.a.modle is not a setting of a model; did you mean model?'),
]


@pytest.mark.parametrize(('name', 'value', 'complaint'), MISTAKES)
def test_a_wrong_value_is_reported_in_one_line(place: Place, name: str, value: object, complaint: str) -> None:
    file = place.project(f'{name} = {as_toml(value)}\n')
    with pytest.raises(SettingsError) as raised:
        load_settings()
    assert f'{file}:{name}' in str(raised.value)
    assert complaint in str(raised.value)
    assert '\n' not in str(raised.value)


def test_the_place_of_a_wrong_value_is_reported(place: Place) -> None:
    file = place.dotenv('HABILIS_MAX_STEPS=none\n')
    with pytest.raises(SettingsError, match=r'\.env:HABILIS_MAX_STEPS is ') as raised:
        load_settings()
    assert str(raised.value).startswith(f'{file}:')
    place.environment(HABILIS_MAX_STEPS='few')
    with pytest.raises(SettingsError, match=r"^HABILIS_MAX_STEPS is 'few'"):
        load_settings()
    with pytest.raises(SettingsError, match=r"^the argument max_steps is 'lots'"):
        load_settings(max_steps='lots')


def test_a_very_long_value_is_cut_short(place: Place) -> None:
    with pytest.raises(SettingsError) as raised:
        load_settings(max_steps='9' * 100_000)
    assert len(str(raised.value)) < 300


def test_an_argument_that_does_not_exist_names_the_nearest() -> None:
    with pytest.raises(SettingsError, match=r"unknown setting 'max_step'; did you mean max_steps\?"):
        load_settings(max_step=3)


class TestSecrets:
    KEY = 'a-very-private-key'

    def test_a_variable_is_looked_for_in_the_environment_and_then_in_dotenv(self, place: Place) -> None:
        place.dotenv('OPENAI_API_KEY=from-dotenv\nGROQ_API_KEY=groq-dotenv\nEMPTY_API_KEY=\n')
        place.environment(OPENAI_API_KEY='from-environment', MISTRAL_API_KEY=' ')
        settings = load_settings()
        assert settings.secret('OPENAI_API_KEY') == 'from-environment'
        assert settings.origin('OPENAI_API_KEY') == 'environment'
        assert settings.secret('GROQ_API_KEY') == 'groq-dotenv'
        assert settings.origin('GROQ_API_KEY') == '.env'
        assert settings.secret('EMPTY_API_KEY') is None
        assert settings.secret('MISTRAL_API_KEY') is None
        assert settings.secret('ABSENT') is None

    def test_the_environment_is_not_changed(self, place: Place) -> None:
        import os

        place.dotenv('OPENAI_API_KEY=from-dotenv\nHABILIS_MODEL=x:y\n')
        before = dict(os.environ)
        load_settings().secret('OPENAI_API_KEY')
        assert dict(os.environ) == before

    def test_no_way_of_showing_settings_shows_a_key(self, place: Place) -> None:
        place.dotenv(f'OPENAI_API_KEY={self.KEY}\n')
        place.environment(ANTHROPIC_API_KEY=self.KEY)
        settings = load_settings(
            api_key=self.KEY,
            base_url=f'https://me:{self.KEY}@models.example',
            models={
                'a': {
                    'model': 'x:y',
                    'api_key': self.KEY,
                    'base_url': f'https://me:{self.KEY}@models.example',
                    'extra': {'token': self.KEY},
                }
            },
        )
        assert settings.api_key is not None
        assert settings.api_key.get_secret_value() == self.KEY
        assert self.KEY not in f'{settings!r} {settings!s} {settings.models!r} {settings.models["a"]!s}'

    @pytest.mark.parametrize(
        'arguments',
        [
            {'api_key': ['a-very-private-key']},
            {'models': {'a': {'model': 'x:y', 'api_key': ['a-very-private-key']}}},
            {'models': {'a': {'model': 'x:y', 'api_key': 'a-very-private-key', 'temperature': 9}}},
            {'models': {'a': {'api_key': 'a-very-private-key'}}},
            {'models': {'a': ['a-very-private-key']}},
            {'models': 'a-very-private-key'},
            {'models': {'a': {'model': 'x:y', 'extra': 'a-very-private-key'}}},
            {'base_url': 'ftp://me:a-very-private-key@models.example'},
            {'model': {'api_key': 'a-very-private-key'}},
            {'max_steps': 'sk-a-very-private-key'},
        ],
    )
    def test_no_error_shows_a_key(self, place: Place, arguments: dict[str, object]) -> None:
        with pytest.raises(SettingsError) as raised:
            load_settings(None, **arguments)
        assert self.KEY not in str(raised.value)
        assert raised.value.__cause__ is None
        assert raised.value.__context__ is None or raised.value.__suppress_context__

    def test_a_variable_of_aliases_that_is_not_json_is_not_shown(self, place: Place) -> None:
        place.environment(HABILIS_MODELS=f'{{"a": {{"api_key": "{self.KEY}"')
        with pytest.raises(SettingsError, match='HABILIS_MODELS is not JSON at character') as raised:
            load_settings()
        assert self.KEY not in str(raised.value)

    def test_keys_of_all_sources_are_known_as_secrets(self, place: Place) -> None:
        place.dotenv('OPENAI_API_KEY=key-of-dotenv\n')
        place.environment(AWS_SECRET_ACCESS_KEY='key-of-environment', HOMEPAGE='not-a-key')
        place.project('[models.a]\nmodel = "x:y"\napi_key = "key-of-alias"\n')
        secrets = set(load_settings(api_key='key-of-argument').secrets())
        assert {'key-of-dotenv', 'key-of-environment', 'key-of-alias', 'key-of-argument'} <= secrets
        assert 'not-a-key' not in secrets


def test_settings_cannot_be_changed(place: Place) -> None:
    from pydantic import ValidationError

    with pytest.raises(ValidationError, match='frozen'):
        load_settings().max_steps = 3  # pyright: ignore[reportAttributeAccessIssue]
