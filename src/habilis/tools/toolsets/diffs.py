"""Unified diffs."""

import difflib


def unified_diff(path: str, before: str | None, after: str) -> str:
    """The unified diff of a file; `before` is None for a new file. Empty if nothing changes."""
    if before == after:
        return ''
    name = path if path.isprintable() else repr(path)
    old = '/dev/null' if before is None else f'a/{name}'
    if not before and not after:  # an empty new file has no lines
        return f'--- {old}\n+++ b/{name}\n'
    lines = difflib.unified_diff(_lines(before or ''), _lines(after), old, f'b/{name}')
    return ''.join(line if line.endswith('\n') else f'{line}\n\\ No newline at end of file\n' for line in lines)


def _lines(text: str) -> list[str]:
    """Split at line feeds only: `splitlines` also splits at form feeds and others."""
    lines = [f'{line}\n' for line in text.split('\n')]
    last = lines.pop().removesuffix('\n')
    return [*lines, last] if last else lines
