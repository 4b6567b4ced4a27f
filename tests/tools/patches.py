"""Applying a unified diff, as `patch` does, so that a diff can be checked by what it makes."""

import re

_HUNK = re.compile(r'@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\n')
_NO_NEWLINE = '\\ No newline at end of file\n'


def apply(diff: str, before: str) -> str:
    """The text after a diff. Raises if the diff is not about this text."""
    if not diff:
        return before
    old = _lines(before)
    made: list[str] = []
    position = 0
    for start, lines in _hunks(diff):
        made += old[position:start]
        position = start
        for line in lines:
            if line[0] != '+':
                assert old[position] == line[1:]
                position += 1
            if line[0] != '-':
                made.append(line[1:])
    return ''.join(made + old[position:])


def _hunks(diff: str) -> list[tuple[int, list[str]]]:
    hunks: list[tuple[int, list[str]]] = []
    for line in _lines(diff)[2:]:
        match = _HUNK.fullmatch(line)
        if match:
            first, count = int(match[1]), int(match[2] or 1)
            hunks.append((first - 1 if count else first, []))
        elif line == _NO_NEWLINE:
            hunks[-1][1][-1] = hunks[-1][1][-1].removesuffix('\n')
        else:
            hunks[-1][1].append(line)
    return hunks


def _lines(text: str) -> list[str]:
    return re.findall(r'[^\n]*\n|[^\n]+', text)
