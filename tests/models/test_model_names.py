"""What people write as the name of a model, and what it means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.core.errors import ModelNotFound
from habilis.models.model_names import ModelName, parse_name
from habilis.models.providers import PROVIDERS
from tests.cases import each_case

URL = 'http://localhost:9999/v1'


@each_case(
    ('text', 'provider', 'model'),
    [
        ('ollama:llama3', 'ollama', 'llama3'),
        ('ollama/llama3', 'ollama', 'llama3'),
        ('ollama/llama3:8b', 'ollama', 'llama3:8b'),
        ('ollama:hf.co/org/model:Q4', 'ollama', 'hf.co/org/model:Q4'),
        ('OpenAI:gpt-4.1', 'openai', 'gpt-4.1'),
        ('  anthropic : claude-sonnet-4-6 ', 'anthropic', 'claude-sonnet-4-6'),
        ('bedrock:us.anthropic.claude-v1:0', 'bedrock', 'us.anthropic.claude-v1:0'),
        ('openrouter:qwen/qwen3-coder:free', 'openrouter', 'qwen/qwen3-coder:free'),
        ('openai/gpt-4.1', 'openai', 'gpt-4.1'),
    ],
)
def test_a_provider_stands_before_a_colon_or_a_slash(text: str, provider: str, model: str) -> None:
    assert parse_name(text) == ModelName(provider=provider, model=model)


@each_case(
    'text', ['Qwen/Qwen2.5-7B', 'meta-llama/Llama-3', 'openai/gpt-oss-20b', 'google/gemma-3-1b', 'gpt-4', 'llama3:8b']
)
def test_with_a_url_a_name_that_looks_like_hugging_face_is_the_name_on_that_server(text: str) -> None:
    assert parse_name(text, base_url=URL) == ModelName(provider='openai-compatible', model=text)


def test_with_a_url_the_hub_says_only_where_the_weights_come_from() -> None:
    assert parse_name('hf:Qwen/Qwen2.5-7B', base_url=URL, more=['hf']) == ModelName(
        provider='openai-compatible', model='Qwen/Qwen2.5-7B'
    )


@pytest.mark.parametrize('text', ['vllm/Qwen/Qwen2.5-7B', 'vllm:Qwen/Qwen2.5-7B'])
def test_with_a_url_a_provider_that_one_runs_oneself_is_still_a_provider(text: str) -> None:
    assert parse_name(text, base_url=URL) == ModelName(provider='vllm', model='Qwen/Qwen2.5-7B')


def test_with_a_url_a_provider_before_a_colon_keeps_its_protocol() -> None:
    assert parse_name('anthropic:claude-x', base_url=URL).provider == 'anthropic'


@each_case('text', ['my-model', 'nobody:model', ':', '/', 'a' * 500])
def test_without_a_url_an_unknown_provider_is_not_found_and_the_known_ones_are_named(text: str) -> None:
    with pytest.raises(ModelNotFound) as caught:
        parse_name(text)
    assert all(provider in str(caught.value) for provider in PROVIDERS)
    assert '\n' not in str(caught.value)


@pytest.mark.parametrize(
    ('text', 'meant'),
    [
        ('antropic:claude', 'anthropic'),
        ('olama/llama3', 'ollama'),
        ('Gogle:gemini', 'google'),
        ('mistrall:x', 'mistral'),
    ],
)
def test_the_nearest_provider_is_suggested(text: str, meant: str) -> None:
    with pytest.raises(ModelNotFound, match=f"did you mean '{meant}'"):
        parse_name(text)


@each_case(
    ('text', 'meant'),
    [
        ('gpt-4o', 'openai:gpt-4o'),
        ('GPT-5-mini', 'openai:GPT-5-mini'),
        ('o3', 'openai:o3'),
        ('o4-mini', 'openai:o4-mini'),
        ('gpt-oss:20b', 'ollama:gpt-oss:20b or openrouter:openai/gpt-oss:20b'),
        ('claude-sonnet-4-5', 'anthropic:claude-sonnet-4-5'),
        ('claude:opus', 'anthropic:opus'),
        ('gemini-2.5-pro', 'google:gemini-2.5-pro'),
        ('gemini/gemini-2.5-pro', 'google:gemini-2.5-pro'),
        ('mistral-large-latest', 'mistral:mistral-large-latest'),
        ('codestral-latest', 'mistral:codestral-latest'),
        ('llama3.2', 'ollama:llama3.2'),
        ('llama3:8b', 'ollama:llama3:8b'),
        ('qwen3:8b', 'ollama:qwen3:8b'),
        ('mistral', 'ollama:mistral'),
        ('Qwen/Qwen2.5-7B', 'hf:Qwen/Qwen2.5-7B or openrouter:Qwen/Qwen2.5-7B'),
        ('meta-llama/Llama-3', 'hf:meta-llama/Llama-3 or openrouter:meta-llama/Llama-3'),
    ],
)
def test_a_well_known_model_without_a_provider_is_answered_with_its_full_name(text: str, meant: str) -> None:
    with pytest.raises(ModelNotFound) as caught:
        parse_name(text)
    assert str(caught.value) == f'the model name {text!r} has no known provider: write {meant}'
    for full in meant.split(' or '):
        parse_name(full, more=('hf',))


@pytest.mark.parametrize('text', ['openai:', 'ollama/', 'openai:   '])
def test_a_provider_without_a_model_is_not_found(text: str) -> None:
    with pytest.raises(ModelNotFound, match='missing model name after'):
        parse_name(text)


@pytest.mark.parametrize('text', ['', '   '])
def test_nothing_is_not_found(text: str) -> None:
    with pytest.raises(ModelNotFound, match='empty model name'):
        parse_name(text)


def test_the_caller_may_know_more_providers() -> None:
    assert parse_name('local:qwen', more=['local']) == ModelName(provider='local', model='qwen')
    with pytest.raises(ModelNotFound):
        parse_name('local:qwen')


@given(st.text(), st.sampled_from([None, URL]))
def test_any_text_gives_a_known_provider_or_is_not_found(text: str, base_url: str | None) -> None:
    try:
        name = parse_name(text, base_url=base_url)
    except ModelNotFound:
        return
    assert name.provider in PROVIDERS
    assert name.model == name.model.strip() != ''


@given(st.sampled_from(sorted(PROVIDERS)), st.text(min_size=1).map(str.strip).filter(bool))
def test_a_name_that_was_written_out_means_the_same(provider: str, model: str) -> None:
    name = ModelName(provider=provider, model=model)
    assert parse_name(str(name)) == name
    assert parse_name(str(name), base_url=URL) == name
