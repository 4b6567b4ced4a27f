"""The `modal` backend: the only module that imports its SDK."""

import contextlib
from collections.abc import Generator, Iterator

from habilis.core.errors import BackendNotFound, SandboxError
from habilis.sandbox.cloud.backend import LIFETIME, CloudBackend
from habilis.sandbox.cloud.guest import COMMAND, CloudMachine
from habilis.sandbox.contract import GuestSpec

try:
    from modal import App, Client, Image, Sandbox
    from modal.config import config
    from modal.exception import AuthError, Error, NotFoundError, ResourceExhaustedError
except ImportError as error:
    msg = 'the SDK of Modal is missing: pip install "habilis[modal]"'
    raise ImportError(msg) from error

APP = 'habilis'
LONGEST_LIFE = 24 * 60 * 60
"""Seconds. The most that Modal allows; it is fixed when a sandbox is created."""

CHUNK = 1 << 20
"""Characters per request. The SDK refuses to buffer more than 16 MB."""

_WATCH = 'import os, select\nwhile select.select([0], [], [], {seconds})[0] and os.read(0, 4096): pass'
"""Main command of a sandbox, which ends with it: waits until nobody has written to its stdin for some time.

A running `exec` counts as activity for the `idle_timeout` of Modal, so that would not notice that our process has died.
"""
_MAIN = 'python3 -c "$0" || sleep 60'
"""Without Python the sandbox stays long enough for our own command to say so."""


class ModalBackend(CloudBackend):
    """Sandboxes of Modal. `image` is the name of an image in a registry, `key` a token's id and secret: `ak-…:as-…`."""

    cloud = 'Modal'
    variable = 'MODAL_TOKEN_ID and MODAL_TOKEN_SECRET'

    def __init__(self, image: str = '', key: str | None = None) -> None:
        if key and ':' not in key:
            msg = 'the key of Modal is the id and the secret of a token: pass key="ak-…:as-…"'
            raise BackendNotFound(msg)
        super().__init__(image, key)
        self._app: App | None = None
        self._built = Image.from_registry(image) if image else Image.debian_slim()  # pyright: ignore[reportUnknownMemberType]

    def _has_key(self) -> bool:
        return bool(config.get('token_id') and config.get('token_secret'))  # `modal token new` stores them in a file

    def _create(self, spec: GuestSpec) -> CloudMachine:
        with _advised():
            if self._app is None:
                client = Client.from_credentials(*self._key.split(':', 1)) if self._key else Client.from_env()
                self._app = App.lookup(APP, client=client, create_if_missing=True)
            main = ('sh', '-c', _MAIN, _WATCH.format(seconds=LIFETIME))
            sandbox = Sandbox.create(*main, app=self._app, image=self._built, timeout=LONGEST_LIFE, block_network=True)
            try:
                return _Machine(sandbox)
            except BaseException:
                sandbox.terminate()
                raise


@contextlib.contextmanager
def _advised() -> Generator[None]:
    """Raise errors of the SDK, which may have several lines, as one line that says what to do."""
    try:
        yield
    except Error as failed:
        said = ' '.join(str(failed).split())[:300] or type(failed).__name__
        if isinstance(failed, AuthError):
            said += '; check MODAL_TOKEN_ID and MODAL_TOKEN_SECRET, or run `modal token new`'
        elif isinstance(failed, ResourceExhaustedError):
            said += '; close other sandboxes, or raise the limits of your workspace'
        msg = f'Modal refused: {said}'
        raise SandboxError(msg) from failed


class _Machine:
    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        # Not the main command: of that one's output Modal keeps only the end.
        self._command = sandbox.exec('sh', '-c', COMMAND)

    def send(self, text: str) -> None:
        """Write to stdin."""
        for start in range(0, len(text), CHUNK):
            self._command.stdin.write(text[start : start + CHUNK])
            self._command.stdin.drain()

    def output(self) -> Iterator[str]:
        """What comes from stdout."""
        return iter(self._command.stdout)

    def renew(self) -> None:
        """Extend the life of the sandbox."""
        self._sandbox.stdin.write('\n')
        self._sandbox.stdin.drain()

    def end(self) -> None:
        """Terminate the sandbox."""
        with contextlib.suppress(NotFoundError):
            self._sandbox.terminate()
        self._sandbox.detach()
