"""A guest of the service, whose session is on the client: the server's side of `sandbox/remote/wire.py`."""

import asyncio
import contextlib
import time
from pathlib import Path
from queue import SimpleQueue
from typing import Literal

from habilis.core.codec import CodecError, dump
from habilis.core.errors import WorkspaceError
from habilis.core.limits import Limits
from habilis.sandbox.contract import Backend, Guest, GuestDied, GuestSpec, Interrupted, Mount, Stream
from habilis.sandbox.remote import file_sync
from habilis.sandbox.remote.wire import MAX_WAITING, Channel, Frame
from habilis.sandbox.temporary_folders import temporary_folder
from habilis.sandbox.workers import WORKERS
from habilis.server.settings import ServiceSettings

TOLD = frozenset('oesk')
"""Messages whose reply is empty unless the cell must end: output, the start and the end of an asynchronous tool."""


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
        self._folders = [file_sync.SyncedFolder(mount.source, writable=mount.writable) for mount in self._mounts]
        self._guest: Guest | None = None
        self._host = _ClientSide(self)
        self._request: asyncio.Future[None] | None = None
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
            self._guest = await WORKERS.submit(lambda: self._backend.start(spec))
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
            self._request = WORKERS.submit(lambda: self._run(files, frame.body))
        else:
            msg = f'unexpected {frame.kind}'
            raise CodecError(msg)

    async def close(self) -> None:
        """End the guest, also in the middle of a request."""
        if self._closed:
            return
        self._closed = True
        self._host.stop()
        guest = self._guest
        if guest is not None:
            guest.interrupt()
            if self._request is not None:
                await asyncio.wait([self._request], timeout=10)
            if self._request is None or self._request.done():
                await WORKERS.submit(guest.close)
        self._remove_root()

    # On the thread of the guest ---------------------------------------------------------------------------------------

    def _run(self, files: list[str], message: str) -> None:
        kind, body = self._enter(files, message)
        self._host.ended()
        self.busy = False  # first: the client may send its next request as soon as it has the answer
        self.channel.send(kind, body)

    def _enter(self, files: list[str], message: str) -> tuple[Literal['answer', 'died'], str]:
        guest = self._guest
        assert guest is not None
        self._host.started()
        try:
            self.apply_files(files)
            answer = guest.enter(message, self._host)
            self.send_files()
        except GuestDied as death:
            with contextlib.suppress(WorkspaceError):
                self.send_files()
            return 'died', dump([death.kind, str(death)])
        except (CodecError, WorkspaceError) as error:
            guest.interrupt()
            return 'died', dump(['broken', str(error)])
        return 'answer', answer

    def apply_files(self, files: list[str]) -> None:
        """Make the changes that came before a frame."""
        for body in files:
            file_sync.apply(self._folders, body)

    def send_files(self) -> None:
        """Send what the guest has changed."""
        for body in file_sync.collect(self._folders, writable_only=True):
            self.channel.send('files', body)

    @property
    def output_bytes(self) -> int:
        """The output limit of a request."""
        return self._limits.output_bytes


class _ClientSide:
    """The client as the guest sees it: questions go over the network."""

    def __init__(self, hosted: HostedGuest) -> None:
        self._hosted = hosted
        self.replies: SimpleQueue[tuple[list[str], str] | None] = SimpleQueue()
        self._stopped = False
        self._printed = 0
        self._since: float | None = None
        """Since when the guest computes; None while it waits for the client."""

    def stop(self) -> None:
        """End the request. Thread-safe."""
        self._stopped = True
        self.replies.put(None)

    def started(self) -> None:
        """A request starts."""
        self._printed = 0
        self._since = time.monotonic()

    def ended(self) -> None:
        """A request has ended."""
        self._since = None

    def computing_seconds(self, now: float) -> float:
        """Seconds since the last message of the guest."""
        return 0.0 if self._since is None else now - self._since

    def answer(self, message: str) -> str:
        """Ask the client. What has an empty reply is told, and does not wait for it."""
        self.check()
        kind = message[:1]
        if kind in ('o', 'e'):
            self._printed += len(message.encode('utf-8', 'replace')) - 1
        if kind in TOLD and self._printed <= self._hosted.output_bytes and self._hosted.channel.has_room:
            if kind == 's':
                self._hosted.send_files()
            self._hosted.channel.send('tell', message)
            return ''
        self._hosted.send_files()
        self._since = None
        self._hosted.channel.send('ask', message)
        reply = self.replies.get()
        self._since = time.monotonic()
        if reply is None:
            raise Interrupted
        self._hosted.apply_files(reply[0])
        return reply[1]

    def write(self, stream: Stream, data: bytes) -> None:
        """Pass on output that bypassed the kernel. Too much of it ends the guest, as the client would."""
        self._printed += len(data)
        self._hosted.channel.send('output', dump([stream, data.decode('latin-1')]))
        if self._printed > self._hosted.output_bytes + MAX_WAITING:
            self._stopped = True

    def check(self) -> None:
        """Raise `Interrupted` if the request must end."""
        if self._stopped:
            raise Interrupted


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
