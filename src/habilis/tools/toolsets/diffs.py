"""What a change does to a text, as people and `patch` read it."""

import difflib


def unified_diff(path: str, before: str | None, after: str) -> str:
    """The unified diff of a file; `before` is None for one that does not exist yet. Empty if nothing changes."""
    if before == after:
        return ''
    name = path if path.isprintable() else repr(path)
    old = '/dev/null' if before is None else f'a/{name}'
    if not before and not after:  # a new file with nothing in it has no lines to show
        return f'--- {old}\n+++ b/{name}\n'
    lines = difflib.unified_diff(_lines(before or ''), _lines(after), old, f'b/{name}')
    return ''.join(line if line.endswith('\n') else f'{line}\n\\ No newline at end of file\n' for line in lines)


def _lines(text: str) -> list[str]:
    """Split at line feeds only: `splitlines` also splits at form feeds and their like, which end no line of a file."""
    lines = [f'{line}\n' for line in text.split('\n')]
    last = lines.pop().removesuffix('\n')
    return [*lines, last] if last else lines
