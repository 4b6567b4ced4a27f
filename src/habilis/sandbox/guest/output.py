"""stdout and stderr of a cell, sent to the host while it runs."""

from __future__ import annotations

import io
import threading
import time

from habilis.sandbox.guest.bridge import Bridge, CellEnded

EAGER_WRITES = 1000
"""So many lines of a cell are sent at once, so that they are not lost when it is killed; later ones in blocks, or after
`SLOW_SECONDS` without one."""

SLOW_SECONDS = 0.1

BLOCK = 8192
LARGE = 1 << 20
"""Larger output is sent in parts, so that the output limit is reached before the memory limit."""


class HostStream(io.TextIOBase):
    """A text stream that is sent to the host, which ends the cell at the output limit."""

    def __init__(self, bridge: Bridge, code: str, name: str) -> None:
        self._bridge = bridge
        self._code = code
        self._name = name
        self.pending: list[str] = []
        self._size = 0
        self._lock = threading.Lock()
        self.writes = 0
        self._sent_at = 0.0

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Nominal: the transport encodes the text."""
        return 'utf-8'

    @property
    def errors(self) -> str:  # type: ignore[override]
        """What cannot be encoded is shown escaped."""
        return 'backslashreplace'

    @property
    def name(self) -> str:
        """As in an ordinary interpreter: `<stdout>` or `<stderr>`."""
        return self._name

    def writable(self) -> bool:
        """Always true."""
        return True

    def write(self, text: str, /) -> int:
        """Buffer text; the first lines are sent when they are complete."""
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            msg = f'write() argument must be str, not {type(text).__name__}'
            raise TypeError(msg)
        self.pending.append(text)
        self._size += len(text)
        if self._size >= BLOCK or ('\n' in text and (self.writes < EAGER_WRITES or self._is_slow())):
            self.flush()
        return len(text)

    def _is_slow(self) -> bool:
        return time.monotonic() - self._sent_at > SLOW_SECONDS

    def flush(self) -> None:
        """Send the buffer."""
        if self.pending:
            with self._lock:  # threads of a cell print, too
                count = len(self.pending)
                text = ''.join(self.pending[:count])
                del self.pending[:count]
            if not text.isascii():  # a lone surrogate cannot be sent; it is shown escaped
                text = text.encode('utf-8', 'backslashreplace').decode()
            self._size = 0
            self.writes += 1
            if self.writes >= EAGER_WRITES:  # before that nobody asks for it, and the clock is on the host
                self._sent_at = time.monotonic()
            for start in range(0, len(text), LARGE):
                self._bridge.write(self._code, text[start : start + LARGE])

    def finish(self) -> CellEnded | None:
        """Send the rest; the limit if the host ended the cell."""
        try:
            self.flush()
        except CellEnded as ended:
            return ended
        return None

    def close(self) -> None:
        """Flush only: a cell may close its stdout, and the next cell needs it."""
        self.flush()
