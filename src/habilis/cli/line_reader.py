"""Read lines from stdin in a way that can be stopped.

A thread blocked in `sys.stdin.readline` cannot be stopped, and holds a lock that Python needs at exit. This reads the
file descriptor instead and polls a stop event.
"""

import os
import select
import threading

STDIN = 0
POLL_SECONDS = 0.05
CHUNK_BYTES = 65536


class LineReader:
    """Lines of stdin."""

    def __init__(self) -> None:
        self._buffer = b''
        self._ended = False

    def read(self, stop: threading.Event | None = None) -> str | None:
        """The next line without its newline; None at the end of the file, or soon after `stop` is set."""
        while b'\n' not in self._buffer and not self._ended:
            if not self._wait(stop):
                return None
            self._fill()
        if not self._buffer:
            return None
        line, _, self._buffer = self._buffer.partition(b'\n')
        return line.removesuffix(b'\r').decode('utf-8', 'replace')

    def _wait(self, stop: threading.Event | None) -> bool:
        """Wait until the descriptor is readable. False if stopped."""
        if os.name != 'posix':  # select() works only on sockets there
            return True
        while stop is None or not stop.is_set():
            if select.select([STDIN], [], [], POLL_SECONDS)[0]:
                return True
        return False

    def _fill(self) -> None:
        data = os.read(STDIN, CHUNK_BYTES)
        self._buffer += data
        self._ended = not data
