"""The real SDK of E2B against a local server that speaks its protocol. No live account is used."""

from collections.abc import Iterator

import pytest

from habilis.sandbox import backends
from habilis.sandbox.cloud.e2b import E2bBackend
from habilis.sandbox.conformance import IsolationConformance, SandboxConformance
from tests.sandbox.cloud.e2b_server import KEY, E2bServer
from tests.sandbox.cloud.serving import serving

BACKEND = 'e2b-test'


@pytest.fixture(autouse=True, scope='module')
def server() -> Iterator[E2bServer]:
    cloud = E2bServer()
    with serving(cloud.app) as url, pytest.MonkeyPatch.context() as patch:
        patch.setenv('E2B_API_URL', url)
        patch.setenv('E2B_SANDBOX_URL', url)
        patch.setenv('E2B_API_KEY', KEY)
        backends.register(BACKEND, E2bBackend)
        yield cloud
        backends.unregister(BACKEND)


class TestE2b(SandboxConformance):
    backend = BACKEND


class TestE2bIsolation(IsolationConformance):
    backend = BACKEND
    has_processes = has_system = True
