"""Run cells at a terminal: live output, `input()`, Ctrl-C, error messages, exit codes."""

import contextlib
import signal
import sys
import threading
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from habilis.cli.colours import highlight_last_line
from habilis.cli.line_reader import LineReader
from habilis.cli.options import NATIVE_CHOICE
from habilis.cli.pictures import is_picture, picture_folder, show_pictures
from habilis.cli.streams import say
from habilis.core.background_loop import run_blocking
from habilis.sandbox.contract import Cell, CellError, Display, ErrorKind, Stream
from habilis.sandbox.options import SandboxSettings, choose_backend
from habilis.sandbox.session import SyncSandbox

EXIT_CODES: dict[ErrorKind, int] = {'time': 124, 'memory': 137, 'cancelled': 130}
"""Same codes as `timeout`, the out-of-memory killer and a shell. Every other error is 1."""

PLAIN = 'text/plain'
_ADVICE: dict[ErrorKind, str] = {
    'time': '; raise the limit with --seconds',
    'memory': '; raise the limit with --memory-mb',
}
_RAISED_BY_CODE: frozenset[ErrorKind] = frozenset({'exception', 'syntax', 'exit', 'code_rules'})


@dataclass(frozen=True)
class SandboxChoice:
    """A backend and the settings of a sandbox."""

    backend: str
    settings: SandboxSettings

    def picture_folder(self) -> Path:
        """Where pictures are saved."""
        folder = None if self.settings.get('read_only') else self.settings.get('workspace')
        return picture_folder(folder if isinstance(folder, str) else None)


class Terminal:
    """Connects sandboxes to stdin, stdout and stderr of this process."""

    def __init__(self, *, live: bool = True) -> None:
        """With `live=False` the output of cells is not printed."""
        self._live = live
        self._broken: OSError | None = None
        self._at_line_start = True
        self._box: SyncSandbox | None = None
        self._finished = threading.Event()
        self.lines = LineReader()

    def create(self, choice: SandboxChoice) -> SyncSandbox:
        """Create a sandbox. The first one shows a progress line for half a minute, which Ctrl-C must end."""
        try:
            name = choice.backend
            if name == 'auto':
                name = run_blocking(choose_backend(choice.settings))
                if name != 'wasm':
                    say(NATIVE_CHOICE.format(name))
            return SyncSandbox.create(name, **choice.settings)
        except KeyboardInterrupt:
            if sys.stderr.isatty():
                print(file=sys.stderr)
            raise

    def run(self, box: SyncSandbox, code: str) -> Cell:
        """Run a cell. Ctrl-C cancels it."""
        self._box, self._at_line_start, self._finished = box, True, threading.Event()
        try:
            with self._interruptible(box):
                cell = box.run(code, on_output=self._write if self._live else None)
        finally:
            self._finished.set()  # a timed-out cell may have left a thread waiting for input
        if self._broken is not None:
            raise self._broken
        return cell

    def ask(self, prompt: str) -> str:
        """Answer `input()`. Called on a thread of the sandbox."""
        finished = self._finished
        run_blocking(self._show_prompt(prompt))  # on the event loop that prints output, to keep the order
        line = self.lines.read(finished)
        if line is None:
            msg = 'EOF when reading a line'
            raise EOFError(msg)
        self._at_line_start = True
        return line

    async def _show_prompt(self, prompt: str) -> None:
        self._write('stdout' if self._live else 'stderr', prompt)

    def _write(self, stream: Stream, text: str) -> None:
        """Print output. If stdout breaks, cancel the cell."""
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

    def show_value(self, cell: Cell, pictures: Path) -> None:
        """Print the displays of a cell and the value of its last expression; save its pictures in the folder."""
        others = [display for display in cell.displays if not is_picture(display)]
        shown = [_display_text(display) for display in others if cell.text is None or display.mime == PLAIN]
        if cell.text is not None:
            shown.append(cell.text)
        for text in shown:
            self._new_line()
            print(text, flush=True)
        if len(others) < len(cell.displays):
            self._new_line()
            show_pictures(cell, sys.stdout, pictures)

    def show_error(self, error: CellError, *, path: str | None = None) -> None:
        """Print the error to stderr."""
        self._new_line()
        text = describe(error, path)
        if text:
            print(highlight_last_line(text, sys.stderr), file=sys.stderr, flush=True)

    def _new_line(self) -> None:
        if not self._at_line_start:
            print(flush=True)
            self._at_line_start = True

    @contextlib.contextmanager
    def _interruptible(self, box: SyncSandbox) -> Generator[None]:
        """Ctrl-C cancels the running cell. A second one, or one without a cell, raises `KeyboardInterrupt`."""
        pressed = False

        def handle(_number: int, _frame: object) -> None:
            nonlocal pressed
            self._finished.set()
            self._at_line_start = not sys.stdin.isatty()  # the terminal has echoed ^C
            if pressed or not box.cancel():
                raise KeyboardInterrupt
            pressed = True

        previous = signal.signal(signal.SIGINT, handle)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, previous)


def describe(error: CellError, path: str | None = None) -> str:
    """The traceback of an exception, or a message about a limit. Empty for `sys.exit(n)`."""
    if error.kind == 'exit':
        return '' if _exit_number(error) is not None else error.message
    trace = error.traceback.rstrip()
    if path is not None:
        trace = trace.replace('File "<cell 1>"', f'File "{path}"')
    if error.kind in _RAISED_BY_CODE:
        return trace or str(error)
    frames, newline, _ = trace.rpartition('\n')  # the last line is the guest's name of the limit
    return f'{frames}{newline}habilis: {error.message or error.type}{_ADVICE.get(error.kind, "")}'


def _display_text(display: Display) -> str:
    """The text of a display; type and size of an image or a page."""
    if display.mime == PLAIN:
        return str(display.data)
    return f'({display.mime}, {len(display.data):,} {"bytes" if isinstance(display.data, bytes) else "characters"})'


def exit_code(cell: Cell) -> int:
    """Exit code for a cell."""
    if cell.error is None:
        return 0
    if cell.error.kind == 'exit':
        number = _exit_number(cell.error)
        return 1 if number is None else number & 0xFF
    return EXIT_CODES.get(cell.error.kind, 1)


def _exit_number(error: CellError) -> int | None:
    """The number given to `sys.exit`; None for other values, which Python prints."""
    try:
        return int(error.message)
    except ValueError:
        return None
