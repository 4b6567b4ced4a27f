"""The `e2b` backend: the only module that imports its SDK."""

import contextlib
from collections.abc import Iterator

from habilis.sandbox.cloud.backend import LIFETIME, CloudBackend
from habilis.sandbox.cloud.guest import COMMAND, CloudMachine
from habilis.sandbox.contract import GuestSpec

try:
    from e2b import Sandbox
    from e2b.exceptions import NotFoundException
except ImportError as error:
    msg = 'the SDK of E2B is missing: pip install "habilis[e2b]"'
    raise ImportError(msg) from error


class E2bBackend(CloudBackend):
    """Sandboxes of E2B. `image` is the name of a template."""

    cloud = 'E2B'
    variable = 'E2B_API_KEY'

    def __init__(self, image: str = '', key: str | None = None) -> None:
        super().__init__(image, key)

    def _create(self, spec: GuestSpec) -> CloudMachine:
        sandbox = Sandbox.create(self._image or None, LIFETIME, allow_internet_access=False, api_key=self._key)
        try:
            return _Machine(sandbox)
        except BaseException:
            sandbox.kill()
            raise


class _Machine:
    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._command = sandbox.commands.run(
            COMMAND, background=True, stdin=True, user='root', timeout=0, retain_output=False
        )

    def send(self, text: str) -> None:
        """Write to stdin."""
        self._command.send_stdin(text)

    def output(self) -> Iterator[str]:
        """What comes from stdout."""
        return (text for text, _, _ in self._command if text)

    def renew(self) -> None:
        """Extend the life of the sandbox."""
        self._sandbox.set_timeout(LIFETIME)

    def end(self) -> None:
        """Kill the sandbox."""
        with contextlib.suppress(NotFoundException):
            self._sandbox.kill()
