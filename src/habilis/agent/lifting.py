"""A table pasted into the task, given to the code as a variable too: a small model would look for a file."""

import re

MIN_LINES = 3
NAME = 'table'


def lift_table(task: str) -> dict[str, str]:
    """The first run of lines with the same number of commas, semicolons or tabs, under the name `table`."""
    lines = task.split('\n')
    for mark in (',', ';', '\t'):
        start = 0
        while start < len(lines):
            end = start
            while end < len(lines) and _is_row(lines[end], mark) and lines[end].count(mark) == lines[start].count(mark):
                end += 1
            if end - start >= MIN_LINES:
                return {NAME: '\n'.join(lines[start:end]) + '\n'}
            start = max(end, start + 1)
    return {}


def _is_row(line: str, mark: str) -> bool:
    """Fields between marks, without a blank after them: a comma in a sentence has one."""
    return mark in line and not re.search(rf'{re.escape(mark)} ', line)
