"""A guest in a container, reached through the engine's stream."""

import contextlib
import socket
import threading
from collections.abc import Callable

from habilis.sandbox.contract import GuestDied, HostSide, Interrupted
from habilis.sandbox.docker.engine import DockerEngine
from habilis.sandbox.docker.first_process import OUT_OF_MEMORY
from habilis.sandbox.host.line_guest import MAX_LINE, LineGuest

MARK = b'\0end of output\0'
"""What the guest writes to stderr before each answer. Only code that wants to confuse its own output writes it, too."""

CHUNK = 1 << 16
HEADER = 8
STDERR = 2


class DockerGuest(LineGuest):
    """Talks to the guest through stdin and stdout of its container."""

    def __init__(self, engine: DockerEngine, container: str, remove: Callable[[str], None]) -> None:
        self.container = container
        self._engine = engine
        self._remove = remove
        self._stopped = threading.Event()
        self._socket, self._close_stream = engine.attach(container)
        self._input = bytearray()
        self._lines = bytearray()
        self._output = b''
        self._marks = 0

    def enter(self, message: str, host: HostSide) -> str:
        """Send a request to the kernel, and reply to its messages until it answers."""
        try:
            return self._exchange(message, host)
        except Interrupted:
            self.interrupt()
            raise GuestDied('cancelled', 'interrupted') from None
        except OSError:
            raise self._death() from None

    def _write(self, line: bytes) -> None:
        self._socket.sendall(line)

    def _next_line(self, host: HostSide) -> bytes:
        """The next line of stdout. The output of a request is complete before its answer."""
        searched = 0
        while (end := self._lines.find(b'\n', searched)) < 0:
            searched = len(self._lines)
            if searched > MAX_LINE:
                self.interrupt()
                raise GuestDied('broken', 'the sandbox sent a message that is too long')
            if not self._read(host):
                raise self._death()
        line = bytes(self._lines[:end])
        del self._lines[: end + 1]
        while line[:1] == b'a' and not self._marks:  # the engine reads the two streams independently
            if not self._read(host):
                raise self._death()
        self._marks -= line[:1] == b'a'
        return line

    def _read(self, host: HostSide) -> bool:
        """Read one frame. False at the end."""
        stream, data = self._frame()
        if stream == STDERR:
            self._take_output(data, host)
        else:
            self._lines += data
        return bool(data)

    def _take_output(self, data: bytes, host: HostSide) -> None:
        """Pass on what bypassed the kernel, such as the output of another process."""
        *parts, rest = (self._output + data).split(MARK)
        self._marks += len(parts)
        kept = next((size for size in range(len(MARK) - 1, 0, -1) if rest.endswith(MARK[:size])), 0)
        self._output = rest[len(rest) - kept :]
        if output := b''.join([*parts, rest[: len(rest) - kept]]):
            host.write('stdout', output)
            host.check()

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

    def _death(self) -> GuestDied:
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
        """End the container with all its processes; it is removed in the background."""
        self.interrupt()
        self._engine.exit_code(self.container)
        self._close_stream()
