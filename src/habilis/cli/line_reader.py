"""Lines from stdin, read in a way that can be stopped.

A thread that waits in `sys.stdin.readline` cannot be stopped, and holds a lock that Python wants when it exits. This
reads the file descriptor instead, and looks up now and then.
"""

import os
import select
import threading

PAUSE = 0.05
CHUNK = 65536


class Lines:
    """The lines of a file descriptor, one by one."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._buffer = b''
        self._ended = False

    def read(self, stop: threading.Event | None = None) -> str | None:
        """The next line without its end; None after the last one, or soon after `stop` was set."""
        while b'\n' not in self._buffer and not self._ended:
            if not self._wait(stop):
                return None
            self._fill()
        if not self._buffer:
            return None
        line, _, self._buffer = self._buffer.partition(b'\n')
        return line.removesuffix(b'\r').decode('utf-8', 'replace')

    def _wait(self, stop: threading.Event | None) -> bool:
        """Wait for something to read. False if told to stop."""
        if os.name != 'posix':  # elsewhere only sockets can be waited for
            return True
        while stop is None or not stop.is_set():
            if select.select([self._descriptor], [], [], PAUSE)[0]:
                return True
        return False

    def _fill(self) -> None:
        data = os.read(self._descriptor, CHUNK)
        self._buffer += data
        self._ended = not data
