"""`habilis sandbox run`: run one file in a new sandbox."""

import io
import json
import sys
import tokenize
from pathlib import Path

from habilis.cli.sandbox.terminal import Terminal, exit_code
from habilis.sandbox.cell_json import to_json
from habilis.sandbox.options import Settings


class SourceError(Exception):
    """The Python file cannot be read."""


def run_file(name: str, settings: Settings, *, as_json: bool) -> int:
    """Run the file, or stdin for `-`. Returns the exit code."""
    code = read_source(name)
    terminal = Terminal(live=not as_json)
    settings['input'] = _no_input if name == '-' else terminal.ask
    with terminal.create(settings) as box:
        cell = terminal.run(box, code)
    if as_json:
        print(json.dumps(to_json(cell)))
    else:
        terminal.show_value(cell)
        if cell.error is not None:
            terminal.show_error(cell.error, path='<stdin>' if name == '-' else name)
    return exit_code(cell)


def _no_input(_prompt: str) -> str:
    msg = 'input() cannot read stdin: the program was read from it; run a file instead'
    raise EOFError(msg)


def read_source(name: str) -> str:
    """Text of a Python file, decoded as Python does it."""
    try:
        data = sys.stdin.buffer.read() if name == '-' else Path(name).read_bytes()
    except OSError as error:
        msg = f'cannot read {name!r}: {error.strerror}'
        raise SourceError(msg) from error
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError) as error:
        msg = f'cannot read {name!r}: it is not Python source text ({error})'
        raise SourceError(msg) from error
