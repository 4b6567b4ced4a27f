"""What tests of this room share: a server that speaks every protocol, and no keys but theirs."""

from collections.abc import Iterator

import pytest

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
