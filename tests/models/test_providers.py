"""Where each provider is, and with which key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.core.errors import SettingsError
from habilis.models.providers import PROVIDERS, is_local, key_of, shown_url, url_of
from tests.cases import each_case

OLLAMA = PROVIDERS['ollama']


@each_case(
    ('host', 'url'),
    [
        ('127.0.0.1', 'http://127.0.0.1:11434/v1'),
        ('0.0.0.0', 'http://localhost:11434/v1'),
        ('0.0.0.0:8888', 'http://localhost:8888/v1'),
        (':8888', 'http://localhost:8888/v1'),
        ('[::]', 'http://localhost:11434/v1'),
        ('[::1]:8888', 'http://[::1]:8888/v1'),
        ('box', 'http://box:11434/v1'),
        ('https://box.example:443', 'https://box.example:443/v1'),
    ],
)
def test_the_address_that_ollama_listens_on_gives_its_url(host: str, url: str) -> None:
    assert url_of(OLLAMA, environ={'OLLAMA_HOST': host}) == url


def test_the_url_comes_from_the_settings_then_the_environment_then_the_table() -> None:
    environ = {'OLLAMA_BASE_URL': 'http://a:1/v1', 'OLLAMA_HOST': 'b'}
    assert url_of(OLLAMA, 'http://c:2/v1', environ) == 'http://c:2/v1'
    assert url_of(OLLAMA, None, environ) == 'http://a:1/v1'
    assert url_of(OLLAMA, None, {}) == 'http://localhost:11434/v1'


@each_case(
    ('provider', 'given', 'url'),
    [
        ('ollama', 'http://localhost:11434', 'http://localhost:11434/v1'),
        ('vllm', 'localhost:8000/', 'http://localhost:8000/v1'),
        ('llamacpp', 'http://box/llm/v1/', 'http://box/llm/v1'),
        ('openai-compatible', 'http://box:8000', 'http://box:8000'),
        ('anthropic', 'https://proxy.example/', 'https://proxy.example'),
    ],
)
def test_a_url_is_completed_only_where_the_rest_is_known(provider: str, given: str, url: str) -> None:
    assert url_of(PROVIDERS[provider], given, {}) == url


@each_case('given', ['ftp://box/v1', 'http://', 'http://box:port/v1', 'http://a b/', 'http://[::1/v1', ' '])
def test_a_url_that_is_none_is_refused_by_the_name_of_its_setting(given: str) -> None:
    with pytest.raises(SettingsError, match='base_url'):
        url_of(PROVIDERS['vllm'], given, {})


def test_an_openai_compatible_server_must_be_named() -> None:
    with pytest.raises(SettingsError, match='base_url'):
        url_of(PROVIDERS['openai-compatible'], None, {})


@given(st.text(max_size=40), st.sampled_from(sorted(PROVIDERS)))
def test_any_text_is_a_url_or_refused(text: str, provider: str) -> None:
    try:
        url = url_of(PROVIDERS[provider], text, {'OPENAI_COMPATIBLE_BASE_URL': 'http://x'})
    except SettingsError:
        return
    assert url is None or url.startswith(('http://', 'https://'))


def test_a_url_is_shown_without_name_and_password() -> None:
    assert shown_url('http://me:secret@box:80/v1?key=secret') == 'http://box:80/v1'


@each_case(
    ('url', 'local'),
    [
        ('http://localhost:1/v1', True),
        ('http://127.0.0.2/v1', True),
        ('http://[::1]:8000', True),
        ('http://10.0.0.1/v1', False),
        ('http://localhost.example', False),
        (None, False),
    ],
)
def test_loopback_is_this_machine(url: str | None, local: bool) -> None:
    assert is_local(url) is local


def test_the_key_is_the_one_given_or_the_first_in_the_environment() -> None:
    google = PROVIDERS['google']
    assert key_of(google, 'mine', {'GOOGLE_API_KEY': 'a'}) == 'mine'
    assert key_of(google, None, {'GOOGLE_API_KEY': ' ', 'GEMINI_API_KEY': 'b'}) == 'b'
    assert key_of(google, None, {}) is None


def test_the_key_of_openai_is_used_for_openai_only() -> None:
    takers = {name for name, provider in PROVIDERS.items() if key_of(provider, None, {'OPENAI_API_KEY': 'k'})}
    assert takers == {'openai', 'openai-responses'}
