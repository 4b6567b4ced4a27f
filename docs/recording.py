"""Runs a command in a terminal and draws the screen that it leaves as an SVG file. Nothing is edited.

python docs/recording.py FILE.svg COMMAND [ARGUMENT …]
"""

import os
import pty
import re
import shlex
import struct
import subprocess
import sys
from collections.abc import Iterable
from io import StringIO
from itertools import groupby
from operator import itemgetter
from pathlib import Path

WIDTH, HEIGHT = 80, 24
_ITEM = re.compile('\x1b\\[([0-9;?]*)([A-Za-z])|\x1b.|[^\x1b]')


class Screen:
    """What a terminal shows after a stream of text: as much of one as `habilis` needs."""

    def __init__(self) -> None:
        self._rows: list[list[tuple[str, str]]] = [[]]
        self._row = self._column = 0
        self._style = ''

    def write(self, text: str) -> None:
        """Apply text with control sequences."""
        for item in _ITEM.finditer(text):
            if item[2] is not None:
                self._control(item[1], item[2])
            elif item[0] == '\r':
                self._column = 0
            elif item[0] == '\n':
                self._next_row()
            elif item[0].isprintable():
                self._put(item[0])

    def _control(self, numbers: str, name: str) -> None:
        if name == 'm':
            self._style = '' if numbers in ('', '0') else f'{self._style}\x1b[{numbers}m'
        elif name == 'A':
            self._row = max(0, self._row - int(numbers or 1))
        elif name == 'K':
            del self._rows[self._row][self._column :]

    def _put(self, char: str) -> None:
        if self._column == WIDTH:
            self._next_row()
        row = self._rows[self._row]
        row += [(' ', '')] * (self._column + 1 - len(row))
        row[self._column] = (char, self._style)
        self._column += 1

    def _next_row(self) -> None:
        self._row, self._column = self._row + 1, 0
        if self._row == len(self._rows):
            self._rows.append([])

    def lines(self) -> list[str]:
        """The rows with their colours, as ANSI text."""
        return [''.join(map(_styled, groupby(row, key=itemgetter(1)))) for row in self._rows]


def _styled(run: 'tuple[str, Iterable[tuple[str, str]]]') -> str:
    style, cells = run
    text = ''.join(char for char, _ in cells)
    return f'{style}{text}\x1b[0m' if style else text


def record(command: list[str]) -> str:
    """Run a command in a terminal and return all that it writes there."""
    import fcntl
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', HEIGHT, WIDTH, 0, 0))
    environment = {**os.environ, 'TERM': 'xterm-256color', 'COLUMNS': str(WIDTH), 'LINES': str(HEIGHT)}
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    data = b''
    try:
        while chunk := os.read(master, 65536):
            data += chunk
    except OSError:  # the command has ended
        pass
    if process.wait() != 0:
        sys.exit(f'{shlex.join(command)} failed:\n{data.decode(errors="replace")}')
    return data.decode(errors='replace')


def draw(command: list[str], written: str) -> str:
    """The command line and the screen that it left, as SVG."""
    from rich.console import Console
    from rich.text import Text

    screen = Screen()
    screen.write(written)
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True, color_system='256')
    console.print(Text(f'$ {shlex.join(command)}', style='bold'))
    for line in '\n'.join(screen.lines()).rstrip().split('\n'):
        console.print(Text.from_ansi(line))
    drawn = console.export_svg(title='habilis run', unique_id='habilis')
    return re.sub(r'@font-face \{.*?\}\s*', '', drawn, flags=re.DOTALL)  # a picture must not load from a server


def main() -> None:
    """Record the command of the arguments."""
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    target, command = Path(sys.argv[1]), sys.argv[2:]
    target.write_text(draw(command, record(command)), encoding='utf-8')
    print(f'{target}: {target.stat().st_size:,} bytes')


if __name__ == '__main__':
    main()
