"""The client's side of a guest elsewhere: requests and files as frames, see `wire.py`. How they travel is open."""

from abc import ABC, abstractmethod
from typing import cast

from habilis.core.codec import CodecError, parse
from habilis.core.errors import WorkspaceError
from habilis.sandbox.contract import ErrorKind, GuestDied, GuestSpec, HostSide, Interrupted
from habilis.sandbox.remote import file_sync
from habilis.sandbox.remote.wire import Frame, Kind

_DEATHS = frozenset({'time', 'memory', 'output', 'cancelled', 'stack', 'exit', 'broken'})


class FramedGuest(ABC):
    """A guest that is reached by frames. Its folders are copied with every message."""

    def __init__(self, spec: GuestSpec) -> None:
        self._folders = [file_sync.SyncedFolder(mount.source, writable=mount.writable) for mount in spec.mounts]
        self._ending = ''

    @abstractmethod
    def _send(self, kind: Kind, body: str) -> None:
        """Send a frame."""

    @abstractmethod
    def _receive(self) -> Frame:
        """The next frame. Raises `GuestDied` if there will be none."""

    @abstractmethod
    def interrupt(self) -> None:
        """End the guest. Thread-safe."""

    def close(self) -> None:
        """End the guest."""
        self.interrupt()

    def enter(self, message: str, host: HostSide) -> str:
        """Send a request, and reply to messages of the kernel until it answers."""
        self._ending = ''
        try:
            self._send_with_files('enter', message)
            while True:
                frame = self._receive()
                if frame.kind == 'answer':
                    return frame.body
                self._handle(frame, host)
        except Interrupted:
            self.interrupt()
            raise GuestDied('cancelled', 'interrupted') from None
        except WorkspaceError as error:
            self.interrupt()
            raise GuestDied('broken', str(error)) from None
        except CodecError as error:
            self.interrupt()
            raise GuestDied('broken', f'the server sent a malformed message: {error}') from None

    def _handle(self, frame: Frame, host: HostSide) -> None:
        if frame.kind == 'ask':
            reply = self._ending or host.answer(frame.body)
            self._ending = ''
            self._send_with_files('reply', reply)
        elif frame.kind == 'tell':
            reply = host.answer(frame.body)
            if reply.startswith('!'):  # the cell must end; the guest hears it when it asks next
                self._ending = reply
        elif frame.kind == 'output':
            stream, text = _pair(frame.body)
            host.write('stderr' if stream == 'stderr' else 'stdout', text.encode('latin-1', 'replace'))
            host.check()
        elif frame.kind == 'files':
            file_sync.apply(self._folders, frame.body, writable_only=True)
        elif frame.kind == 'died':
            kind, reason = _pair(frame.body)
            raise GuestDied(cast('ErrorKind', kind if kind in _DEATHS else 'broken'), reason[:2000])
        else:
            msg = f'unexpected {frame.kind}'
            raise CodecError(msg)

    def _send_with_files(self, kind: Kind, body: str) -> None:
        for changes in file_sync.collect(self._folders):
            self._send('files', changes)
        self._send(kind, body)


def _pair(body: str) -> tuple[str, str]:
    match parse(body):
        case [str(first), str(second)]:
            return first, second
        case _:
            msg = 'malformed frame'
            raise CodecError(msg)
