"""A terminal's screen: what stays of the characters and control sequences that a program writes."""

import re
from collections.abc import Callable

_CONTROL = re.compile(
    r'\x1b\[(?P<mode>\?)?(?P<numbers>[\d;]*)(?P<name>[A-Za-z])|(?P<char>[\x00-\x1a])|(?P<text>[^\x00-\x1f]+)'
)
MAX_SEQUENCE = 20


class Screen:
    """Rows that scroll away at the top, and are kept. A sequence that it does not know is an error."""

    def __init__(self, *, columns: int, height: int) -> None:
        self._columns, self._height = columns, height
        self._rows: list[list[str]] = [[]]
        self._top = self._row = self._column = 0

    @property
    def lines(self) -> list[str]:
        """All rows, also those that have scrolled away."""
        return [''.join(row).rstrip() for row in self._rows]

    def feed(self, text: str) -> str:
        """Write what a program has written. Returns what is the start of a sequence, to be continued."""
        position = 0
        while position < len(text):
            found = _CONTROL.match(text, position)
            if found is None and len(text) - position < MAX_SEQUENCE:
                break
            assert found, repr(text[position : position + MAX_SEQUENCE])
            position = found.end()
            if found['text']:
                self._put(found['text'])
            elif found['char']:
                self._control(found['char'])
            elif not found['mode'] and found['name'] not in 'mhl':
                numbers = [int(number) for number in found['numbers'].split(';') if number]
                self._moves[found['name']](self, *numbers)
        return text[position:]

    def _put(self, text: str) -> None:
        for char in text:
            if self._column == self._columns:
                self._control('\n')
                self._column = 0
            row = self._rows[self._row]
            row += ' ' * (self._column + 1 - len(row))
            row[self._column] = char
            self._column += 1

    def _control(self, char: str) -> None:
        if char == '\n':
            self._row += 1
            if self._row == len(self._rows):
                self._rows.append([])
            self._top = max(self._top, self._row - self._height + 1)
        elif char == '\r':
            self._column = 0
        elif char == '\b':
            self._column = max(0, self._column - 1)
        else:
            assert char == '\a', repr(char)

    def _up(self, count: int = 1) -> None:
        self._row = max(self._top, self._row - count)

    def _right(self, count: int = 1) -> None:
        self._column = min(self._columns - 1, self._column + count)

    def _back(self, count: int = 1) -> None:
        self._column = max(0, self._column - count)

    def _erase_line(self, how: int = 0) -> None:
        assert how == 0
        del self._rows[self._row][self._column :]

    def _erase_below(self, how: int = 0) -> None:
        assert how == 0
        self._erase_line()
        for row in self._rows[self._row + 1 :]:
            row.clear()

    _moves: dict[str, Callable[..., None]] = {  # noqa: RUF012 - never changed
        'A': _up,
        'C': _right,
        'D': _back,
        'K': _erase_line,
        'J': _erase_below,
    }
