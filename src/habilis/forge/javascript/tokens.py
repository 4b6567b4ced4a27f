"""Splits JavaScript into tokens. Wrong code gets tokens too: QuickJS says what is wrong with it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal['comment', 'string', 'template', 'regex', 'number', 'name', 'operator']

_TOKEN = re.compile(
    r"""
    (?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))
  | (?P<string>"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)
  | (?P<number>0[xX][\da-fA-F_]+n?|0[bB][01_]+n?|0[oO][0-7_]+n?|(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d+)?n?)
  | (?P<name>[\w$\#]+)
  | (?P<operator>>>>=|\.\.\.|===|!==|\*\*=|<<=|>>=|>>>|&&=|\|\|=|\?\?=|=>|==|!=|<=|>=|&&|\|\||\?\?|\?\.(?!\d)|\+\+|--
      |\*\*|<<|>>|\+=|-=|\*=|/=|%=|&=|\|=|\^=|\S)
    """,
    re.VERBOSE | re.DOTALL,
)
_REGEX = re.compile(r'/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/\w*')
_BEFORE_REGEX = frozenset('return typeof case in of delete void throw new else do instanceof yield await'.split())
_OPENING, _CLOSING = frozenset('([{'), frozenset(')]}')


@dataclass(frozen=True, kw_only=True)
class Token:
    """One token. Templates are one token, with the code inside."""

    kind: Kind
    text: str
    start: int
    line: int
    depth: int
    """Number of brackets around it."""

    @property
    def end(self) -> int:
        """Offset after it."""
        return self.start + len(self.text)


def tokens(code: str) -> list[Token]:
    """The tokens of a module, with its comments."""
    return list(_tokens(code))


def _tokens(code: str) -> Iterator[Token]:
    place, line, depth = 0, 1, 0
    before: Token | None = None
    while (place := _skip_space(code, place)) < len(code):
        kind, end = _next(code, place, before)
        text = code[place:end]
        if text in _CLOSING and kind == 'operator':
            depth = max(0, depth - 1)
        line = code.count('\n', 0, place) + 1 if before is None else before.line + code.count('\n', before.start, place)
        token = Token(kind=kind, text=text, start=place, line=line, depth=depth)
        yield token
        if text in _OPENING and kind == 'operator':
            depth += 1
        before, place = token, end


def _skip_space(code: str, place: int) -> int:
    while place < len(code) and code[place].isspace():
        place += 1
    return place


def _next(code: str, place: int, before: Token | None) -> tuple[Kind, int]:
    if code[place] == '`':
        return 'template', _end_of_template(code, place)
    if code[place] == '/' and code[place + 1 : place + 2] not in ('/', '*') and _may_be_regex(before):
        regex = _REGEX.match(code, place)
        if regex is not None:
            return 'regex', regex.end()
    found = _TOKEN.match(code, place)
    if found is None or found.lastgroup is None:
        return 'operator', place + 1
    return found.lastgroup, found.end()  # pyright: ignore[reportReturnType]  # the groups are the kinds


def _may_be_regex(before: Token | None) -> bool:
    """Whether a slash after this token starts a regular expression, and is not a division."""
    if before is None or before.kind == 'comment':
        return True
    if before.kind == 'name':
        return before.text in _BEFORE_REGEX
    return before.kind == 'operator' and before.text not in _CLOSING


def _end_of_template(code: str, start: int) -> int:
    """Offset after a template, whose parts in `${…}` may have templates too."""
    place, inside = start + 1, list[int]()
    while place < len(code):
        one = code[place]
        if one == '\\':
            place += 1
        elif not inside and one == '`':
            return place + 1
        elif code.startswith('${', place):
            inside.append(1)
            place += 1
        elif inside and one == '`':
            place = _end_of_template(code, place) - 1
        elif inside and one == '{':
            inside.append(0)
        elif inside and one == '}':
            inside.pop()
        place += 1
    return len(code)
