"""Types of JSDoc as type hints of Python: `Array<string>` is `list[str]`."""

import re

_TOKEN = re.compile(r"""\s*(\.\.\.|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|-?\d+(?:\.\d+)?|[\w$]+(?:\.[\w$]+)*|\S)""")
_PLAIN = {
    'string': 'str',
    'number': 'float',
    'integer': 'int',
    'int': 'int',
    'bigint': 'int',
    'float': 'float',
    'boolean': 'bool',
    'bool': 'bool',
    'null': 'None',
    'undefined': 'None',
    'void': 'None',
    'true': 'bool',
    'false': 'bool',
    'array': 'list',
    'object': 'dict',
}
_MAX_DEPTH = 20


def to_hint(text: str) -> str:
    """The type hint; what has no counterpart is `Any`."""
    reader = _Reader(_TOKEN.findall(text))
    try:
        hint = reader.union(0)
    except (IndexError, RecursionError):
        return 'Any'
    return hint if not reader.left else 'Any'


class _Reader:
    def __init__(self, left: list[str]) -> None:
        self.left = left

    def union(self, depth: int) -> str:
        found = [self._postfix(depth)]
        while self._take('|'):
            found.append(self._postfix(depth))
        if 'Any' in found:
            return 'Any'
        return ' | '.join(dict.fromkeys(found))

    def _take(self, text: str) -> bool:
        if self.left and self.left[0] == text:
            self.left.pop(0)
            return True
        return False

    def _postfix(self, depth: int) -> str:
        """A type with `?` before it, or `[]` and `=` after it."""
        if depth > _MAX_DEPTH:
            raise RecursionError
        is_nullable = self._take('?')
        self._take('!')
        hint = self._single(depth + 1)
        while self.left[:2] == ['[', ']']:
            del self.left[:2]
            hint = f'list[{hint}]'
        self._take('=')
        return f'{hint} | None' if is_nullable and hint != 'Any' else hint

    def _single(self, depth: int) -> str:
        one = self.left.pop(0)
        match one:
            case '(':
                hint = self.union(depth)
                return hint if self._take(')') else 'Any'
            case '{':
                self._skip()
                return 'dict'
            case '[':
                self._skip()
                return 'list'
            case _ if one[0] in '\'"-' or one.isdigit():
                return f'Literal[{one}]'
            case _:
                return self._generic(one, depth) if self.left[:1] == ['<'] else self._named(one, depth)

    def _named(self, name: str, depth: int) -> str:
        if self.left[:2] == ['.', '<']:  # the older `Array.<string>`
            self.left.pop(0)
            return self._generic(name, depth)
        return _PLAIN.get(name.lower(), 'Any')

    def _generic(self, name: str, depth: int) -> str:
        self._take('<')
        inner = [self.union(depth)]
        while self._take(','):
            inner.append(self.union(depth))
        if not self._take('>'):
            return 'Any'
        if name == 'Array' and len(inner) == 1:
            return f'list[{inner[0]}]'
        if name in ('Object', 'Record') and len(inner) == 2:
            return f'dict[str, {inner[1]}]'
        return 'Any'

    def _skip(self) -> None:
        """Leave out the rest of what is in brackets."""
        depth = 1
        while depth:
            one = self.left.pop(0)
            depth += (one in ('[', '{')) - (one in (']', '}'))
