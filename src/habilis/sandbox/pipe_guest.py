"""Guests that are reached by lines of text: the transport of backends that start a process."""

import contextlib
import json
import subprocess

from habilis.core.codec import parse
from habilis.sandbox.contract import GuestDied, HostSide, Interrupted

MAX_LINE = 256 << 20


class LineGuest:
    """Talks to `python -m habilis.sandbox.guest`; a subclass moves the lines."""

    def write_line(self, line: bytes) -> None:
        """Send a line. Raises `BrokenPipeError` if the guest has ended."""
        raise NotImplementedError

    def read_line(self, host: HostSide) -> bytes:
        """The next line; empty if the guest has ended."""
        raise NotImplementedError

    def death(self) -> GuestDied:
        """Why the guest has ended."""
        raise NotImplementedError

    def interrupt(self) -> None:
        """End the guest. Thread-safe."""
        raise NotImplementedError

    def enter(self, message: str, host: HostSide) -> str:
        """Send a request to the kernel, and reply to its messages until it answers."""
        try:
            self._send(message)
            while True:
                kind, text = self._receive(host)
                if kind == 'a':
                    return text
                self._send(host.answer(text))
        except Interrupted:
            self.interrupt()
            raise GuestDied('cancelled', 'interrupted') from None
        except BrokenPipeError:
            raise self.death() from None

    def _send(self, text: str) -> None:
        self.write_line(json.dumps(text).encode() + b'\n')

    def _receive(self, host: HostSide) -> tuple[str, str]:
        line = self.read_line(host)
        if not line:
            raise self.death()
        try:
            kind, text = line[:1].decode(), parse(line[1:].decode().strip()) if line[1:2] == b'"' else None
        except ValueError:
            kind, text = '', None
        if kind not in ('a', 'q') or not isinstance(text, str):
            self.interrupt()
            raise GuestDied('broken', 'the sandbox sent a malformed message')
        return kind, text


class PipeGuest(LineGuest):
    """A guest in a process of this machine, reached through its stdin and stdout."""

    def __init__(self, process: 'subprocess.Popen[bytes]') -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._in = process.stdin
        self._out = process.stdout

    def write_line(self, line: bytes) -> None:
        """Write to stdin of the process."""
        self._in.write(line)
        self._in.flush()

    def read_line(self, host: HostSide) -> bytes:
        """Read from stdout of the process."""
        return self._out.readline(MAX_LINE)

    def death(self) -> GuestDied:
        """By the exit code of the process."""
        code = self._process.wait()
        if code > 0:
            return GuestDied('exit', f'the code ended the interpreter with exit code {code}')
        return GuestDied('broken', f'the interpreter ended (signal {-code})')

    def interrupt(self) -> None:
        """Kill the process."""
        self._process.kill()

    def close(self) -> None:
        """Kill the process and free its pipes."""
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(BrokenPipeError):  # unsent data may be left in its buffer
            self._in.close()
        self._out.close()
