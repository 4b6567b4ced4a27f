"""What calls cost, offline."""

import socket
import subprocess
import sys
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.models.prices import cost_of
from tests.cases import each_case


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        msg = 'prices must not use the network'
        raise AssertionError(msg)

    monkeypatch.setattr(socket.socket, 'connect', refuse)
    monkeypatch.setattr(socket, 'getaddrinfo', refuse)


@each_case(
    'model',
    [
        'anthropic:claude-sonnet-4-5',
        'bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0',
        'google:gemini-2.5-flash',
        'groq:llama-3.3-70b-versatile',
        'mistral:mistral-large-latest',
        'openai:gpt-4o-mini',
        'openai-responses:gpt-4o-mini',
        'openrouter:anthropic/claude-sonnet-4.5',
    ],
)
def test_known_models_have_a_price_that_grows_with_tokens(model: str) -> None:
    little, more = cost_of(model, input_tokens=1000), cost_of(model, input_tokens=1000, output_tokens=1000)
    assert little is not None
    assert more is not None
    assert 0 < little < more < 1


def test_a_published_price_is_met() -> None:
    assert cost_of('openai:gpt-4o-mini', input_tokens=1_000_000, output_tokens=1_000_000) == pytest.approx(0.75)


def test_tokens_from_the_prompt_cache_are_cheaper() -> None:
    full = cost_of('anthropic:claude-sonnet-4-5', input_tokens=10_000)
    cached = cost_of('anthropic:claude-sonnet-4-5', input_tokens=10_000, cached_tokens=9_000)
    assert full is not None
    assert cached is not None
    assert cached < full / 2


@pytest.mark.parametrize('model', ['local:qwen2.5-coder-1.5b', 'ollama:llama3.2', 'hf:gpt2', 'scripted:demo'])
def test_what_runs_on_this_machine_is_free(model: str) -> None:
    assert cost_of(model, input_tokens=10**9, output_tokens=10**9) == 0.0


@each_case('model', ['', 'gpt-4o', 'openai:', 'openai:no-such-model', 'nobody:gpt-4o', ':', '::', 'openai'])
def test_no_price_is_known_for_what_is_unknown(model: str) -> None:
    assert cost_of(model, input_tokens=10, output_tokens=10) is None


def test_more_cached_than_read_is_taken_as_all_cached() -> None:
    model = 'openai:gpt-4o-mini'
    assert cost_of(model, input_tokens=10, cached_tokens=99) == cost_of(model, input_tokens=10, cached_tokens=10)


COUNTS = st.integers(-(10**20), 10**20)


@given(st.text() | st.text().map('openai:{}'.format) | st.just('openai:gpt-4o'), COUNTS, COUNTS, COUNTS)
def test_no_name_and_no_count_makes_it_raise(model: str, read: int, written: int, cached: int) -> None:
    cost = cost_of(model, input_tokens=read, output_tokens=written, cached_tokens=cached)
    assert cost is None or cost >= 0


def test_the_list_of_prices_is_not_read_before_it_is_needed() -> None:
    code = (
        'import sys\nfrom habilis.models.prices import cost_of\ncost_of("local:x", 1, 1)\n'
        'assert "genai_prices" not in sys.modules, "imported"'
    )
    subprocess.run([sys.executable, '-c', code], check=True)
