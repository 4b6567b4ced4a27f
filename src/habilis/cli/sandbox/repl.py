"""`habilis sandbox repl`: an interactive prompt whose code runs in a sandbox."""

import ast
import codeop
import contextlib
import sys
import warnings
from pathlib import Path
from typing import Literal, cast

from habilis._version import __version__
from habilis.cli.sandbox.terminal import Terminal, paint
from habilis.core.errors import HabilisError
from habilis.sandbox.contract import ROLLED_BACK, Cell
from habilis.sandbox.options import Settings
from habilis.sandbox.sync import SyncSandbox

HELP = """\
Python, one statement or block at a time; `await` works at top level. Variables stay until you leave.
  :vars            list the variables
  :snapshot FILE   save the variables to a file
  :restore FILE    begin anew with the variables of a file
  :help            this text
  :quit            leave (also Ctrl-D)
Ctrl-C stops a running cell; the variables are then as they were before it. At the prompt it clears the line."""

LEAVE = frozenset({':quit', ':q', ':exit', 'exit', 'quit', 'exit()', 'quit()'})

# Expressions only, so that looking leaves nothing behind; through `builtins`, in case a cell has shadowed a name.
_LIST_VARIABLES = """\
(lambda here, b, brief: b.sorted(
    (name, b.type(value).__name__, brief(value)) for name, value in b.list(here.items())
    if not name.startswith('_') and name != 'display'
))(globals(), __import__('builtins'), __import__('reprlib').repr)"""


def interact(settings: Settings) -> int:
    """Run the prompt until its user leaves. Returns the exit code."""
    terminal = Terminal()
    settings['input'] = terminal.ask
    box = terminal.create(settings)
    prompt = Prompt(terminal)
    repl = Repl(box, settings, terminal, prompt)
    if prompt.is_tty:
        print(f'Habilis {__version__}, Python in a sandbox: {box.sandbox.isolation}.\n:help for help, :quit to leave.')
    try:
        repl.loop()
    finally:
        repl.box.close()
    return 1 if repl.failed and not prompt.is_tty else 0


class Prompt:
    """Where the lines come from: a person, with line editing, or a pipe, without prompts."""

    def __init__(self, terminal: Terminal) -> None:
        self._lines = terminal.lines
        self.is_tty = sys.stdin.isatty()
        if self.is_tty:
            with contextlib.suppress(ImportError):  # not on every platform
                import readline

                readline.parse_and_bind('tab: tab-insert')  # there are no file names to complete

    def read(self, prompt: str) -> str:
        """The next line. Raises `EOFError` after the last."""
        if self.is_tty:
            return input(prompt)
        line = self._lines.read()
        if line is None:
            raise EOFError
        return line


class Repl:
    """Collects lines until they are a whole statement, runs it, shows what came of it."""

    def __init__(self, box: SyncSandbox, settings: Settings, terminal: Terminal, prompt: Prompt) -> None:
        self.box = box
        self.failed = False
        self._settings = settings
        self._terminal = terminal
        self._prompt = prompt
        self._pending = ''

    def loop(self) -> None:
        """Until the end of the input, or a word to leave."""
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
            if not self._pending and line.strip() in LEAVE:
                return
            self.feed(line)

    def _finish(self) -> None:
        if self._prompt.is_tty:
            print()
        elif self._pending:
            self._run(self._pending)

    def feed(self, line: str) -> None:
        """Take a line; run what is whole."""
        if not self._pending and line.startswith(':'):
            self._command(line)
            return
        source = self._pending + line
        verdict = judge(source)
        if verdict == 'more':
            self._pending = source + '\n'
            return
        block, self._pending = self._pending, ''
        if verdict == 'wrong' and _ends_a_block(block, line):  # pasted code has no empty line after a block
            self._run(block)
            self.feed(line)
        elif source.strip():
            self._run(source)

    def _run(self, code: str) -> None:
        try:
            cell = self._terminal.run(self.box, code)
        except KeyboardInterrupt:  # between two cells, or a second time
            self._complain('stopped; the variables are as before')
            return
        except HabilisError as error:
            self._complain(str(error))
            return
        self._show(cell)

    def _show(self, cell: Cell) -> None:
        self._terminal.show_value(cell)
        if cell.error is None:
            return
        self.failed = True
        if cell.error.kind == 'exit':
            self._complain(f'the cell ended itself ({cell.error}); :quit leaves')
            return
        self._terminal.show_error(cell.error)
        if cell.error.kind in ROLLED_BACK:
            lost = f', without {", ".join(cell.lost)}, which could not be saved' if cell.lost else ''
            print(f'(the variables are as before this cell{lost})', file=sys.stderr, flush=True)

    def _complain(self, message: str) -> None:
        self.failed = True
        print(paint(f'habilis: {message}', sys.stderr), file=sys.stderr, flush=True)

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
                    self._complain(f'{name} needs the name of a file')
                case ':snapshot':
                    self._snapshot(Path(path).expanduser())
                case ':restore':
                    self._restore(Path(path).expanduser())
                case _:
                    self._complain(f'there is no command {name!r}; :help lists them')
        except BrokenPipeError:
            raise
        except OSError as error:
            self._complain(f'{path}: {error.strerror or error}')
        except HabilisError as error:
            self._complain(str(error))
        except KeyboardInterrupt:
            self._complain('stopped')

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
        lost = f'; could not be saved: {", ".join(data.lost)}' if data.lost else ''
        print(f'{path}: {len(data):,} bytes{lost}', flush=True)

    def _restore(self, path: Path) -> None:
        restored = SyncSandbox.restore(path.read_bytes(), **self._settings)
        self.box.close()
        self.box = restored


_compile = codeop.CommandCompiler()
_compile.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


def judge(source: str) -> Literal['whole', 'more', 'wrong']:
    """Whether to run it or to wait for more lines. What is wrong here is run too: the Python inside is a newer one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            return 'more' if _compile(source, '<input>', 'single') is None else 'whole'
    except (SyntaxError, ValueError, OverflowError, MemoryError, RecursionError):
        return 'wrong'


def _ends_a_block(block: str, line: str) -> bool:
    """Whether the line begins something new after a block that is whole without it."""
    if not block or line[:1].isspace():
        return False
    try:
        ast.parse(block)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True
