"""The real command in a process of its own, with pipes or with a terminal."""

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from codecs import getincrementaldecoder
from collections.abc import Generator, Mapping, Sequence

from tests.cli.nursery import NURSERY
from tests.cli.screen import Screen

COMMAND = (sys.executable, '-m', 'habilis')
ROWS = 50
PATIENCE = 180.0
"""Seconds; the first sandbox of a new version is built first."""

# Makes stdin the controlling terminal, so that ^C typed there becomes a signal.
_WITH_TERMINAL = (
    'import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])'
)


def habilis(
    *arguments: str,
    stdin: str | bytes = '',
    env: Mapping[str, str] | None = None,
    fresh: bool = False,
    program: str = '',
) -> subprocess.CompletedProcess[str]:
    """Run it to its end. `fresh`: by starting Python, as its users do. `program`: a file to run instead."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    wanted = environment(env)
    done = None if fresh else NURSERY.run(arguments, data, wanted, seconds=PATIENCE, program=program)
    if done is None:
        command = (sys.executable, program) if program else COMMAND
        done = subprocess.run(
            [*command, *arguments], input=data, capture_output=True, env=wanted, check=False, timeout=PATIENCE
        )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Ours, with warnings as errors as in every test, and lines that are not folded."""
    return {**os.environ, 'PYTHONWARNINGS': 'error', 'COLUMNS': '200', **(more or {})}


class Terminal:
    """A command on a terminal, and what it shows there."""

    def __init__(self, *arguments: str, command: Sequence[str] = COMMAND, columns: int = 200) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', ROWS, columns, 0, 0))
        env = environment({'TERM': 'xterm', 'NO_COLOR': '', 'COLUMNS': str(columns)})
        started = NURSERY.start(arguments, env, [slave] * 3, terminal=True) if command == COMMAND else None
        self.process = started or subprocess.Popen(
            [sys.executable, '-c', _WITH_TERMINAL, *command, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=env,
            start_new_session=True,
        )
        os.close(slave)
        self.shown = ''
        self._decoder = getincrementaldecoder('utf-8')('replace')
        self._screen = Screen(columns=columns, height=ROWS)
        self._unread = ''
        """What is not on the screen yet."""

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._master, text.encode())

    def wait_for(self, text: str, *, seconds: float = PATIENCE) -> str:
        """What is shown up to and with this text, from where the last wait ended."""
        end = time.monotonic() + seconds
        while text not in self.shown:
            if time.monotonic() > end or not self._read(end - time.monotonic()):
                msg = f'{text!r} did not appear; this did: {self.shown!r}'
                raise AssertionError(msg)
        before, _, self.shown = self.shown.partition(text)
        return before + text

    def _read(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the other side is closed
            return False
        text = self._decoder.decode(data)
        self._unread += text
        self.shown += text.replace('\r\n', '\n')
        return bool(data)

    def read_all(self) -> list[str]:
        """Read until it has closed the terminal. Returns the rows of the screen."""
        while self._read(PATIENCE):
            pass
        return self.rows

    @property
    def rows(self) -> list[str]:
        """The rows of the screen, also those that have scrolled away."""
        self._unread = self._screen.feed(self._unread)
        return self._screen.lines

    def wait_for_row(self, text: str, *, seconds: float = PATIENCE) -> None:
        """Wait until a row of the screen has this text."""
        end = time.monotonic() + seconds
        while not any(text in row for row in self.rows):
            if time.monotonic() > end or not self._read(end - time.monotonic()):
                raise AssertionError('\n'.join([f'{text!r} is in none of these rows:', *self.rows]))

    def exit_code(self) -> int:
        """How it has ended; waits for that."""
        return self.process.wait(timeout=PATIENCE)

    def close(self) -> None:
        """End it, however it is doing."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        os.close(self._master)


@contextlib.contextmanager
def on_terminal(*arguments: str, command: Sequence[str] = COMMAND, columns: int = 200) -> Generator[Terminal]:
    """Run it on a terminal, or another Python command."""
    terminal = Terminal(*arguments, command=command, columns=columns)
    try:
        yield terminal
    finally:
        terminal.close()
