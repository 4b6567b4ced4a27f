"""A cell in front of a person: its output while it runs, Ctrl-C, its error in words, its exit code."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Generator
from typing import TextIO

from habilis.cli.lines import Lines
from habilis.core.background_loop import run_blocking
from habilis.sandbox.contract import Cell, CellError, Display, ErrorKind, Stream
from habilis.sandbox.options import Settings
from habilis.sandbox.sync import SyncSandbox

EXIT_CODES: dict[ErrorKind, int] = {'time': 124, 'memory': 137, 'cancelled': 130}
"""As `timeout`, the kernel and a shell have them. Every other error is 1."""

PLAIN = 'text/plain'
_MORE: dict[ErrorKind, str] = {'time': '; --seconds gives it more', 'memory': '; --memory-mb gives it more'}
_REASONS: dict[ErrorKind, str] = {'memory': 'the code needed more memory than its limit'}
_OWN_DOING: frozenset[ErrorKind] = frozenset({'exception', 'syntax', 'exit', 'policy'})


class Terminal:
    """stdin, stdout and stderr of this process, for one sandbox after another."""

    def __init__(self, *, live: bool = True) -> None:
        """`live=False` keeps stdout free of what the cells print."""
        self._live = live
        self._broken: OSError | None = None
        self._at_line_start = True
        self._box: SyncSandbox | None = None
        self._over = threading.Event()
        self.lines = Lines()

    def create(self, settings: Settings) -> SyncSandbox:
        """A sandbox. The first one ever takes half a minute, with a line of progress that Ctrl-C would cut in two."""
        try:
            return SyncSandbox.create(**settings)
        except KeyboardInterrupt:
            if sys.stderr.isatty():
                print(file=sys.stderr)
            raise

    def run(self, box: SyncSandbox, code: str) -> Cell:
        """Run a cell. Ctrl-C ends it."""
        self._box, self._at_line_start, self._over = box, True, threading.Event()
        try:
            with self._interruptible(box):
                cell = box.run(code, on_output=self._write if self._live else None)
        finally:
            self._over.set()  # a cell that ran out of time may have left a thread waiting for a line
        if self._broken is not None:
            raise self._broken
        return cell

    def ask(self, prompt: str) -> str:
        """Answer `input()`; called on a thread of the sandbox."""
        over = self._over
        run_blocking(self._show_prompt(prompt))  # on the loop that shows the output, so that it comes after it
        line = self.lines.read(over)
        if line is None:
            msg = 'EOF when reading a line'
            raise EOFError(msg)
        self._at_line_start = True
        return line

    async def _show_prompt(self, prompt: str) -> None:
        self._write('stdout' if self._live else 'stderr', prompt)

    def _write(self, stream: Stream, text: str) -> None:
        """Show output. A reader who went away is no reason to compute on."""
        if self._broken is not None:
            return
        try:
            target = sys.stdout if stream == 'stdout' else sys.stderr
            target.write(text)
            target.flush()
        except OSError as error:
            self._broken = error
            if self._box is not None:
                self._box.cancel()
        if text:
            self._at_line_start = text.endswith('\n')

    def show_value(self, cell: Cell) -> None:
        """What a notebook shows below a cell: what it displayed, and the value of its last expression."""
        shown = [_in_words(display) for display in cell.displays if cell.text is None or display.mime == PLAIN]
        if cell.text is not None:
            shown.append(cell.text)
        for text in shown:
            self._new_line()
            print(text, flush=True)

    def show_error(self, error: CellError, *, path: str | None = None) -> None:
        """Tell what went wrong, on stderr."""
        self._new_line()
        text = describe(error, path)
        if text:
            print(paint(text, sys.stderr), file=sys.stderr, flush=True)

    def _new_line(self) -> None:
        if not self._at_line_start:
            print(flush=True)
            self._at_line_start = True

    @contextlib.contextmanager
    def _interruptible(self, box: SyncSandbox) -> Generator[None]:
        """Ctrl-C ends the running cell. A second one, or one where no cell runs, is a `KeyboardInterrupt` as ever."""
        pressed = False

        def handle(_number: int, _frame: object) -> None:
            nonlocal pressed
            self._over.set()
            self._at_line_start = not sys.stdin.isatty()  # the terminal has shown ^C
            if pressed or not box.cancel():
                raise KeyboardInterrupt
            pressed = True

        before = signal.signal(signal.SIGINT, handle)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def describe(error: CellError, path: str | None = None) -> str:
    """The error as Python would print it; a limit as a sentence of ours. Nothing for a plain `sys.exit(n)`."""
    if error.kind == 'exit':
        return '' if _exit_number(error) is not None else error.message
    trace = error.traceback.rstrip()
    if path is not None:
        trace = trace.replace('File "<cell 1>"', f'File "{path}"')
    if error.kind in _OWN_DOING:
        return trace or str(error)
    frames, newline, _ = trace.rpartition('\n')  # its last line names the limit in the guest's words
    reason = error.message or _REASONS.get(error.kind, error.type)
    return f'{frames}{newline}habilis: {reason}{_MORE.get(error.kind, "")}'


def _in_words(display: Display) -> str:
    """A terminal shows text; of an image or a page it can only say that there is one."""
    if display.mime == PLAIN:
        return str(display.data)
    return f'({display.mime}, {len(display.data):,} {"bytes" if isinstance(display.data, bytes) else "characters"})'


def exit_code(cell: Cell) -> int:
    """What the process should return for this cell."""
    if cell.error is None:
        return 0
    if cell.error.kind == 'exit':
        number = _exit_number(cell.error)
        return 1 if number is None else number & 0xFF
    return EXIT_CODES.get(cell.error.kind, 1)


def _exit_number(error: CellError) -> int | None:
    """The number given to `sys.exit`; None if it was something else, which Python prints."""
    try:
        return int(error.message)
    except ValueError:
        return None


def colourful(stream: TextIO) -> bool:
    """Whether to use colours there."""
    return stream.isatty() and not os.environ.get('NO_COLOR') and os.environ.get('TERM') != 'dumb'


def paint(error: str, stream: TextIO) -> str:
    """The last line in red, which is the one to read first."""
    if not colourful(stream):
        return error
    above, newline, last = error.rpartition('\n')
    return f'{above}{newline}\033[31m{last}\033[0m'
