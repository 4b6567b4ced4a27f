"""What is shown on stdout: tables and pages, coloured on a terminal, plain elsewhere; nothing a terminal would obey."""

import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from habilis.agent.hooks.harmless import neutral, one_line

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
WIDE = 100
"""Letters of a cell in a table."""

_UNITS = ((86400.0, 'd'), (3600.0, 'h'), (60.0, 'min'), (1.0, 's'))


def console() -> 'Console':
    """stdout."""
    from rich.console import Console

    shown = Console(highlight=False, markup=False, emoji=False)
    if shown.width < 1:  # COLUMNS=0; nothing would be shown
        shown.width = WIDE
    return shown


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns side by side. On a terminal the last one is cut to its width."""
    rows = [[one_line(cell, WIDE) for cell in row] for row in rows]
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
    """Text, line by line."""

    def __init__(self) -> None:
        self._console = console()

    def line(self, text: str = '', style: str = '') -> None:
        """One line, or several, of anybody's text."""
        from rich.text import Text

        self._console.print(Text(neutral(text), style=style), soft_wrap=True)

    def block(self, title: str, text: str, style: str = '', *, deep: int = 2) -> None:
        """A title, and what it is about below it."""
        if text.strip():
            self.line(f'{" " * deep}{title}', 'dim')
            indented = '\n'.join(f'{" " * (deep + 2)}{line}'.rstrip() for line in neutral(text).rstrip().split('\n'))
            self.line(indented, style)


def age(seconds: float) -> str:
    """How long ago, in a word."""
    for length, unit in _UNITS:
        if seconds >= length:
            return f'{seconds / length:.0f} {unit}'
    return 'now'


def moment(at: float | None) -> str:
    """A time on this machine's clock."""
    try:
        return '' if at is None else time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(at))
    except (OverflowError, OSError, ValueError):  # a damaged or foreign record may say anything
        return '?'
