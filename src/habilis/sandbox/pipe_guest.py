"""A guest in a process, reached through pipes: the transport of backends that start a process."""

import contextlib
import json
import subprocess

from habilis.core.codec import parse
from habilis.sandbox.contract import GuestDied, HostSide, Interrupted

MAX_LINE = 256 << 20


class PipeGuest:
    """Talks to `python -m habilis.sandbox.guest` through stdin and stdout of a process."""

    def __init__(self, process: 'subprocess.Popen[bytes]') -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._in = process.stdin
        self._out = process.stdout

    def enter(self, message: str, host: HostSide) -> str:
        """Send a request to the kernel, and reply to its messages until it answers."""
        try:
            self._send(message)
            while True:
                kind, text = self._receive()
                if kind == 'a':
                    return text
                self._send(host.answer(text))
        except Interrupted:
            self.interrupt()
            raise GuestDied('cancelled', 'interrupted') from None
        except BrokenPipeError:
            raise self._death() from None

    def _send(self, text: str) -> None:
        self._in.write(json.dumps(text).encode() + b'\n')
        self._in.flush()

    def _receive(self) -> tuple[str, str]:
        line = self._out.readline(MAX_LINE)
        if not line:
            raise self._death()
        try:
            kind, text = line[:1].decode(), parse(line[1:].decode().strip()) if line[1:2] == b'"' else None
        except ValueError:
            kind, text = '', None
        if kind not in ('a', 'q') or not isinstance(text, str):
            self.interrupt()
            raise GuestDied('broken', 'the sandbox sent a malformed message')
        return kind, text

    def _death(self) -> GuestDied:
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
