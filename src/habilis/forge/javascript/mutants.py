"""Wrong variants of a JavaScript function: each has one token changed, which good tests notice."""

from collections.abc import Iterator

from habilis.forge.contract import Mutant
from habilis.forge.javascript.tokens import Token, tokens

_OPERATORS = {
    '<': '<=',
    '<=': '<',
    '>': '>=',
    '>=': '>',
    '===': '!==',
    '!==': '===',
    '==': '!=',
    '!=': '==',
    '+': '-',
    '-': '+',
    '*': '+',
    '/': '*',
    '%': '*',
    '**': '*',
    '+=': '-=',
    '-=': '+=',
    '*=': '+=',
    '/=': '*=',
    '++': '--',
    '--': '++',
    '&&': '||',
    '||': '&&',
    '??': '&&',
}
_NAMES = {'true': 'false', 'false': 'true', 'break': 'continue', 'continue': 'break'}
_VALUES = frozenset(')]}')


def mutants(code: str, *, limit: int = 50) -> list[Mutant]:
    """Variants of a module, spread evenly over its changes if there are more than `limit`."""
    found = [token for token in tokens(code) if token.kind != 'comment']
    changes = [change for index in range(len(found)) for change in _changes(found, index)]
    if len(changes) > limit:
        changes = [changes[index * len(changes) // limit] for index in range(limit)]
    return [
        Mutant(change=f'line {token.line}: {_line(code, token)} → {new}', code=_replaced(code, token, new))
        for token, new in changes
    ]


def _changes(found: list[Token], index: int) -> Iterator[tuple[Token, str]]:
    token = found[index]
    before = found[index - 1] if index else None
    if not token.depth or _is_message(found, index):
        return
    if token.kind == 'operator' and token.text in _OPERATORS:
        is_binary = before is not None and (before.kind != 'operator' or before.text in _VALUES)
        if is_binary or token.text in ('++', '--'):
            yield token, _OPERATORS[token.text]
        elif token.text == '-':
            yield token, ' '
    elif token.kind == 'operator' and token.text == '!':
        yield token, ' '
    elif token.kind == 'number' and not token.text.endswith('n'):
        yield token, f'({token.text}+1)'
    elif token.kind == 'string' and not _is_key(found, index):
        yield token, "''" if len(token.text) > 2 else "'x'"
    elif token.kind == 'name' and token.text in _NAMES:
        yield token, _NAMES[token.text]


def _is_key(found: list[Token], index: int) -> bool:
    """Whether a string is the key of an object, or the name of a module."""
    after = found[index + 1].text if index + 1 < len(found) else ''
    return found[index - 1].text in ('{', ',', 'from', 'import') and after in (':', ';')


def _is_message(found: list[Token], index: int) -> bool:
    """Whether a token belongs to `throw new Error(…)`: the words of a message are not behaviour."""
    for place in range(index - 1, -1, -1):
        if found[place].text in (';', '{', '}'):
            return False
        if found[place].text == 'throw':
            return True
    return False


def _replaced(code: str, token: Token, new: str) -> str:
    return code[: token.start] + new + code[token.end :]


def _line(code: str, token: Token) -> str:
    """The part of the line with the token in it, for the reader."""
    start, end = code.rfind('\n', 0, token.start) + 1, code.find('\n', token.end)
    line = code[start : end if end >= 0 else len(code)]
    return f'`{" ".join(line.split())[:60]}`: {token.text}'
