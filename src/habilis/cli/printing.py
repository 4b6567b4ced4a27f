"""Tables and pages on stdout: coloured on a terminal, plain elsewhere, without terminal control sequences."""

import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from habilis.agent.hooks.sanitize import escape_controls, one_line
from habilis.core.integers import safe_repr

if TYPE_CHECKING:
    from rich.console import Console

COLOURS: Mapping[str, str] = {
    'done': 'green',
    'running': 'cyan',
    'waiting': 'yellow',
    'interrupted': 'yellow',
    'failed': 'red',
    'stopped': 'yellow',
}
MAX_CELL_CHARS = 100
_UNITS = ((86400.0, 'd'), (3600.0, 'h'), (60.0, 'min'), (1.0, 's'))


def console() -> 'Console':
    """A console on stdout."""
    from rich.console import Console

    shown = Console(highlight=False, markup=False, emoji=False)
    if shown.width < 1:  # COLUMNS=0 would hide everything
        shown.width = MAX_CELL_CHARS
    return shown


def arguments_text(arguments: Mapping[str, object]) -> str:
    """The arguments of a call: `name=value, …`."""
    return ', '.join(f'{name}={safe_repr(value)}' for name, value in arguments.items())


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print align_runs columns. A terminal truncates them to its width."""
    rows = [[one_line(cell, MAX_CELL_CHARS) for cell in row] for row in rows]
    if sys.stdout.isatty():
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, header_style='bold')
        for name in head:
            table.add_column(name, no_wrap=True, overflow='ellipsis')
        for row in rows:
            table.add_row(*(Text(cell, style=COLOURS.get(cell, '')) for cell in row))
        console().print(table)
        return
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        print('  '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


class Page:
    """Lines and titled blocks of text on stdout."""

    def __init__(self) -> None:
        self._console = console()

    def line(self, text: str = '', style: str = '') -> None:
        """Print one or more lines of untrusted text."""
        from rich.text import Text

        self._console.print(Text(escape_controls(text), style=style), soft_wrap=True)

    def block(self, title: str, text: str, style: str = '', *, indent: int = 2) -> None:
        """Print a title with the text indented below it; nothing if the text is empty."""
        if text.strip():
            self.line(f'{" " * indent}{title}', 'dim')
            indented = '\n'.join(
                f'{" " * (indent + 2)}{line}'.rstrip() for line in escape_controls(text).rstrip().split('\n')
            )
            self.line(indented, style)


def format_age(seconds: float) -> str:
    """A duration in its largest unit, such as `3 d`."""
    for length, unit in _UNITS:
        if seconds >= length:
            return f'{seconds / length:.0f} {unit}'
    return 'now'


def format_time(at: float | None) -> str:
    """A timestamp in local time."""
    try:
        return '' if at is None else time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(at))
    except (OverflowError, OSError, ValueError):  # a damaged or imported record may hold any number
        return '?'
