"""stdin, stdout and stderr as every command can rely on them: there, able to take any text, and told apart when broken.

What is lost with stdout is the answer, so that ends the command. What is lost with stderr is only the view of it.
"""

import io
import os
import sys
from typing import Self, TextIO


class OutputLost(OSError):
    """stdout takes nothing more: it is closed, or its disk is full."""


def prepare_streams() -> None:
    """Make them so. A descriptor that is closed leads nowhere: the next file that is opened would take its number."""
    closed = [number for number in range(3) if _is_closed(number)]
    for number in closed:  # the lowest free number is the one that is taken
        os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY)
    if 0 in closed:
        sys.stdin = open(0, encoding='utf-8', closefd=False)  # noqa: SIM115 - it stays
    sys.stderr = _View.nowhere(2) if 2 in closed else _View.around(sys.stderr)
    sys.stdout = _Answer.nowhere(1) if 1 in closed else _Answer.around(sys.stdout)
    if 1 in closed:
        msg = 'stdout is closed, so there is nowhere to write to; `> /dev/null` throws away what is written'
        raise OutputLost(msg)


def lead_nowhere(stream: TextIO) -> None:
    """Throw away what is still buffered, or Python would complain about it when it exits, and what comes after it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _is_closed(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return True
    return False


class _Stream(io.TextIOWrapper):
    """What its encoding has no character for is written as an escape: a model, or a cell, may write anything."""

    @classmethod
    def nowhere(cls, number: int) -> Self:
        """One for a descriptor that leads nowhere."""
        return cls(open(number, 'wb', closefd=False), encoding='utf-8', errors='backslashreplace')

    @classmethod
    def around(cls, stream: TextIO) -> TextIO:
        """The same stream, as one of these."""
        stream.flush()
        return cls(
            stream.buffer,
            encoding=stream.encoding,
            errors='backslashreplace',
            line_buffering=bool(stream.line_buffering),
            write_through=bool(getattr(stream, 'write_through', False)),
        )

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError as error:
            self._broken(error)
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            self._broken(error)

    def _broken(self, error: OSError) -> None:
        raise NotImplementedError


class _View(_Stream):
    """stderr. Whoever looked on has left (`2>&1 | head`), or their disk is full: the work goes on unseen."""

    def _broken(self, error: OSError) -> None:
        lead_nowhere(self)


class _Answer(_Stream):
    """stdout. A reader who left (`| head`) has seen enough; all else has to be told."""

    def _broken(self, error: OSError) -> None:
        if isinstance(error, BrokenPipeError):
            raise error
        msg = f'cannot write to stdout: {error.strerror or error}'
        raise OutputLost(msg) from error
