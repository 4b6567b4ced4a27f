"""The shipped suite over the network: a server with the `wasm` backend, and its client."""

from collections.abc import Iterator

import pytest

from habilis.sandbox import backends
from habilis.sandbox.conformance.suite import IsolationConformance, SandboxConformance
from habilis.sandbox.remote.backend import RemoteBackend
from habilis.server.settings import ServiceSettings
from tests.server.running import running

KEY = 'a key for the tests'


@pytest.fixture(autouse=True, scope='module')
def _a_server_is_running() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    with running(ServiceSettings(port=0, keys=(KEY,))) as url:
        backends.register('remote-test', lambda: RemoteBackend(url, KEY))
        yield
        backends.unregister('remote-test')


class TestRemote(SandboxConformance):
    backend = 'remote-test'


class TestRemoteIsolation(IsolationConformance):
    copies_files = True
    backend = 'remote-test'
