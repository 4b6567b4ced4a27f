"""`habilis sandbox run`: run one file in a new sandbox."""

import io
import json
import sys
import tokenize
from pathlib import Path

from habilis.cli.pictures import show_pictures
from habilis.cli.sandbox.terminal import SandboxChoice, Terminal, exit_code
from habilis.sandbox.cell_json import to_json


class SourceError(Exception):
    """The Python file cannot be read."""


def run_file(name: str, choice: SandboxChoice, *, as_json: bool) -> int:
    """Run the file, or stdin for `-`. Returns the exit code."""
    code = read_source(name)
    terminal = Terminal(live=not as_json)
    choice.settings['input'] = _no_input if name == '-' else terminal.ask
    with terminal.create(choice) as box:
        cell = terminal.run(box, code)
    folder = choice.picture_folder()
    if as_json:
        pictures = [str(path.resolve()) for path in show_pictures(cell, None, folder)]
        print(json.dumps({**to_json(cell), 'pictures': pictures}))
    else:
        terminal.show_value(cell, folder)
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
