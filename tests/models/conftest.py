"""What tests of this room share: a server that speaks every protocol, and no keys but theirs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from habilis.models.local import store
from habilis.models.providers import PROVIDERS
from tests.models.protocol_server import ProtocolServer


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment in which no provider is set up, except for a pair of keys that Bedrock signs with."""
    for provider in PROVIDERS.values():
        for variable in (*provider.keys, *provider.urls):
            monkeypatch.delenv(variable, raising=False)
    for variable in ('AWS_REGION', 'AWS_DEFAULT_REGION', 'AWS_PROFILE', 'AWS_SESSION_TOKEN'):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv('AWS_ACCESS_KEY_ID', 'AKIDEXAMPLE')
    monkeypatch.setenv('AWS_SECRET_ACCESS_KEY', 'secret')


@pytest.fixture
def server(no_keys: None) -> Iterator[ProtocolServer]:
    """A server on loopback."""
    with ProtocolServer() as running:
        yield running


@pytest.fixture(scope='module')
def real_weights() -> Path:
    """Of the smallest model that is installed, for tests that are marked so."""
    for name in ('qwen2.5-coder-0.5b', 'qwen2.5-coder-1.5b'):
        if path := store.installed(name):
            return path
    msg = 'install a model first: habilis models install'
    raise AssertionError(msg)
