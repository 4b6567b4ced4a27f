"""A guest of the service, whose session is on the client: the server's side of `sandbox/remote/wire.py`."""

import time
from pathlib import Path

from habilis.core.codec import CodecError
from habilis.core.limits import Limits
from habilis.sandbox.contract import Backend, Guest, GuestSpec, Mount
from habilis.sandbox.files.temporary_folders import temporary_folder
from habilis.sandbox.host.interpreter import start_guest
from habilis.sandbox.host.workers import WORKERS, WorkerCall
from habilis.sandbox.remote import file_sync
from habilis.sandbox.remote.hosting import ClientSide
from habilis.sandbox.remote.wire import Channel, Frame
from habilis.server.settings import ServiceSettings


class HostedGuest:
    """Runs the requests of one client in one guest. It outlives the connection."""

    kind = 'guest'

    def __init__(
        self, backend: Backend, limits: Limits, mounts: list[tuple[str, bool]], settings: ServiceSettings
    ) -> None:
        self.created = time.time()
        self.channel = Channel()
        self.isolation = ''
        self._settings = settings
        self._backend = backend
        self._limits = limits
        self._root, self._remove_root = temporary_folder()
        self._mounts = tuple(
            Mount(source=_made(self._root / str(number)), target=target, writable=writable)
            for number, (target, writable) in enumerate(mounts)
        )
        folders = [file_sync.SyncedFolder(mount.source, writable=mount.writable) for mount in self._mounts]
        self._guest: Guest | None = None
        self._host = ClientSide(folders, limits.output_bytes, self.channel.send, lambda: self.channel.has_room)
        self._request: WorkerCall[None] | None = None
        self.busy = False
        self._files: list[str] = []
        self._closed = False
        self._used = time.monotonic()
        self.connections = 0
        """How many connections it has had; an older one has no say."""

        self.connected = True

    async def start(self) -> None:
        """Start the guest. Raises `SandboxError`."""
        spec = GuestSpec(limits=self._limits, mounts=self._mounts)
        try:
            self._guest = await start_guest(self._backend, spec)
        except BaseException:
            self._remove_root()
            raise
        self.isolation = self._backend.isolation

    def is_expired(self, now: float) -> bool:
        """Whether the client is gone, or does nothing, or its cell computes without end."""
        idle = now - self._used
        if not self.connected:
            return idle > self._settings.resume_seconds
        if self.busy:
            return self._host.computing_seconds(now) > self._settings.limits.seconds
        return idle > self._settings.idle_seconds

    def touch(self) -> None:
        """Record activity of the client."""
        self._used = time.monotonic()

    def take(self, frame: Frame) -> None:
        """Handle a frame of the client, on the event loop. Raises `CodecError` if it is not valid."""
        if not self.channel.receive(frame):
            return
        if frame.kind == 'files':
            self._files.append(frame.body)
        elif frame.kind == 'reply' and self.busy:
            files, self._files = self._files, []
            self._host.replies.put((files, frame.body))
        elif frame.kind == 'enter' and not self.busy:
            files, self._files = self._files, []
            self.busy = True
            self._request = WORKERS.start(lambda: self._run(files, frame.body))
        else:
            msg = f'unexpected {frame.kind}'
            raise CodecError(msg)

    async def close(self) -> None:
        """End the guest, also in the middle of a request."""
        if self._closed:
            return
        self._closed = True
        self._host.stop()
        if self._guest is not None:
            self._guest.interrupt()
        if self._request is None:
            await WORKERS.submit(self._free)
        else:
            await self._request.finish(self._free, 10)

    # On the thread of the guest ---------------------------------------------------------------------------------------

    def _free(self) -> None:
        if self._guest is not None:
            self._guest.close()
        self._remove_root()

    def _run(self, files: list[str], message: str) -> None:
        assert self._guest is not None
        kind, body = self._host.run(self._guest, files, message)
        self.busy = False  # first: the client may send its next request as soon as it has the answer
        self.channel.send(kind, body)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
