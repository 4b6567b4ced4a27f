"""A guest in a container, reached through the engine's stream."""

import contextlib
import socket
import threading
from collections.abc import Callable

from habilis.sandbox.contract import GuestDied, HostSide, Stream
from habilis.sandbox.docker.engine import Engine
from habilis.sandbox.docker.first_process import OUT_OF_MEMORY
from habilis.sandbox.pipe_guest import MAX_LINE, LineGuest

CHUNK = 1 << 16
HEADER = 8
STDERR = 2


class DockerGuest(LineGuest):
    """Talks to the guest through stdin and stdout of its container."""

    def __init__(self, engine: Engine, container: str, remove: Callable[[str], None]) -> None:
        self.container = container
        self._engine = engine
        self._remove = remove
        self._stopped = threading.Event()
        self._socket, self._close_stream = engine.attach(container)
        self._input = bytearray()
        self._lines = bytearray()

    def write_line(self, line: bytes) -> None:
        """Send a line to stdin of the container."""
        try:
            self._socket.sendall(line)
        except OSError:
            raise BrokenPipeError from None

    def read_line(self, host: HostSide) -> bytes:
        """The next line of stdout. What arrives on stderr bypassed the kernel, and is output."""
        searched = 0
        while (end := self._lines.find(b'\n', searched)) < 0:
            searched = len(self._lines)
            stream, data = self._frame()
            if not data or searched > MAX_LINE:
                return b''
            if stream == STDERR:
                host.write('stderr', data)
                host.check()
            else:
                self._lines += data
        line = bytes(self._lines[: end + 1])
        del self._lines[: end + 1]
        return line

    def _frame(self) -> tuple[int, bytes]:
        """One frame of the engine: the number of the stream, and data; empty at the end."""
        header = self._exactly(HEADER)
        size = int.from_bytes(header[4:], 'big')
        return (header[0], self._exactly(size)) if header and size <= MAX_LINE else (0, b'')

    def _exactly(self, size: int) -> bytes:
        while len(self._input) < size:
            try:
                data = self._socket.recv(CHUNK)
            except OSError:
                data = b''
            if not data:
                return b''
            self._input += data
        taken = bytes(self._input[:size])
        del self._input[:size]
        return taken

    def death(self) -> GuestDied:
        """Why the container has ended."""
        if self._stopped.is_set():
            return GuestDied('cancelled', 'interrupted')
        code = self._engine.exit_code(self.container)
        if code == OUT_OF_MEMORY:
            return GuestDied('memory', 'the memory limit of the container was reached')
        if code is None or code > 128:
            return GuestDied('broken', f'the interpreter ended (signal {(code or 128) - 128})')
        return GuestDied('exit', f'the code ended the interpreter with exit code {code}')

    def interrupt(self) -> None:
        """Cut the connection at once; the container is killed in the background."""
        if not self._stopped.is_set():
            self._stopped.set()
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._remove(self.container)

    def close(self) -> None:
        """Remove the container, in the background."""
        self.interrupt()
        self._close_stream()


class SilentHost:
    """The host of a guest that no session has yet."""

    def answer(self, message: str) -> str:
        """Nothing is known to it."""
        return ''

    def write(self, stream: Stream, data: bytes) -> None:
        """Drop it."""

    def check(self) -> None:
        """Never interrupts."""

