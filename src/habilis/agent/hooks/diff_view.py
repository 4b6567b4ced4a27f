"""A unified diff for people: line numbers, and the colours of its language, in rows that fit a terminal."""

import itertools
import re
from collections.abc import Iterator, Sequence

from rich.syntax import Syntax
from rich.text import Text

from habilis.agent.hooks.sanitize import diff_lines

MAX_LINE = 2000
"""Characters shown of a line, such as one of minified code."""

_HUNK = re.compile(r'@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@')
_STYLES = {'+': 'green', '-': 'red', '@': 'cyan'}
_NO_FILE = '/dev/null'


def diff_rows(diff: str, width: int) -> list[Text]:
    """The rows of a diff of one or more files. Lines that are no diff are shown as they are."""
    parts = list(_parts(diff_lines(diff)))
    hunks = [_HUNK.match(part[0]) for part in parts]
    last = [int(found[3]) + len(part) for found, part in zip(hunks, parts, strict=True) if found]
    digits = len(str(max(last, default=0)))
    rows: list[Text] = []
    lexer = 'text'
    for number, (part, found) in enumerate(zip(parts, hunks, strict=True)):
        if found:
            if number and hunks[number - 1]:
                rows.append(Text(f'{"⋮":>{digits}}', 'dim'))
            rows += _hunk(part[1:], (int(found[1]), int(found[3])), lexer, digits, width)
        elif names := _names(part):
            before, after = names
            name = before if after == _NO_FILE else after
            kind = ' new,' if before == _NO_FILE else ' deleted,' if after == _NO_FILE else ''
            of_file = itertools.takewhile(lambda part: not _names(part), parts[number + 1 :])
            marks = [line[:1] for each in of_file for line in each]
            counts = f'+{marks.count("+")} −{marks.count("-")}'
            rows.append(Text.assemble((re.sub('^[ab]/', '', name), 'bold'), (f'{kind} {counts}', 'dim')))
            lexer = Syntax.guess_lexer(name)
        else:
            rows += [Text(line, _STYLES.get(line[:1], 'dim')) for line in part]
    return rows


def folded(rows: Sequence[Text], most: int | None, more: str = '') -> Sequence[Text]:
    """The first rows, and how many there are beside them; `more` says how to see those."""
    if most is None or len(rows) <= most + 1:
        return rows
    return [*rows[:most], Text(f'… {len(rows) - most:,} more lines{f": {more}" if more else ""}', 'dim')]


def _parts(lines: Sequence[str]) -> Iterator[Sequence[str]]:
    """The names of files and the hunks of a diff, and what is neither, in order."""
    at = 0
    while at < len(lines):
        end = at + 1
        if found := _HUNK.match(lines[at]):
            old, new = int(found[2] or 1), int(found[4] or 1)
            while end < len(lines) and (old > 0 or new > 0 or lines[end].startswith('\\')):
                old -= lines[end][:1] in ' -'
                new -= lines[end][:1] in ' +'
                end += 1
        elif _names(lines[at : at + 2]):
            end += 1
        yield lines[at:end]
        at = end


def _names(lines: Sequence[str]) -> tuple[str, str] | None:
    """The names of a file before and after."""
    if len(lines) == 2 and lines[0].startswith('--- ') and lines[1].startswith('+++ '):
        return lines[0][4:], lines[1][4:]
    return None


def _hunk(lines: Sequence[str], start: tuple[int, int], lexer: str, digits: int, width: int) -> Iterator[Text]:
    """The lines of a hunk with their numbers, coloured as they are after it; those that are removed in red."""
    old, new = start
    room = max(10, width - digits - 3)
    kept = [line[1:] for line in lines if line[:1] in (' ', '+')]
    coloured = iter(_highlighted(kept, lexer))
    for line in lines:
        mark, text = line[:1], line[1:]
        if mark == '\\':
            yield Text(f'{" " * digits}   {text.strip()}', 'dim')
            continue
        number = old if mark == '-' else new
        content = Text(text, 'red') if mark == '-' else next(coloured)
        old += mark != '+'
        new += mark != '-'
        content.truncate(MAX_LINE, overflow='ellipsis')
        content.expand_tabs(4)
        for row, piece in enumerate(content.divide(range(room, max(room, len(content)), room))):
            gutter = f'{number:{digits}}' if not row else ' ' * digits
            yield Text.assemble((gutter, 'dim'), (f' {mark} ', _STYLES.get(mark, '')), piece)


def _highlighted(lines: Sequence[str], lexer: str) -> list[Text]:
    highlighter = Syntax('', lexer, theme='ansi_dark', background_color='default')
    rows = list(highlighter.highlight('\n'.join(lines)).split('\n', allow_blank=True))
    if [row.plain for row in rows[: len(lines)]] != list(lines):  # the highlighter drops blank lines at the ends
        return [Text(line) for line in lines]
    return rows
