"""Unified diffs."""

import difflib


def unified_diff(path: str, before: str | None, after: str | None) -> str:
    """The unified diff of a file; `before` is None for a new file, `after` for one that is gone. Empty: no change."""
    if before == after:
        return ''
    name = path if path.isprintable() else repr(path)
    old = '/dev/null' if before is None else f'a/{name}'
    new = '/dev/null' if after is None else f'b/{name}'
    if not before and not after:  # an empty new file has no lines
        return f'--- {old}\n+++ {new}\n'
    lines = difflib.unified_diff(_lines(before or ''), _lines(after or ''), old, new)
    return ''.join(line if line.endswith('\n') else f'{line}\n\\ No newline at end of file\n' for line in lines)


def _lines(text: str) -> list[str]:
    """Split at line feeds only: `splitlines` also splits at form feeds and others."""
    lines = [f'{line}\n' for line in text.split('\n')]
    last = lines.pop().removesuffix('\n')
    return [*lines, last] if last else lines
