"""Runs shell commands inside the sandbox, where it has processes."""

import os
import signal
import subprocess
import threading
import time
from typing import IO

from habilis.core.codec import Json

DRAIN_SECONDS = 0.2
"""How long output is still read after the shell has ended: a background process may keep its pipe open."""


class BoundedOutput:
    """The first and the last bytes of a stream. Reads to its end, so that no process waits for a full pipe."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self._half = max(1, limit // 2)
        self._head, self._tail = bytearray(), bytearray()
        self._size = 0
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def _read(self, stream: IO[bytes]) -> None:
        while chunk := os.read(stream.fileno(), 1 << 16):
            self._size += len(chunk)
            room = self._half - len(self._head)
            self._head += chunk[:room]
            self._tail += chunk[room:]
            del self._tail[: -self._half]

    def text(self, end: float) -> str:
        """What came until this time (`time.monotonic`); says how much was left out in the middle."""
        self._thread.join(max(0.0, end - time.monotonic()))
        head, tail = bytes(self._head), bytes(self._tail)
        left_out = self._size - len(head) - len(tail)
        if left_out <= 0:
            return (head + tail).decode('utf-8', 'replace')
        note = f'\n[{left_out:,} of {self._size:,} bytes left out here]\n'
        return head.decode('utf-8', 'replace') + note + tail.decode('utf-8', 'replace')


def run_command(command: str, workdir: str, seconds: float, limit: int) -> dict[str, Json]:
    """Run a command with bash, or sh where there is none. Its process group is killed after so many seconds.

    Processes in the background go on, until the sandbox ends.
    """
    shell = '/bin/bash' if os.path.exists('/bin/bash') else '/bin/sh'
    try:
        process = subprocess.Popen(
            [shell, '-c', command],
            cwd=workdir,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = f'{error.filename}: {error.strerror}' if isinstance(error, OSError) else str(error)
        return {'exit_code': 126, 'stdout': '', 'stderr': f'{reason}\n', 'timed_out': False}
    assert process.stdout is not None
    assert process.stderr is not None
    output, errors = BoundedOutput(process.stdout, limit), BoundedOutput(process.stderr, limit)
    timed_out = False
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        timed_out = True
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    code, end = process.returncode, time.monotonic() + DRAIN_SECONDS
    return {
        'exit_code': 128 - code if code < 0 else code,
        'stdout': output.text(end),
        'stderr': errors.text(end),
        'timed_out': timed_out,
    }
