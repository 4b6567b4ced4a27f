"""`habilis sandbox repl`: an interactive prompt whose code runs in a sandbox."""

import ast
import codeop
import contextlib
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Literal, cast

from habilis._version import __version__
from habilis.cli.colours import highlight_last_line
from habilis.cli.sandbox.completion import DELIMITERS, Completer
from habilis.cli.sandbox.terminal import SandboxChoice, Terminal
from habilis.core.errors import HabilisError
from habilis.core.syntax import parse_module
from habilis.sandbox.contract import ROLLED_BACK, Cell
from habilis.sandbox.session import SyncSandbox

HELP = """\
Enter Python statements; top-level `await` works. Variables persist until you exit. Tab completes names.
  :vars            list the variables
  :snapshot FILE   save the variables to a file
  :restore FILE    replace the variables by those of a file
  :help            show this text
  :quit            exit (also Ctrl-D)
Ctrl-C stops the running cell and restores the variables from before it. At the prompt it clears the line."""

EXIT_WORDS = frozenset({':quit', ':q', ':exit', 'exit', 'quit', 'exit()', 'quit()'})

# An expression, so that listing creates no variables; uses `builtins` because a cell may have shadowed a name.
_LIST_VARIABLES = """\
(lambda here, b, brief: b.sorted(
    (name, b.type(value).__name__, brief(value)) for name, value in b.list(here.items())
    if not name.startswith('_') and name != 'display'
))(globals(), __import__('builtins'), __import__('reprlib').repr)"""


def interact(choice: SandboxChoice) -> int:
    """Run the prompt until the user exits. Returns the exit code."""
    terminal = Terminal()
    choice.settings['input'] = terminal.ask
    box = terminal.create(choice)
    prompt = LineSource(terminal)
    repl = Repl(box, choice, terminal, prompt)
    prompt.complete_with(repl.evaluate)
    if prompt.is_tty:
        print(
            f'Habilis {__version__}, Python in a sandbox: {box.sandbox.isolation}.\nType :help for help, :quit to exit.'
        )
    try:
        repl.loop()
    finally:
        repl.box.close()
    return 1 if repl.failed and not prompt.is_tty else 0


class LineSource:
    """Source of lines: a terminal with line editing, or a pipe without prompts."""

    def __init__(self, terminal: Terminal) -> None:
        self._lines = terminal.lines
        self.is_tty = sys.stdin.isatty()

    def complete_with(self, evaluate: Callable[[str], object]) -> None:
        """Complete words with the Tab key, by what expressions evaluate to."""
        if not self.is_tty:
            return
        with contextlib.suppress(ImportError):  # missing on some platforms
            import readline  # from now on, `input` edits lines with it

            completer = Completer(evaluate)

            def complete(text: str, state: int) -> str | None:
                return completer.complete(text, state, line=readline.get_line_buffer()[: readline.get_endidx()])

            readline.set_completer(complete)
            readline.set_completer_delims(DELIMITERS)
            is_libedit = 'libedit' in (readline.__doc__ or '')
            readline.parse_and_bind('bind ^I rl_complete' if is_libedit else 'tab: complete')

    def read(self, prompt: str) -> str:
        """The next line. Raises `EOFError` at the end of the input."""
        if self.is_tty:
            return input(prompt)
        line = self._lines.read()
        if line is None:
            raise EOFError
        return line


class Repl:
    """Collects lines into complete statements, runs them and prints their results."""

    def __init__(self, box: SyncSandbox, choice: SandboxChoice, terminal: Terminal, prompt: LineSource) -> None:
        self.box = box
        self.failed = False
        self._choice = choice
        self._pictures = choice.picture_folder()
        self._terminal = terminal
        self._prompt = prompt
        self._pending = ''

    def loop(self) -> None:
        """Read and run until the end of the input or an exit command."""
        while True:
            try:
                line = self._prompt.read('... ' if self._pending else '>>> ')
            except EOFError:
                self._finish()
                return
            except KeyboardInterrupt:
                if not self._prompt.is_tty:
                    raise
                print('\nKeyboardInterrupt', flush=True)
                self._pending = ''
                continue
            if not self._pending and line.strip() in EXIT_WORDS:
                return
            self.feed(line)

    def evaluate(self, expression: str) -> object:
        """The value of an expression in the sandbox; None if it fails."""
        try:
            cell = self._terminal.run(self.box, expression)
        except (HabilisError, KeyboardInterrupt):
            return None
        return cell.value if cell.error is None else None

    def _finish(self) -> None:
        if self._prompt.is_tty:
            print()
        elif self._pending:
            self._run(self._pending)

    def feed(self, line: str) -> None:
        """Add a line; run the statement if it is complete."""
        if not self._pending and line.startswith(':'):
            self._command(line)
            return
        source = self._pending + line
        status = completeness(source)
        if status == 'incomplete':
            self._pending = source + '\n'
            return
        block, self._pending = self._pending, ''
        if status == 'invalid' and _ends_block(block, line):  # pasted code has no blank line after a block
            self._run(block)
            self.feed(line)
        elif source.strip():
            self._run(source)

    def _run(self, code: str) -> None:
        try:
            cell = self._terminal.run(self.box, code)
        except KeyboardInterrupt:  # between two cells, or pressed twice
            self._print_error('interrupted; variables are unchanged')
            return
        except HabilisError as error:
            self._print_error(str(error))
            return
        self._show(cell)

    def _show(self, cell: Cell) -> None:
        self._terminal.show_value(cell, self._pictures)
        if cell.error is None:
            return
        self.failed = True
        if cell.error.kind == 'exit':
            self._print_error(f'the cell called exit ({cell.error}); type :quit to leave')
            return
        self._terminal.show_error(cell.error)
        if cell.error.kind in ROLLED_BACK:
            lost = f', except {", ".join(cell.lost)}, which could not be saved' if cell.lost else ''
            print(f'(variables restored to before this cell{lost})', file=sys.stderr, flush=True)

    def _print_error(self, message: str) -> None:
        self.failed = True
        print(highlight_last_line(f'habilis: {message}', sys.stderr), file=sys.stderr, flush=True)

    # Commands ---------------------------------------------------------------------------------------------------------

    def _command(self, line: str) -> None:
        name, _, rest = line.partition(' ')
        path = rest.strip()
        try:
            match name:
                case ':help' | ':h' | ':?':
                    print(HELP, flush=True)
                case ':vars':
                    self._variables()
                case ':snapshot' | ':restore' if not path:
                    self._print_error(f'{name} needs a file name')
                case ':snapshot':
                    self._snapshot(Path(path).expanduser())
                case ':restore':
                    self._restore(Path(path).expanduser())
                case _:
                    self._print_error(f'unknown command {name!r}; type :help for a list')
        except BrokenPipeError:
            raise
        except OSError as error:
            self._print_error(f'{path}: {error.strerror or error}')
        except HabilisError as error:
            self._print_error(str(error))
        except KeyboardInterrupt:
            self._print_error('interrupted')

    def _variables(self) -> None:
        cell = self._terminal.run(self.box, _LIST_VARIABLES)
        if cell.error is not None:
            self._show(cell)
            return
        for name, kind, text in cast('list[tuple[str, str, str]]', cell.value):
            print(f'{name}: {kind} = {text}', flush=True)

    def _snapshot(self, path: Path) -> None:
        data = self.box.snapshot()
        path.write_bytes(data)
        lost = f'; not saved: {", ".join(data.lost)}' if data.lost else ''
        print(f'{path}: {len(data):,} bytes{lost}', flush=True)

    def _restore(self, path: Path) -> None:
        restored = SyncSandbox.restore(path.read_bytes(), self._choice.backend, **self._choice.settings)
        self.box.close()
        self.box = restored


_compile = codeop.CommandCompiler()
_compile.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


def completeness(source: str) -> Literal['complete', 'incomplete', 'invalid']:
    """Whether to run the source or read more lines. Invalid source is run too: the sandbox has a newer Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            return 'incomplete' if _compile(source, '<input>', 'single') is None else 'complete'
    except (SyntaxError, ValueError, OverflowError, MemoryError, RecursionError):
        return 'invalid'


def _ends_block(block: str, line: str) -> bool:
    """Whether the block is complete and the line starts a new statement."""
    if not block or line[:1].isspace():
        return False
    try:
        parse_module(block)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True
