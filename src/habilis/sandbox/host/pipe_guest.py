"""A guest in a process, reached through pipes: the transport of backends that start a process."""

import contextlib
import os
import select
from collections.abc import Callable
from typing import IO, Protocol

from habilis.core.errors import SandboxError
from habilis.sandbox.contract import ErrorKind, GuestDied, HostSide, Interrupted, Stream
from habilis.sandbox.host.line_guest import MAX_LINE, LineGuest

CHUNK = 1 << 16
START_SECONDS = 60.0
_SIGNALS = 128
"""Exit codes above this one stand for signals, where one process waits for another."""


class Process(Protocol):
    """The parts of `subprocess.Popen` that a guest needs."""

    @property
    def pid(self) -> int: ...
    @property
    def stdin(self) -> IO[bytes] | None: ...
    @property
    def stdout(self) -> IO[bytes] | None: ...
    @property
    def stderr(self) -> IO[bytes] | None: ...

    def wait(self) -> int: ...
    def kill(self) -> None: ...


class PipeGuest(LineGuest):
    """Talks to `python -m habilis.sandbox.guest` through stdin and stdout of a process.

    Output that bypasses the kernel comes from the process's stderr, and from `stdout`, a pipe of its own, where the
    backend has them.
    """

    def __init__(self, process: Process, *, stdout: int | None = None) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._in = process.stdin
        self._out = process.stdout
        self._line = bytearray()
        self._searched = 0
        self._streams: dict[int, Stream] = {}
        self._stdout = stdout
        if stdout is not None:
            self._streams[stdout] = 'stdout'
        if process.stderr is not None:
            self._streams[process.stderr.fileno()] = 'stderr'
        self._poll = select.poll()
        for descriptor in (self._out.fileno(), *self._streams):
            os.set_blocking(descriptor, False)
            self._poll.register(descriptor, select.POLLIN)
        self._reason: tuple[ErrorKind, str] | None = None
        self._end: Callable[[], object] | None = None
        self.running = False
        """Whether a request is running."""

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def enter(self, message: str, host: HostSide) -> str:
        """Send a request to the kernel, and reply to its messages until it answers."""
        self.running = True
        try:
            return self._exchange(message, host)
        except Interrupted:
            self.close()
            raise GuestDied('cancelled', 'interrupted') from None
        except GuestDied:
            self.close()  # here, because nobody else does it if the session has stopped waiting for this thread
            raise
        finally:
            self.running = False

    def _exchange(self, message: str, host: HostSide) -> str:
        try:
            answer = super()._exchange(message, host)
        except BrokenPipeError:
            raise self._death(host) from None
        self._pass_on(list(self._streams), host)
        return answer

    def read_line(self, seconds: float) -> bytes | None:
        """One line of its stdout before the first request; None at its end, or after a timeout."""
        poll = select.poll()
        poll.register(self._out.fileno(), select.POLLIN)
        while b'\n' not in self._line:
            if not poll.poll(seconds * 1000) or not self._read_more():
                return None
        line, _, rest = bytes(self._line).partition(b'\n')
        self._line, self._searched = bytearray(rest), 0
        return line

    def wait_until_ready(self) -> None:
        """Wait for the line `ready` of a new process. Raises `SandboxError` that says why it could not start."""
        if self.read_line(START_SECONDS) != b'ready':
            errors = self.read_errors().strip()
            self.close()
            msg = f'the sandbox could not start: {errors.splitlines()[-1] if errors else "it said nothing"}'
            raise SandboxError(msg)

    def read_errors(self) -> str:
        """What a process that could not start has written to its stderr."""
        self.interrupt()
        self._process.wait()
        if self._process.stderr is None:
            return ''
        os.set_blocking(self._process.stderr.fileno(), True)
        return self._process.stderr.read().decode(errors='replace')

    def _write(self, line: bytes) -> None:
        self._in.write(line)
        self._in.flush()

    def _next_line(self, host: HostSide) -> bytes:
        while (end := self._line.find(b'\n', self._searched)) < 0:
            self._searched = len(self._line)
            if self._searched > MAX_LINE:
                self.interrupt()
                raise GuestDied('broken', 'the sandbox sent a message that is too long')
            ready = [descriptor for descriptor, _ in self._poll.poll()]
            self._pass_on([descriptor for descriptor in ready if descriptor in self._streams], host)
            if self._out.fileno() in ready and not self._read_more():
                raise self._death(host)
        line = bytes(self._line[:end])
        del self._line[: end + 1]
        self._searched = 0
        return line

    def _read_more(self) -> bool:
        """Read what has arrived on the channel. False at its end."""
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._out.fileno(), CHUNK)
            self._line += data
            return bool(data)
        return True

    def _pass_on(self, descriptors: list[int], host: HostSide) -> None:
        """Pass output that bypassed the kernel to the host."""
        for descriptor in descriptors:
            with contextlib.suppress(BlockingIOError):
                while data := os.read(descriptor, CHUNK):
                    host.write(self._streams[descriptor], data)
                    host.check()
                with contextlib.suppress(KeyError):
                    self._poll.unregister(descriptor)  # closed inside

    def _death(self, host: HostSide) -> GuestDied:
        with contextlib.suppress(Interrupted):
            self._pass_on(list(self._streams), host)
        code = self._process.wait()
        if self._reason is not None:
            return GuestDied(*self._reason)
        if 0 < code <= _SIGNALS:
            return GuestDied('exit', f'the code ended the interpreter with exit code {code}')
        return GuestDied('broken', f'the interpreter ended (signal {code - _SIGNALS if code > 0 else -code})')

    def kill(self, kind: ErrorKind, reason: str) -> None:
        """Kill the process because of a limit; `enter` raises `GuestDied` with this reason. Thread-safe."""
        self._reason = self._reason or (kind, reason)
        self._process.kill()

    def on_close(self, call: Callable[[], object]) -> None:
        """Call this when the guest is closed."""
        self._end = call

    def interrupt(self) -> None:
        """Kill the process."""
        self._process.kill()

    def close(self) -> None:
        """Kill the process and free its pipes."""
        self._process.kill()
        self._process.wait()
        if self._end is not None:
            self._end()
        with contextlib.suppress(BrokenPipeError):  # unsent data may be left in its buffer
            self._in.close()
        self._out.close()
        if self._process.stderr is not None:
            self._process.stderr.close()
        if self._stdout is not None:
            os.close(self._stdout)
            self._stdout = None
