"""The real SDK of Modal against a local server, which speaks the part of its protocol that is used."""

import contextlib
import importlib
import sys
import time
from collections.abc import Iterator

import pytest
from modal.client import Client

from habilis.core.errors import BackendNotFound, SandboxError
from habilis.sandbox import backends
from habilis.sandbox.cloud import backend as cloud_backend
from habilis.sandbox.cloud import modal
from habilis.sandbox.cloud.modal import ModalBackend
from habilis.sandbox.contract import GuestSpec
from habilis.sandbox.session import SyncSandbox
from tests.sandbox.cloud.modal_server import TOKEN, ModalServer
from tests.sandbox.cloud.shared_sandbox import SharedSandboxConformance, assert_a_lost_machine_is_replaced

BACKEND = 'modal-test'


@pytest.fixture(autouse=True, scope='module')
def server() -> Iterator[ModalServer]:
    cloud = ModalServer()
    with cloud.serving(), pytest.MonkeyPatch.context() as patch:
        patch.setenv('MODAL_SERVER_URL', cloud.url)
        patch.setenv('MODAL_TOKEN_ID', TOKEN[0])
        patch.setenv('MODAL_TOKEN_SECRET', TOKEN[1])
        # One of an earlier server, if this process comes back to these tests.
        Client.set_env_client(None)  # pyright: ignore[reportUnknownMemberType]
        backends.register(BACKEND, ModalBackend)
        yield cloud
        backends.unregister(BACKEND)


class TestModal(SharedSandboxConformance):
    backend = BACKEND


def test_a_machine_is_without_network_renewed_while_in_use_and_removed_with_its_sandbox(
    server: ModalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloud_backend, 'RENEW_SECONDS', 0.05)
    backends.register('modal-renewed', lambda: ModalBackend(image='mine:1', key=':'.join(TOKEN)))
    try:
        with SyncSandbox.create('modal-renewed') as sandbox:
            assert sandbox.run('import os\nos.getuid()').value == 65534
            [name] = server.sandboxes
            while name not in server.renewed:
                time.sleep(0.01)
    finally:
        backends.unregister('modal-renewed')
    while server.sandboxes:
        time.sleep(0.01)
    made = server.created[-1]
    assert (server.images[-1], made.timeout_secs) == ('FROM mine:1', 24 * 3600)
    assert made.network_access.network_access_type == made.network_access.BLOCKED


def test_a_machine_whose_process_has_died_ends_by_itself(server: ModalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modal, 'LIFETIME', 1)
    before = len(server.created)
    with contextlib.suppress(SandboxError):  # on a busy machine it ends before it has started
        ModalBackend().start(GuestSpec())
    assert len(server.created) > before
    while server.sandboxes:  # nothing renews it
        time.sleep(0.01)


def test_a_machine_that_is_lost_fails_the_cell_and_the_next_one_has_the_variables(server: ModalServer) -> None:
    assert_a_lost_machine_is_replaced(BACKEND, server.lose_machines)


@pytest.mark.parametrize(
    ('settings', 'message'),
    [
        (
            {'key': 'ak-1:as-1'},
            'Token ID is malformed; check MODAL_TOKEN_ID and MODAL_TOKEN_SECRET, or run `modal token new`',
        ),
        ({'image': 'missing'}, 'Image build for im-1 failed with the exception: manifest unknown'),
    ],
)
def test_a_refusal_is_one_line(settings: dict[str, str], message: str) -> None:
    with pytest.raises(SandboxError) as raised:
        ModalBackend(**settings).start(GuestSpec())
    assert str(raised.value) == f'Modal refused: {message}'


def test_a_quota_is_named(server: ModalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, 'full', True)
    with pytest.raises(SandboxError, match='Modal refused: Too many sandboxes; close other sandboxes, or raise the'):
        ModalBackend().start(GuestSpec())


def test_a_machine_without_a_usable_python_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modal, 'COMMAND', 'exec no-such-python 2>&1')
    with pytest.raises(
        SandboxError, match=r'the machine at Modal cannot run the sandbox: .*no-such-python.* not found'
    ):
        ModalBackend().start(GuestSpec())


def test_without_a_token_the_variables_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv('MODAL_TOKEN_ID')
    with pytest.raises(BackendNotFound, match='Modal needs a key: set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET, or pass'):
        ModalBackend()
    with pytest.raises(BackendNotFound, match='pass key="ak-…:as-…"'):
        ModalBackend(key='ak-1')


def test_without_the_sdk_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'modal', None)
    monkeypatch.delitem(sys.modules, 'habilis.sandbox.cloud.modal')
    with pytest.raises(ImportError, match=r'pip install "habilis\[modal\]"'):
        importlib.import_module('habilis.sandbox.cloud.modal')
