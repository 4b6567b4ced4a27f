"""The `daytona` backend: the only module that imports its SDK."""

import asyncio
import contextlib
import os
import queue
import threading
from collections.abc import Iterator

from habilis.sandbox.cloud.backend import LIFETIME, CloudBackend
from habilis.sandbox.cloud.guest import COMMAND, WAITING, CloudMachine
from habilis.sandbox.contract import GuestSpec

try:
    from daytona import CreateSandboxFromSnapshotParams, Daytona, DaytonaConfig, Sandbox, SessionExecuteRequest
    from daytona.common.errors import DaytonaNotFoundError
except ImportError as error:
    msg = 'the SDK of Daytona is missing: pip install "habilis[daytona]"'
    raise ImportError(msg) from error

API_URL = 'https://app.daytona.io/api'
SESSION = 'habilis'


class DaytonaBackend(CloudBackend):
    """Sandboxes of Daytona. `image` is the name of a snapshot."""

    cloud = 'Daytona'
    variable = 'DAYTONA_API_KEY'

    def __init__(self, image: str = '', key: str | None = None) -> None:
        super().__init__(image, key)
        self._client: Daytona | None = None

    def _create(self, spec: GuestSpec) -> CloudMachine:
        if self._client is None:
            url = os.environ.get('DAYTONA_API_URL', API_URL)  # without it, the SDK reads a deprecated field of its own
            self._client = Daytona(DaytonaConfig(api_key=self._key, api_url=url))
        wanted = CreateSandboxFromSnapshotParams(
            snapshot=self._image or None,
            os_user='root',
            network_block_all=True,
            auto_stop_interval=LIFETIME // 60,
            auto_delete_interval=0,  # as soon as it has stopped
        )
        sandbox = self._client.create(wanted)
        try:
            return _Machine(sandbox)
        except BaseException:
            sandbox.delete()
            raise


class _Machine:
    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        sandbox.process.create_session(SESSION)
        # In a shell of its own: `exec` must not replace that of the session, which notes the end of the command.
        request = SessionExecuteRequest(command=f'({COMMAND})', run_async=True, suppress_input_echo=True)
        self._command = sandbox.process.execute_session_command(SESSION, request).cmd_id

    def send(self, text: str) -> None:
        """Write to stdin."""
        self._sandbox.process.send_session_command_input(SESSION, self._command, text)

    def output(self) -> Iterator[str]:
        """What comes from stdout. The SDK has it for coroutines only, so one runs on a thread."""
        received: queue.Queue[str | Exception | None] = queue.Queue(WAITING)

        def follow() -> None:
            process = self._sandbox.process
            try:
                asyncio.run(
                    process.get_session_command_logs_async(SESSION, self._command, received.put, lambda _: None)
                )
                received.put(None)
            except Exception as failed:
                received.put(failed)

        threading.Thread(target=follow, name='habilis-daytona', daemon=True).start()
        while (text := received.get()) is not None:
            if isinstance(text, Exception):
                raise text
            yield text

    def renew(self) -> None:
        """Extend the life of the sandbox."""
        self._sandbox.refresh_activity()

    def end(self) -> None:
        """Delete the sandbox."""
        with contextlib.suppress(DaytonaNotFoundError):
            self._sandbox.delete()
