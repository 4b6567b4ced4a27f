"""The real SDK of Daytona against a local server that speaks its protocol. No live account is used."""

import importlib
import sys
import time
from collections.abc import Iterator

import pytest

from habilis.core.errors import BackendNotFound, SandboxError
from habilis.sandbox import backends
from habilis.sandbox.cloud import backend as cloud_backend
from habilis.sandbox.cloud import daytona
from habilis.sandbox.cloud.daytona import DaytonaBackend
from habilis.sandbox.contract import GuestSpec
from habilis.sandbox.session import SyncSandbox
from tests.sandbox.cloud.daytona_server import KEY, DaytonaServer
from tests.sandbox.cloud.serving import serving
from tests.sandbox.cloud.shared_sandbox import SharedSandboxConformance, assert_a_lost_machine_is_replaced

BACKEND = 'daytona-test'


@pytest.fixture(autouse=True, scope='module')
def server() -> Iterator[DaytonaServer]:
    cloud = DaytonaServer()
    with serving(cloud.app) as url, pytest.MonkeyPatch.context() as patch:
        cloud.url = url
        patch.setenv('DAYTONA_API_URL', url)
        patch.setenv('DAYTONA_API_KEY', KEY)
        backends.register(BACKEND, DaytonaBackend)
        yield cloud
        backends.unregister(BACKEND)


class TestDaytona(SharedSandboxConformance):
    backend = BACKEND


def test_a_machine_is_without_network_renewed_while_in_use_and_removed_with_its_sandbox(
    server: DaytonaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloud_backend, 'RENEW_SECONDS', 0.05)
    backends.register('daytona-renewed', lambda: DaytonaBackend(image='mine'))
    try:
        with SyncSandbox.create('daytona-renewed') as sandbox:
            assert sandbox.run('import os\nos.getuid()').value == 65534
            [name] = server.commands
            while name not in server.renewed:
                time.sleep(0.01)
    finally:
        backends.unregister('daytona-renewed')
    while server.commands:
        time.sleep(0.01)
    made = server.created[-1]
    assert (made['snapshot'], made['user'], made['networkBlockAll']) == ('mine', 'root', True)
    assert (made['autoStopInterval'], made['autoDeleteInterval']) == (10, 0)


def test_a_machine_that_is_lost_fails_the_cell_and_the_next_one_has_the_variables(server: DaytonaServer) -> None:
    assert_a_lost_machine_is_replaced(BACKEND, server.lose_machines)


@pytest.mark.parametrize(
    ('settings', 'message'),
    [
        ({'key': 'wrong'}, 'Daytona refused: Failed to create sandbox: Invalid credentials'),
        ({'image': 'missing'}, 'Daytona refused: Failed to create sandbox: Snapshot missing not found'),
    ],
)
def test_a_refusal_is_one_line(settings: dict[str, str], message: str) -> None:
    with pytest.raises(SandboxError) as raised:
        DaytonaBackend(**settings).start(GuestSpec())
    assert str(raised.value) == message


def test_a_machine_without_a_usable_python_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daytona, 'COMMAND', 'exec no-such-python 2>&1')
    with pytest.raises(
        SandboxError, match=r'the machine at Daytona cannot run the sandbox: .*no-such-python.* not found'
    ):
        DaytonaBackend().start(GuestSpec())


def test_without_a_key_the_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv('DAYTONA_API_KEY')
    with pytest.raises(BackendNotFound, match='Daytona needs a key: set DAYTONA_API_KEY, or pass key='):
        DaytonaBackend()


def test_without_the_sdk_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'daytona', None)
    monkeypatch.delitem(sys.modules, 'habilis.sandbox.cloud.daytona')
    with pytest.raises(ImportError, match=r'pip install "habilis\[daytona\]"'):
        importlib.import_module('habilis.sandbox.cloud.daytona')
