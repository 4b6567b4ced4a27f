"""The real SDK of E2B against a local server that speaks its protocol. No live account is used."""

import importlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from habilis.core.errors import BackendNotFound, SandboxError
from habilis.core.limits import Limits
from habilis.sandbox import backends
from habilis.sandbox.cloud import backend as cloud_backend
from habilis.sandbox.cloud import e2b
from habilis.sandbox.cloud.e2b import E2bBackend
from habilis.sandbox.conformance import IsolationConformance, SandboxConformance
from habilis.sandbox.contract import Cell, GuestSpec
from habilis.sandbox.session_sync import SyncSandbox
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

    def run(self, code: str, **settings: Any) -> Cell:
        """Cells without settings share one sandbox: a machine takes a second."""
        if settings:
            return super().run(code, **settings)
        shared = getattr(TestE2b, 'shared', None) or SyncSandbox.create(BACKEND, limits=Limits(seconds=10))
        TestE2b.shared = shared  # type: ignore[attr-defined]
        return shared.run(code)

    @classmethod
    def teardown_class(cls) -> None:
        if shared := getattr(cls, 'shared', None):
            shared.close()


class TestE2bIsolation(IsolationConformance):
    backend = BACKEND
    has_processes = has_system = True


def test_a_machine_is_without_network_renewed_while_in_use_and_removed_with_its_sandbox(
    server: E2bServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloud_backend, 'RENEW_SECONDS', 0.05)
    backends.register('e2b-renewed', lambda: E2bBackend(image='mine'))
    try:
        with SyncSandbox.create('e2b-renewed') as sandbox:
            assert sandbox.run('import os\nos.getuid()').value == 65534
            [name] = server.sandboxes
            while name not in server.renewed:
                time.sleep(0.01)
    finally:
        backends.unregister('e2b-renewed')
    while server.sandboxes:
        time.sleep(0.01)
    made = server.created[-1]
    assert (made['templateID'], made['allow_internet_access'], made['timeout']) == ('mine', False, 600)


def test_a_machine_that_is_lost_fails_the_cell_and_the_next_one_has_the_variables(server: E2bServer) -> None:
    with SyncSandbox.create(BACKEND, tools=[_lose_all(server)]) as sandbox:
        sandbox.run('x = 1')
        cell = sandbox.run('lose_all()\nx = 2')
        assert cell.error is not None
        assert (cell.error.kind, 'was lost' in cell.error.message) == ('broken', True)
        assert sandbox.run('x').value == 1


def _lose_all(server: E2bServer) -> Callable[[], None]:
    def lose_all() -> None:
        server.lose_machines()

    return lose_all


@pytest.mark.parametrize(
    ('settings', 'message'),
    [
        ({'key': 'wrong'}, 'E2B refused: 401: Unauthorized, please check your credentials. - Invalid API key'),
        ({'image': 'missing'}, "E2B refused: 404: template 'missing' not found"),
    ],
)
def test_a_refusal_is_one_line(settings: dict[str, str], message: str) -> None:
    with pytest.raises(SandboxError) as raised:
        E2bBackend(**settings).start(GuestSpec())
    assert str(raised.value) == message


def test_a_machine_without_a_usable_python_is_named(server: E2bServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(e2b, 'COMMAND', 'exec no-such-python 2>&1')
    with pytest.raises(SandboxError, match=r'the machine at E2B cannot run the sandbox: .*no-such-python.* not found'):
        E2bBackend().start(GuestSpec())


def test_without_a_key_the_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv('E2B_API_KEY')
    with pytest.raises(BackendNotFound, match='E2B needs a key: set E2B_API_KEY, or pass key='):
        E2bBackend()


def test_without_the_sdk_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'e2b', None)
    monkeypatch.delitem(sys.modules, 'habilis.sandbox.cloud.e2b')
    with pytest.raises(ImportError, match=r'pip install "habilis\[e2b\]"'):
        importlib.import_module('habilis.sandbox.cloud.e2b')
