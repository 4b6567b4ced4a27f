"""Named models: add, default, list; two names of one model."""

import math
from typing import Any

import pytest

from habilis.core.errors import ModelNotFound, NoModel, SettingsError
from habilis.core.settings import Settings
from habilis.models.config import ModelConfig
from habilis.models.registry import Registry, resolve_name
from tests.cases import each_case


def aliases(**models: object) -> Settings:
    """Settings with aliases."""
    return Settings.model_validate({'models': models})


def test_two_names_of_one_model_with_different_temperature_are_both_usable() -> None:
    registry = Registry()
    registry.add('careful', ModelConfig(model='ollama:llama3.2', temperature=0.0))
    registry.add('playful', ModelConfig(model='ollama:llama3.2', temperature=1.5))
    careful, playful = registry.get('careful'), registry.get('playful')
    assert careful.model == playful.model == 'ollama:llama3.2'
    assert (careful.temperature, playful.temperature) == (0.0, 1.5)


def test_names_are_listed_in_order() -> None:
    registry = Registry(aliases(b='ollama:x', a='ollama:y'))
    registry.add('c', 'ollama:z')
    assert registry.names() == ('b', 'a', 'c')
    assert 'c' in registry
    assert 'd' not in registry


def test_the_default_is_that_of_the_settings_until_it_is_set() -> None:
    registry = Registry(Settings(model='ollama:x'))
    assert registry.default == 'ollama:x'
    assert registry.get().model == 'ollama:x'
    registry.add('mine', 'ollama:y')
    registry.default = 'mine'
    assert registry.get().model == 'ollama:y'
    registry.default = None
    with pytest.raises(NoModel, match='set HABILIS_MODEL'):
        registry.get()


def test_a_default_that_is_no_model_is_refused() -> None:
    registry = Registry(aliases(mine='ollama:x'))
    with pytest.raises(ModelNotFound, match=r'did you mean mine\?'):
        registry.default = 'mina'
    assert registry.default is None


def test_a_removed_name_is_gone_and_no_longer_the_default() -> None:
    registry = Registry(aliases(mine='ollama:x'))
    registry.default = 'mine'
    registry.remove('mine')
    assert registry.names() == ()
    assert registry.default is None
    with pytest.raises(ModelNotFound, match="no such model or alias: 'mine'; there are no aliases"):
        registry.remove('mine')


def test_a_well_known_model_without_its_provider_is_answered_with_both() -> None:
    with pytest.raises(ModelNotFound, match="no such model or alias: 'gpt-4o'; write openai:gpt-4o"):
        Registry().get('gpt-4o')


def test_a_name_that_is_added_again_stands_for_the_new_model() -> None:
    registry = Registry(aliases(mine='ollama:x'))
    registry.add('mine', 'ollama:y')
    assert registry.get('mine').model == 'ollama:y'


@each_case('alias', ['', ' ', 'a b', 'a:b', 'a,b', 'a\n'])
def test_a_name_that_cannot_be_written_in_settings_is_refused(alias: str) -> None:
    with pytest.raises(SettingsError, match='invalid alias'):
        Registry().add(alias, 'ollama:x')


@each_case('model', ['', 'olama:x', 'nonsense', ':', 'ollama:'])
def test_a_model_of_no_provider_is_refused(model: str) -> None:
    with pytest.raises(ModelNotFound):
        Registry().add('mine', model)
    with pytest.raises(ModelNotFound):
        Registry().get(model or ' ')


def test_an_unknown_name_gets_the_aliases() -> None:
    with pytest.raises(ModelNotFound, match="no such model or alias: 'zzz'; the aliases are mine, yours"):
        Registry(aliases(mine='ollama:x', yours='ollama:y')).get('zzz')


def test_the_alias_wins_over_defaults_and_the_call_over_both() -> None:
    settings = Settings.model_validate(
        {
            'temperature': 0.1,
            'max_tokens': 10,
            'timeout': 11,
            'retries': 1,
            'models': {'mine': {'model': 'ollama:x', 'temperature': 0.2, 'max_tokens': 20}},
        }
    )
    plain, alias = Registry(settings).get('ollama:x'), Registry(settings).get('mine')
    call = Registry(settings).get('mine', {'temperature': 0.3, 'max_tokens': None})
    assert (plain.temperature, plain.max_tokens, plain.timeout, plain.retries) == (0.1, 10, 11, 1)
    assert (alias.temperature, alias.max_tokens, alias.timeout, alias.retries) == (0.2, 20, 11, 1)
    assert (call.temperature, call.max_tokens) == (0.3, 20)


def test_zero_and_false_are_values_too() -> None:
    settings = Settings.model_validate(
        {
            'temperature': 1,
            'models': {'mine': {'model': 'ollama:x', 'temperature': 0, 'functions': False, 'retries': 0}},
        }
    )
    config = Registry(settings).get('mine')
    assert (config.temperature, config.functions, config.retries) == (0, False, 0)


@pytest.mark.parametrize(
    ('overrides', 'complaint'),
    [
        ({'temperature': 'hot'}, "the argument temperature is 'hot': expected a number from 0 to 2"),
        ({'timeout': -1}, 'the argument timeout is -1: expected a number of seconds above 0'),
        ({'temprature': 1}, 'the argument temprature is not a setting of a model; did you mean temperature?'),
        ({'api_key': ['very-private']}, 'the argument api_key: expected text'),
    ],
)
def test_a_wrong_argument_is_reported(overrides: dict[str, object], complaint: str) -> None:
    with pytest.raises(SettingsError) as raised:
        Registry().get('ollama:x', overrides)  # pyright: ignore[reportArgumentType]
    assert str(raised.value) == complaint


@each_case(
    ('arguments', 'complaint'),
    [
        ({'temperature': math.nan}, 'the argument temperature is nan: expected a number from 0 to 2'),
        ({'timeout': 'soon'}, "the argument timeout is 'soon': expected a number of seconds above 0"),
        ({'timeout': None}, 'invalid value for timeout of ModelConfig: None'),
        ({'api_key': 5}, 'the argument api_key: expected text'),
        ({'base_url': 5}, 'invalid value for base_url of ModelConfig: 5'),
        ({'extra': 5}, 'the argument extra: expected a table of JSON values'),
        ({'extra': {'x': object()}}, 'the argument extra: expected a table of JSON values'),
    ],
)
def test_a_config_that_no_request_could_carry_is_refused_when_it_is_made(
    arguments: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(SettingsError) as raised:
        ModelConfig(model='ollama:x', **arguments)
    assert str(raised.value) == complaint


def test_a_number_that_is_written_as_text_is_one() -> None:
    assert ModelConfig(model='ollama:x', timeout='5').timeout == 5.0  # pyright: ignore[reportArgumentType]


def test_an_alias_of_an_alias_is_refused() -> None:
    registry = Registry(aliases(a={'model': 'b'}, b={'model': 'openai:gpt-x'}, self={'model': 'self'}))
    for alias, other in (('a', 'b'), ('self', 'self')):
        with pytest.raises(ModelNotFound, match=f"^'{other}' is an alias; an alias cannot refer to another alias"):
            registry.get(alias)


@pytest.mark.parametrize('name', ['local', 'local:'])
def test_local_alone_is_the_embedded_model(name: str) -> None:
    assert str(resolve_name(ModelConfig(model=name))) == 'local:qwen2.5-coder-1.5b'


def test_any_name_will_do_for_a_server_of_ones_own() -> None:
    config = Registry(aliases(mine={'model': 'qwen', 'base_url': 'http://127.0.0.1:1/v1'})).get('mine')
    assert str(resolve_name(config)) == 'openai-compatible:qwen'
