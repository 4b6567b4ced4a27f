"""A live line at the bottom of a terminal: what happens now, and for how many seconds; above it, unfinished text.

A thread draws it, so that it moves while the program is busy. What is printed meanwhile scrolls past above it. It
imports only the standard library, because a command shows it before it imports anything else.
"""

import builtins
import contextlib
import os
import re
import sys
import threading
import time
import unicodedata
from collections.abc import Callable, Generator, Sequence
from typing import Any, ClassVar, TextIO

TICK = 0.1
"""Seconds between two pictures."""

MAX_PREVIEW_ROWS = 8
OFF_VALUES = frozenset({'0', 'off', 'false', 'no'})
FRAMES = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏'
ASCII_FRAMES = '|/-\\'
_STYLE = re.compile('\x1b\\[[0-9;]*m')

Preview = Callable[[int], Sequence[str]]
"""The rows of unfinished text for a width. May hold colours, no other control characters."""


def can_show(stream: TextIO) -> bool:
    """Whether a live line can be drawn on this stream, and `HABILIS_STATUS` does not forbid it."""
    if os.environ.get('HABILIS_STATUS', '').lower() in OFF_VALUES or not stream.isatty():
        return False
    if os.name == 'nt' and not os.environ.get('WT_SESSION'):  # the old console shows control sequences as text
        return False
    return os.environ.get('TERM', 'dumb' if os.name == 'posix' else '') not in ('dumb', 'unknown')


class StatusLine:
    """The live line of this process. Without a suitable terminal its methods do nothing."""

    current: ClassVar['StatusLine | None'] = None

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._phase = ''
        self._preview: Preview | None = None
        self._began = time.monotonic()
        self._frame = 0
        self._drawn: list[int] = []
        """Cells of each row on the screen."""

        self._is_line_open = False
        self._pauses = 0
        self._restore: list[Callable[[], None]] = []
        self.is_live = False
        """Whether it is shown."""

    # Life -------------------------------------------------------------------------------------------------------------

    def start(self, phase: str) -> bool:
        """Show it. False if there is no suitable terminal, or another live line."""
        self._phase = phase
        if self.is_live or StatusLine.current is not None or not can_show(self._stream):
            return False
        try:
            self._terminal = self._stream.fileno()
            for stream in {sys.stdout, sys.stderr, self._stream}:
                if stream.isatty():
                    self._watch(stream)
        except (AttributeError, OSError, ValueError):  # a stream of a notebook or an editor
            self._unwatch()
            return False
        self._watch_input()
        self._echo = _reads_lines(self._terminal)
        self._frames = FRAMES if 'utf' in (self._stream.encoding or '').lower() else ASCII_FRAMES
        StatusLine.current = self
        self.is_live = True
        self._began = time.monotonic()
        self._draw()
        threading.Thread(target=self._animate, name='habilis-status', daemon=True).start()
        return True

    def stop(self) -> None:
        """Remove it from the screen."""
        with self._lock:
            if not self.is_live:
                return
            self._erase()
            self._put('\n' if self._is_line_open else '')
            self.is_live = False
            self._ended.set()
            self._unwatch()
            StatusLine.current = None

    @contextlib.contextmanager
    def paused(self) -> Generator[None]:
        """Leave the terminal to somebody else, such as a question to the user."""
        with self._lock:
            self._erase()
            self._pauses += 1
        try:
            yield
        finally:
            with self._lock:
                self._pauses -= 1
                self._is_line_open = False  # the user has pressed Enter

    # Content ----------------------------------------------------------------------------------------------------------

    def set_phase(self, phase: str) -> None:
        """What happens now."""
        self._phase = phase

    @contextlib.contextmanager
    def phase(self, phase: str) -> Generator[None]:
        """What happens inside the block; afterwards it is what it was before."""
        before, self._phase = self._phase, phase
        try:
            yield
        finally:
            self._phase = before if self._phase == phase else self._phase

    def set_preview(self, preview: Preview | None) -> None:
        """Unfinished text, shown above the line until it is printed."""
        self._preview = preview

    def say(self, text: str) -> None:
        """Print a line above it, also from a signal handler."""
        with self._lock:
            is_open, self._is_line_open = self._is_line_open, False
            self._erase()
            self._put(f'\n{text}\n' if is_open else f'{text}\n')
            self._draw()

    # Drawing ----------------------------------------------------------------------------------------------------------

    def _animate(self) -> None:
        while not self._ended.wait(TICK):
            self._frame += 1
            self._draw()

    def _draw(self) -> None:
        with self._lock:
            if not self.is_live or self._pauses or self._is_line_open or not self._is_ours():
                return
            rows = self._rows()
            self._put(self._erasure() + '\n'.join(rows))
            self._drawn = [_cells(_STYLE.sub('', row)) for row in rows]

    def _rows(self) -> list[str]:
        width, height = _size(self._terminal)
        width = max(1, width - 1)  # a cursor behind the last column would wrap
        seconds = f' · {time.monotonic() - self._began:.0f} s'
        line = f'{self._frames[self._frame % len(self._frames)]} {_fit(self._phase, width - len(seconds) - 2)}{seconds}'
        line = _fit(line, width)
        status = line if os.environ.get('NO_COLOR') else f'\033[2m{line}\033[0m'
        room = min(MAX_PREVIEW_ROWS, height // 2 - 1)
        return [*(self._preview_rows(width)[-room:] if room > 0 else ()), status]

    def _preview_rows(self, width: int) -> Sequence[str]:
        if self._preview is None:
            return ()
        try:
            return self._preview(width)
        except Exception:  # text that cannot be rendered; what is finished is printed without a preview
            self._preview = None
            return ()

    def _erase(self) -> None:
        self._put(self._erasure())
        self._drawn = []

    def _erasure(self) -> str:
        """What removes the rows on the screen. In a narrower window they have been wrapped, except by xterm."""
        if not self._drawn:
            return ''
        width = 10**6 if os.environ.get('XTERM_VERSION') else max(1, _size(self._terminal)[0])
        above = sum(max(1, -(-cells // width)) for cells in self._drawn) - 1
        return '\r\033[K' + '\033[A\033[K' * above  # row by row: tmux copies a screen that is cleared as a whole

    def _put(self, text: str) -> None:
        """Write to the terminal itself: a signal handler must not use a stream that is being written."""
        if not text:
            return
        data = text.encode(self._stream.encoding or 'utf-8', 'replace')
        with contextlib.suppress(OSError):  # the terminal is gone
            while data:
                data = data[os.write(self._terminal, data) :]

    def _is_ours(self) -> bool:
        """Whether nobody else has the terminal: a shell in the foreground, an editor, a line that is being edited."""
        if os.name != 'posix':
            return True
        with contextlib.suppress(OSError):
            if os.tcgetpgrp(self._terminal) != os.getpgrp():
                return False
        return _reads_lines(self._terminal) == self._echo

    # Other output -----------------------------------------------------------------------------------------------------

    def _watch(self, stream: TextIO) -> None:
        """Let what is written to a stream appear above the line; also by those who have kept the stream."""
        write = stream.write

        def write_above(text: str) -> int:
            if not text:
                return write(text)
            with self._lock:
                self._erase()
                written = write(text)
                stream.flush()
                self._is_line_open = not _STYLE.sub('', text).endswith('\n')
                self._draw()
            return written

        setattr(stream, 'write', write_above)  # noqa: B010 - only on this object, and only while the line is shown
        self._restore.append(lambda: delattr(stream, 'write'))

    def _watch_input(self) -> None:
        read = builtins.input

        def read_paused(*arguments: Any) -> str:
            with self.paused():
                return read(*arguments)

        builtins.input = read_paused
        self._restore.append(lambda: setattr(builtins, 'input', read))

    def _unwatch(self) -> None:
        while self._restore:
            self._restore.pop()()


def current_status() -> StatusLine:
    """The live line that is shown; one that is not, if there is none."""
    return StatusLine.current or StatusLine()


def _size(terminal: int) -> tuple[int, int]:
    try:
        size = os.get_terminal_size(terminal)
    except OSError:
        return 80, 24
    return size.columns or 80, size.lines or 24


def _reads_lines(terminal: int) -> bool:
    """Whether the terminal collects and echoes lines. Those who edit lines or ask for passwords switch it off."""
    try:
        import termios

        flags = termios.tcgetattr(terminal)[3]
    except (ImportError, OSError, ValueError):
        return True
    except Exception as error:  # `termios.error` is no `OSError`
        if type(error).__module__ != 'termios':
            raise
        return True
    return bool(flags & termios.ICANON and flags & termios.ECHO)


def _cells(text: str) -> int:
    """Columns that a terminal needs for a text."""
    if text.isascii():
        return len(text)
    return sum(_cell(char) for char in text)


def _cell(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in 'WF' else 1


def _fit(text: str, width: int) -> str:
    """The text on one row, without control characters."""
    text = ''.join(char if char.isprintable() else ' ' for char in text)
    if _cells(text) <= width:
        return text
    kept, used = '', 0
    for char in text:
        used += _cell(char)
        if used > width - 1:
            break
        kept += char
    return f'{kept}…' if width > 0 else ''
