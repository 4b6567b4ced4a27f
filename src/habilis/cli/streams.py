"""Make stdin, stdout and stderr safe to use: open, able to encode any text, with defined behaviour when they break.

A broken stdout loses the answer, so it ends the command. A broken stderr only loses progress output.
"""

import io
import os
import stat
import sys
from typing import Never, Self, TextIO


class OutputLost(OSError):
    """stdout cannot be written: it is closed, or the disk is full."""


def say(text: str) -> None:
    """Print a message of the command to stderr."""
    print(f'habilis: {text}', file=sys.stderr, flush=True)


def write_bytes(data: bytes) -> None:
    """Write data to stdout as it is, such as a patch."""
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        _raise_lost(error)


def prepare_streams() -> None:
    """Replace closed descriptors by the null device, else the next opened file would take their number."""
    closed = [number for number in range(3) if _is_closed(number)]
    for number in closed:  # open() returns the lowest free descriptor
        os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY)
    if 0 in closed:
        sys.stdin = open(0, encoding='utf-8', closefd=False)  # noqa: SIM115 - stays open until exit
    sys.stderr = _Stderr.on_null_device(2) if 2 in closed else _Stderr.wrap(sys.stderr)
    sys.stdout = _Stdout.on_null_device(1) if 1 in closed else _Stdout.wrap(sys.stdout)
    if 1 in closed:
        msg = 'stdout is closed; redirect it to /dev/null to discard the output'
        raise OutputLost(msg)


def discard_output(stream: TextIO) -> None:
    """Redirect a stream to the null device, so that flushing its buffer at exit does not fail."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def _is_closed(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return True
    return False


class _EscapingStream(io.TextIOWrapper):
    """Writes characters its encoding lacks as escapes: a model or a cell may print anything."""

    @classmethod
    def on_null_device(cls, number: int) -> Self:
        """A stream for a descriptor that was opened on the null device."""
        return cls(open(number, 'wb', closefd=False), encoding='utf-8', errors='backslashreplace')

    @classmethod
    def wrap(cls, stream: TextIO) -> TextIO:
        """A stream with the buffer and encoding of another one."""
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
            self._handle_error(error)
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            self._handle_error(error)

    def _handle_error(self, error: OSError) -> None:
        raise NotImplementedError


class _Stderr(_EscapingStream):
    """If the reader is gone (`2>&1 | head`) or the disk is full, the command continues without stderr."""

    def _handle_error(self, error: OSError) -> None:
        discard_output(self)


class _Stdout(_EscapingStream):
    """A reader that is gone (`| head`) ends the command silently; other errors are reported."""

    def _handle_error(self, error: OSError) -> None:
        _raise_lost(error)


def _raise_lost(error: OSError) -> Never:
    if isinstance(error, BrokenPipeError):
        raise error
    msg = f'cannot write to stdout: {error.strerror or error}'
    raise OutputLost(msg) from error


def is_piped() -> bool:
    """Whether stdin is a pipe, a socket or a file. A terminal, `/dev/null` and a closed stdin bring no data."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)
