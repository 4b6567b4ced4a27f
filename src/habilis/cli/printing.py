"""Tables and pages on stdout: coloured on a terminal, plain elsewhere, without terminal control sequences."""

import contextlib
import json
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import date
from typing import TYPE_CHECKING

from habilis.agent.hooks.sanitize import escape_controls, one_line

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
MAX_BLOCK_CHARS = 200
MIN_FLEXIBLE_WIDTH = 8
MAX_FIXED_WIDTH = 24
"""Max columns of other cells on a terminal, if that is more than a third of its width."""

MIN_TITLE_WIDTH = 25
"""Min columns of a flexible cell that is truncated."""

MIN_TEXT_WIDTH = 10
"""Min columns of text that is deeply indented on a narrow terminal."""

_NUMBERS = re.compile(r'[\d.,% ]+')
"""Cells that say nothing without the name of their column."""

_UNITS = ((86400.0, 'd'), (3600.0, 'h'), (60.0, 'min'), (1.0, 's'))


def console(*, stderr: bool = False) -> 'Console':
    """A console on stdout, or on stderr."""
    from rich.console import Console

    shown = Console(highlight=False, markup=False, emoji=False, stderr=stderr)
    if shown.width < 1:  # COLUMNS=0 would hide everything
        shown.width = MAX_CELL_CHARS
    if shown.is_dumb_terminal and 'COLUMNS' not in os.environ:  # rich takes it for one of 80 columns
        with contextlib.suppress(OSError):
            width, height = os.get_terminal_size(sys.stdout.fileno())
            shown.size = (width or shown.width, height or shown.height)
    return shown


def print_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, flexible: Sequence[str] = ('TITLE',), stderr: bool = False
) -> None:
    """Print aligned columns. On a terminal, the flexible ones are truncated so that a row fits on a line.

    Where that would leave little of them, each row is a block instead: the flexible cells are wrapped below the others.
    """
    from rich.cells import cell_len

    shown, on_terminal = console(stderr=stderr), (sys.stderr if stderr else sys.stdout).isatty()
    if on_terminal:
        head, rows = _without_empty(head, rows)
    flexes = [name in flexible for name in head]
    lines = [[one_line(cell, MAX_CELL_CHARS) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(head, *lines, strict=True)]
    if on_terminal:
        longest = max(MAX_FIXED_WIDTH, shown.width // 3)
        wanted = [w if f else min(w, longest) for w, f in zip(widths, flexes, strict=True)]
        widths = _fit(wanted, flexes, shown.width)
        if any(f and width < min(MIN_TITLE_WIDTH, w) for w, width, f in zip(wanted, widths, flexes, strict=True)):
            _print_blocks(head, rows, flexes)
            return
    for number, row in enumerate((head, *lines)):
        _print_row(shown, row, widths, is_head=not number, on_terminal=on_terminal)


def _without_empty(head: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """The columns that have something in them."""
    kept = [number for number in range(len(head)) if not rows or any(row[number] for row in rows)]
    return [head[number] for number in kept], [[row[number] for number in kept] for row in rows]


def _print_row(
    shown: 'Console', row: Sequence[str], widths: Sequence[int], *, is_head: bool, on_terminal: bool
) -> None:
    from rich.text import Text

    line = Text(style='bold' if on_terminal and is_head else '')
    for cell, width in zip(row, widths, strict=True):
        text = Text(cell, style=COLOURS.get(cell, ''), no_wrap=True)
        text.truncate(width, overflow='ellipsis', pad=True)
        line.append('  ' if line else '').append_text(text)
    line.rstrip()
    shown.print(line, soft_wrap=not on_terminal, no_wrap=True, overflow='ellipsis' if on_terminal else 'ignore')


def _print_blocks(head: Sequence[str], rows: Sequence[Sequence[str]], flexes: Sequence[bool]) -> None:
    page = Page()
    for row in rows:
        cells = [(name, one_line(cell, MAX_BLOCK_CHARS)) for name, cell in zip(head, row, strict=True)]
        shown = [
            (name, cell) for (name, cell), is_flexible in zip(cells, flexes, strict=True) if cell and not is_flexible
        ]
        words = (
            f'{name.lower()} {cell}' if n and _NUMBERS.fullmatch(cell) else cell for n, (name, cell) in enumerate(shown)
        )
        page.text('  '.join(words), 'bold')
        for (_, cell), is_flexible in zip(cells, flexes, strict=True):
            if is_flexible and cell:
                page.text(cell, indent=2)


def _fit(widths: Sequence[int], flexible: Sequence[bool], width: int) -> list[int]:
    """The widths of columns of which the flexible ones share what the others leave of a line."""
    fixed = sum(each for each, flexes in zip(widths, flexible, strict=True) if not flexes) + 2 * (len(widths) - 1)
    wanted = sorted(each for each, flexes in zip(widths, flexible, strict=True) if flexes)
    limit, left = MIN_FLEXIBLE_WIDTH, max(0, width - fixed)
    for number, each in enumerate(wanted):  # what a short column does not need is left to the longer ones
        limit = max(MIN_FLEXIBLE_WIDTH, left // (len(wanted) - number))
        left -= min(each, limit)
    return [min(each, limit) if flexes else each for each, flexes in zip(widths, flexible, strict=True)]


class Page:
    """Lines and titled blocks of text on stdout."""

    def __init__(self) -> None:
        self._console = console()
        self._wraps = sys.stdout.isatty()

    def line(self, text: str = '', style: str = '') -> None:
        """Print lines of untrusted text as they are, such as a command to be copied."""
        from rich.text import Text

        self._console.print(Text(escape_controls(text), style=style), soft_wrap=True)

    def text(self, text: str, style: str = '', *, indent: int = 0) -> None:
        """Print indented lines of untrusted text. A terminal wraps them; the rest of a line is indented as well."""
        from rich.text import Text

        width = max(self._console.width - indent, MIN_TEXT_WIDTH)
        for line in escape_controls(text).rstrip().split('\n'):
            styled = Text(line.rstrip().expandtabs(4), style=style)
            for part in styled.wrap(self._console, width) if self._wraps else [styled]:
                part.rstrip()
                self._console.print(Text(' ' * indent if part else '').append_text(part), soft_wrap=True)

    def block(self, title: str, text: str, style: str = '', *, indent: int = 2) -> None:
        """Print a title with the text indented below it; nothing if the text is empty."""
        if text.strip():
            self.text(title, 'dim', indent=indent)
            self.text(text, style, indent=indent + 2)


def print_json(value: object) -> None:
    """Print data as JSON: dataclasses as objects, dates and times in ISO format."""
    print(json.dumps(value, default=_to_json, ensure_ascii=False))


def _to_json(value: object) -> object:
    if isinstance(value, date):
        return value.isoformat()
    assert is_dataclass(value)
    assert not isinstance(value, type)
    return asdict(value)


def format_age(seconds: float) -> str:
    """How long ago something was, in the largest unit: `3 min ago`."""
    for length, unit in _UNITS:
        if seconds >= length:
            return f'{seconds // length:.0f} {unit} ago'
    return 'now'


def format_time(at: float | None) -> str:
    """A timestamp in local time."""
    try:
        return '' if at is None else time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(at))
    except (OverflowError, OSError, ValueError):  # a damaged or imported record may hold any number
        return '?'
