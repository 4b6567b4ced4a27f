"""The real SDK of E2B against our own server, which speaks its protocol. No live account is used."""

import importlib
import sys
import time
from collections.abc import Iterator

import pytest
from e2b import Sandbox as Machine

from habilis.core.errors import BackendNotFound, SandboxError
from habilis.sandbox import backends
from habilis.sandbox.cloud import backend as cloud_backend
from habilis.sandbox.cloud import e2b
from habilis.sandbox.cloud.e2b import E2bBackend
from habilis.sandbox.conformance.suite import IsolationConformance
from habilis.sandbox.contract import GuestSpec
from habilis.sandbox.session import SyncSandbox
from habilis.server.settings import ServiceSettings
from tests.sandbox.cloud.machines import MachineBackend
from tests.sandbox.cloud.shared_sandbox import SharedSandboxConformance, assert_a_lost_machine_is_replaced
from tests.server.running import running

BACKEND = 'e2b-test'
MACHINES = 'machines-of-e2b'
KEY = 'e2b_0123456789abcdef'


@pytest.fixture(autouse=True, scope='module')
def server() -> Iterator[str]:
    """`habilis serve sandboxes --e2b`, over machines with a user root, as those of E2B are."""
    backends.register(MACHINES, MachineBackend)
    settings = ServiceSettings(port=0, keys=(KEY,), backend=MACHINES, e2b=True, requests_per_second=5000)
    with running(settings) as url, pytest.MonkeyPatch.context() as patch:
        patch.setenv('E2B_API_URL', url)
        patch.setenv('E2B_SANDBOX_URL', url)
        patch.setenv('E2B_API_KEY', KEY)
        backends.register(BACKEND, E2bBackend)
        yield url
        backends.unregister(BACKEND)
    backends.unregister(MACHINES)


class TestE2b(SharedSandboxConformance):
    backend = BACKEND


class TestE2bIsolation(IsolationConformance):
    copies_files = True
    backend = BACKEND
    has_processes = has_system = True


def test_a_machine_is_renewed_while_in_use_and_removed_with_its_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloud_backend, 'RENEW_SECONDS', 0.05)
    backends.register('e2b-renewed', lambda: E2bBackend(image='base'))
    began = time.monotonic()
    try:
        with SyncSandbox.create('e2b-renewed') as sandbox:
            assert sandbox.run('import os\nos.getuid()').value == 65534
            [made] = Machine.list().next_items()
            assert made.template_id == 'base'
            lease = (made.end_at - made.started_at).total_seconds()
            assert 599 < lease <= 601 + time.monotonic() - began, 'more than 600 s only if it was renewed meanwhile'
            while Machine.get_info(made.sandbox_id).end_at <= made.end_at:
                time.sleep(0.01)
    finally:
        backends.unregister('e2b-renewed')
    while Machine.list().next_items():
        time.sleep(0.01)


def test_a_machine_that_is_lost_fails_the_cell_and_the_next_one_has_the_variables() -> None:
    assert_a_lost_machine_is_replaced(BACKEND, lose_all)


def lose_all() -> None:
    """End all machines, as a failure of the service would."""
    for machine in Machine.list().next_items():
        Machine.kill(machine.sandbox_id)


@pytest.mark.parametrize(
    ('settings', 'message'),
    [
        (
            {'key': 'wrong'},
            '401: Unauthorized, please check your credentials. - unknown key; set E2B_API_KEY',
        ),
        ({'image': 'missing'}, "404: there is no template 'missing': this server has one system; leave it out"),
    ],
)
def test_a_refusal_is_one_line(settings: dict[str, str], message: str) -> None:
    with pytest.raises(SandboxError) as raised:
        E2bBackend(**settings).start(GuestSpec())
    assert str(raised.value).startswith(f'E2B refused: {message}')
    assert '\n' not in str(raised.value)


def test_a_machine_without_a_usable_python_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
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
