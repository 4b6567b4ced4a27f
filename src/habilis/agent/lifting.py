"""A table pasted into the task, given to the code as variables too: a small model would look for a file, or type it
off, which takes longer than all the rest."""

import csv
import io
import re
from itertools import pairwise

MIN_LINES = 3
LONG = 7
"""Lines of a table from which on a model that types it off is stopped; a shorter one is there sooner than a nudge."""

TABLE = 'table'
ROWS = 'rows'
_MARKS = (',', ';', '\t')
_INT = re.compile(r'0|-?[1-9]\d{0,17}')
_FLOAT = re.compile(r'-?(?:0|[1-9]\d{0,17})\.\d{1,17}')
Rows = list[dict[str, str | int | float]]


def lifted_variables(task: str) -> dict[str, object]:
    """The table in a task as text, and its rows if they can be told."""
    table = lift_table(task)
    rows = rows_of(table)
    return {**({TABLE: table} if table else {}), **({ROWS: rows} if rows else {})}


def lift_table(task: str) -> str:
    """The first run of lines with the same number of commas, semicolons or tabs; empty if there is none."""
    lines = task.split('\n')
    for mark in _MARKS:
        start = 0
        while start < len(lines):
            end = start
            while end < len(lines) and _is_row(lines[end], mark) and lines[end].count(mark) == lines[start].count(mark):
                end += 1
            if end - start >= MIN_LINES:
                return '\n'.join(lines[start:end]) + '\n'
            start = max(end, start + 1)
    return ''


def _is_row(line: str, mark: str) -> bool:
    """Fields between marks, without a blank after them: a comma in a sentence has one."""
    return mark in line and not re.search(rf'{re.escape(mark)} ', line)


def rows_of(table: str) -> Rows:
    """The rows by the names of their columns, with numbers as numbers; none if the first line does not name columns."""
    try:
        names, *lines = csv.reader(io.StringIO(table), delimiter=_mark_of(table), strict=True)
    except (csv.Error, ValueError):
        return []
    named = len(set(names)) == len(names) and all(name.strip() and not _is_number(name) for name in names)
    if not named or any(len(line) != len(names) for line in lines):
        return []
    numeric = {
        name for name, column in zip(names, zip(*lines, strict=True), strict=True) if all(map(_is_number, column))
    }
    return [
        {name: _number(text) if name in numeric else text for name, text in zip(names, line, strict=True)}
        for line in lines
    ]


def typed_off(reply: str, table: str) -> bool:
    """Whether a reply has begun to write a table again: two lines with all that two rows of it have, in any form."""
    mark = _mark_of(table)
    rows = [[field for field in line.split(mark) if field] for line in table.splitlines()[:3]]
    written = reply.split('\n')[:-1]  # the last one is being written
    return any(
        _holds(one, first) and _holds(other, second)
        for first, second in pairwise(rows)
        for one, other in pairwise(written)
    )


def _holds(line: str, fields: list[str]) -> bool:
    """Whether the fields stand in it in their order, each as a word of its own."""
    place = 0
    for field in fields:
        found = re.compile(rf'(?<!\w){re.escape(field)}(?!\w)').search(line, place)
        if found is None:
            return False
        place = found.end()
    return len(fields) > 1


def _mark_of(table: str) -> str:
    return next((mark for mark in _MARKS if mark in table.partition('\n')[0]), ',')


def _is_number(text: str) -> bool:
    """Whether it is written as Python would: `007` is a name."""
    return bool(_INT.fullmatch(text) or _FLOAT.fullmatch(text))


def _number(text: str) -> int | float:
    return int(text) if _INT.fullmatch(text) else float(text)
