"""Lines from stdin, read in a way that can be stopped.

A thread that waits in `sys.stdin.readline` cannot be stopped, and holds a lock that Python wants when it exits. This
reads the file descriptor instead, and looks up now and then.
"""

import os
import select

PAUSE = 0.05
CHUNK = 65536


class Lines:
    """The lines of a file descriptor, one by one."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._buffer = b''
        self._ended = False
        self._stopped = False

    def read(self) -> str | None:
        """The next line without its end; None after the last one, or when `stop` was called meanwhile."""
        self._stopped = False
        while b'\n' not in self._buffer and not self._ended:
            if not self._wait():
                return None
            self._fill()
        if not self._buffer:
            return None
        line, _, self._buffer = self._buffer.partition(b'\n')
        return line.removesuffix(b'\r').decode('utf-8', 'replace')

    def stop(self) -> None:
        """Make a `read` in another thread return soon."""
        self._stopped = True

    def _wait(self) -> bool:
        """Wait for something to read. False if told to stop."""
        if os.name != 'posix':  # elsewhere only sockets can be waited for
            return True
        while not self._stopped:
            if select.select([self._descriptor], [], [], PAUSE)[0]:
                return True
        return False

    def _fill(self) -> None:
        data = os.read(self._descriptor, CHUNK)
        self._buffer += data
        self._ended = not data
