"""The guest's side of the wire: runs requests of a client in a guest that is here. Used by the server and in clouds."""

import contextlib
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Literal

from habilis.core.codec import CodecError, dump
from habilis.core.errors import WorkspaceError
from habilis.sandbox.contract import Guest, GuestDied, Interrupted, Stream
from habilis.sandbox.remote import file_sync
from habilis.sandbox.remote.wire import MAX_WAITING, Kind

TOLD = frozenset('oeskl')
"""Messages whose reply is empty unless the cell must end: output, the start and the end of an asynchronous tool, and
which lines run."""


class ClientSide:
    """The client as the guest sees it: questions go over the wire."""

    def __init__(
        self,
        folders: Sequence[file_sync.SyncedFolder],
        output_bytes: int,
        send: Callable[[Kind, str], None],
        has_room: Callable[[], bool],
    ) -> None:
        self._folders = folders
        self._output_bytes = output_bytes
        self._send = send
        self._has_room = has_room
        self.replies: SimpleQueue[tuple[list[str], str] | None] = SimpleQueue()
        self._stopped = False
        self._printed = 0
        self._since: float | None = None
        """Since when the guest computes; None while it waits for the client."""

    def run(self, guest: Guest, files: list[str], message: str) -> tuple[Literal['answer', 'died'], str]:
        """Run a request of the client, which came with these changes of files. Returns the frame to send."""
        self._printed = 0
        self._since = time.monotonic()
        try:
            self._apply_files(files)
            answer = guest.enter(message, self)
            self._send_files()
        except GuestDied as death:
            with contextlib.suppress(WorkspaceError):
                self._send_files()
            return 'died', dump([death.kind, str(death)])
        except (CodecError, WorkspaceError) as error:
            guest.interrupt()
            return 'died', dump(['broken', str(error)])
        finally:
            self._since = None
        return 'answer', answer

    def stop(self) -> None:
        """End the request. Thread-safe."""
        self._stopped = True
        self.replies.put(None)

    def computing_seconds(self, now: float) -> float:
        """For how long the guest has not said anything."""
        since = self._since
        return 0.0 if since is None else now - since

    def answer(self, message: str) -> str:
        """Ask the client. What has an empty reply is told, and does not wait for it."""
        self.check()
        kind = message[:1]
        if kind in ('o', 'e'):
            self._printed += len(message.encode('utf-8', 'replace')) - 1
        if kind in TOLD and self._printed <= self._output_bytes and self._has_room():
            if kind == 's':
                self._send_files()
            self._send('tell', message)
            return ''
        self._send_files()
        self._since = None
        self._send('ask', message)
        reply = self.replies.get()
        self._since = time.monotonic()
        if reply is None:
            raise Interrupted
        self._apply_files(reply[0])
        return reply[1]

    def write(self, stream: Stream, data: bytes) -> None:
        """Pass on output that bypassed the kernel. Too much of it ends the guest, as the client would."""
        self._printed += len(data)
        self._send('output', dump([stream, data.decode('latin-1')]))
        if self._printed > self._output_bytes + MAX_WAITING:
            self._stopped = True

    def check(self) -> None:
        """Raise `Interrupted` if the request must end."""
        if self._stopped:
            raise Interrupted

    def _apply_files(self, files: list[str]) -> None:
        for body in files:
            file_sync.apply(self._folders, body)

    def _send_files(self) -> None:
        for body in file_sync.collect(self._folders, writable_only=True):
            self._send('files', body)
