# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
"""Fixtures of the tests of E2B's protocol: the service, and a sandbox of it through the real SDK."""

from collections.abc import Iterator

import pytest
from e2b_code_interpreter import Sandbox

from habilis.server.settings import ServiceSettings
from tests.requirements import require_namespaces
from tests.server.e2b.serving import KEYS, Server
from tests.server.running import running


@pytest.fixture(scope='package')
def server() -> Iterator[Server]:
    require_namespaces()
    settings = ServiceSettings(port=0, keys=KEYS, e2b=True, sandboxes_per_key=5, body_bytes=4 << 20)
    with running(settings) as url:
        yield Server(url)


@pytest.fixture(scope='module')
def sandbox(server: Server) -> Iterator[Sandbox]:
    """A sandbox that the tests of a module share."""
    made = Sandbox.create(metadata={'who': 'tests'}, envs={'GIVEN': 'at start'}, **server.options())
    yield made
    made.kill()
