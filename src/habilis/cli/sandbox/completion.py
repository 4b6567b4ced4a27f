"""Completion with the Tab key: names and attributes come from the sandbox."""

import keyword
import re
import sys
from collections.abc import Callable, Sequence

from habilis.core.narrowing import items_in

DELIMITERS = ' \t\n`~!@#$%^&*()-=+[{]}\\|;:\'",<>/?'
INDENT = '    '
COMMANDS = ('exit', 'help', 'quit', 'restore', 'snapshot', 'vars')
"""Words after a colon."""

# Expressions that use `builtins`, because a cell may have shadowed a name.
_NAMES = "(lambda here, b: b.sorted({*here, *b.dir(b)}))(globals(), __import__('builtins'))"
_ATTRIBUTES = "__import__('builtins').dir({})"
_PATH = re.compile(r'[^\W\d]\w*(\.[^\W\d]\w*)*')
_IMPORT = re.compile(r'\s*(?:import|from)\s+[\w.]*$')


class Completer:
    """Completes the word at the cursor. `evaluate` returns the value of an expression, None if it fails."""

    def __init__(self, evaluate: Callable[[str], object]) -> None:
        self._evaluate = evaluate
        self._found: list[str] = []

    def complete(self, text: str, state: int, *, line: str) -> str | None:
        """The candidate with the number `state`, as `readline` asks for it."""
        if state == 0:
            self._found = self.candidates(text, line)
        return self._found[state] if state < len(self._found) else None

    def candidates(self, text: str, line: str) -> list[str]:
        """All words that the text may become."""
        if not line.strip():
            return [text + INDENT]
        if line.startswith(':'):
            return _starting_with(text, COMMANDS)
        if _IMPORT.fullmatch(line):
            return _starting_with(text, sorted(sys.stdlib_module_names))
        before, dot, start = text.rpartition('.')
        if not dot:
            return _starting_with(text, sorted({*keyword.kwlist, *self._names(_NAMES)})) if text else []
        if not _PATH.fullmatch(before):
            return []
        found = _starting_with(start, self._names(_ATTRIBUTES.format(before)))
        return [f'{before}.{name}' for name in found if start.startswith('_') or not name.startswith('_')]

    def _names(self, expression: str) -> list[str]:
        value = self._evaluate(expression)
        return [name for name in items_in(value) if isinstance(name, str)]


def _starting_with(start: str, names: Sequence[str]) -> list[str]:
    return [name for name in names if name.startswith(start) and name.isprintable()]
