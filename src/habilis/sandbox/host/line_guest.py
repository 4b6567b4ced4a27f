"""The exchange with a kernel through lines of JSON text, whatever carries them; see `guest/__main__.py`."""

import json

from habilis.core.codec import parse
from habilis.sandbox.contract import GuestDied, HostSide

MAX_LINE = 256 << 20


class LineGuest:
    """A guest that sends and receives lines. A transport implements the methods that raise `NotImplementedError`."""

    def interrupt(self) -> None:
        """End the guest at once."""
        raise NotImplementedError

    def _write(self, line: bytes) -> None:
        raise NotImplementedError

    def _next_line(self, host: HostSide) -> bytes:
        """The next line without its end. Raises `GuestDied` if there is none."""
        raise NotImplementedError

    def _exchange(self, message: str, host: HostSide) -> str:
        """Send a request, and reply to the messages of the kernel until it answers."""
        self._send(message)
        while True:
            kind, text = self._receive(host)
            if kind == 'a':
                return text
            self._send(host.answer(text))

    def _send(self, text: str) -> None:
        try:
            data = json.dumps(text, ensure_ascii=False).encode()
        except UnicodeEncodeError:  # half of a surrogate pair
            data = json.dumps(text).encode()
        self._write(data + b'\n')

    def _receive(self, host: HostSide) -> tuple[str, str]:
        line = self._next_line(host)
        try:
            kind, text = line[:1].decode(), parse(line[1:].decode().strip()) if line[1:2] == b'"' else None
        except ValueError:
            kind, text = '', None
        if kind not in ('a', 'q') or not isinstance(text, str):
            self.interrupt()
            raise GuestDied('broken', 'the sandbox sent a malformed message')
        return kind, text
