"""Reads the source of a JavaScript tool: its exported function with the JSDoc block before it, as a Python definition.

    /**
     * The words of a text, in reverse order.
     * @param {string} text
     * @param {number} [limit=10] - Maximum number of words.
     * @returns {string}
     */
    export function reverse_words(text, limit = 10) { … }

is `def reverse_words(text: str, limit: float = 10) -> str`. Nothing of the source is executed.
"""

import ast
import keyword
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

from habilis.core.errors import ForgeError
from habilis.forge.contract import LIBRARY_MODULE
from habilis.forge.javascript.jsdoc_types import to_hint
from habilis.forge.javascript.tokens import Token, tokens

_PARAM = re.compile(r'@param\s*(\{)')
_RETURNS = re.compile(r'@returns?\s*(\{)')
_NAME = re.compile(r'\s*(?P<bracket>\[)?\s*(?P<name>[\w$]+)(?:[^\]\n]*\])?\s*(?:-\s*)?(?P<about>.*)', re.DOTALL)
_LITERALS = {'true': True, 'false': False, 'null': None, 'undefined': None}


@dataclass(frozen=True, kw_only=True)
class _Documented:
    """A parameter as JSDoc describes it."""

    hint: str
    is_optional: bool
    about: str


@dataclass(frozen=True, kw_only=True)
class _Parameter:
    """A parameter as the code has it."""

    name: str
    default: str | None
    is_rest: bool


def python_definition(name: str, code: str) -> str:
    """The definition of the tool as Python, without a body. Raises `ForgeError` if it has no complete function."""
    found = [token for token in tokens(code) if not token.depth or token.kind != 'comment']
    index = _exported(name, found)
    comment = found[index - 1] if index else None
    if comment is None or comment.kind != 'comment' or not comment.text.startswith('/**'):
        msg = f'{name} needs a JSDoc block (/** … */) right before it, with a description, @param and @returns'
        raise ForgeError(msg)
    description, documented, returns = _read_jsdoc(name, comment.text)
    given = [_parameter(name, one) for one in _split(found, index + 3)]
    if list(documented) != [one.name for one in given]:
        msg = f'the @param lines of {name} must name its parameters in order: {", ".join(one.name for one in given)}'
        raise ForgeError(msg)
    parameters = ', '.join(_hinted(one, documented[one.name]) for one in given)
    about = ''.join(f'\n    {key}: {one.about}' for key, one in documented.items() if one.about)
    documentation = f'{description}\n\nArgs:{about}' if about else description
    return f'def {name}({parameters}) -> {returns}:\n    {documentation!r}\n'


def has_function(name: str, code: str) -> bool:
    """Whether the code exports such a function."""
    try:
        _exported(name, tokens(code))
    except ForgeError:
        return False
    return True


def with_documentation(name: str, code: str, block: str) -> str:
    """The code with this JSDoc block before the function, in place of the one that is there. Raises `ForgeError`."""
    found = [token for token in tokens(code) if not token.depth or token.kind != 'comment']
    index = _exported(name, found)
    before = found[index - 1] if index else None
    start = found[index].start
    if before is not None and before.kind == 'comment' and before.text.startswith('/**'):
        return f'{code[: before.start]}{block.rstrip()}{code[before.end :]}'
    return f'{code[:start]}{block.rstrip()}\n{code[start:]}'


def import_as_tool(tests: str, stem: str) -> str:
    """Tests of a file `stem`.js that import its function as tests of the library do."""
    for token in reversed(tokens(tests)):
        if token.kind == 'string' and token.text[1:-1] in (f'./{stem}.js', f'./{stem}'):
            tests = f"{tests[: token.start]}'./tool.js'{tests[token.end :]}"
    return tests


def names_of_tests(code: str) -> list[str]:
    """Names of the test functions of a module, in order."""
    found = [token for token in tokens(code) if not token.depth and token.kind == 'name']
    names = [
        second.text
        for first, second in pairwise(found)
        if first.text in ('function', 'const', 'let', 'var') and second.text.startswith('test')
    ]
    return list(dict.fromkeys(names))


def imported_tools(code: str) -> tuple[str, ...]:
    """The tools of the library that the code imports by name."""
    found = [token for token in tokens(code) if token.kind != 'comment']
    names: list[str] = []
    for index, token in enumerate(found):
        if token.kind == 'string' and token.text[1:-1] == LIBRARY_MODULE and found[index - 1].text == 'from':
            start = next((at for at in range(index, -1, -1) if found[at].text == 'import'), index)
            names += [
                one.text
                for before, one in pairwise(found[start:index])
                if before.text in ('{', ',') and one.kind == 'name'
            ]
    return tuple(dict.fromkeys(names))


def _exported(name: str, found: list[Token]) -> int:
    """Index of `export function name (`."""
    wanted = ['export', 'function', name, '(']
    indices = [
        index
        for index, token in enumerate(found)
        if not token.depth and [one.text for one in found[index : index + 4]] == wanted
    ]
    if len(indices) != 1:
        msg = f'the code must have one function `export function {name}(…)`, and has {len(indices)}'
        raise ForgeError(msg)
    return indices[0]


def _split(found: list[Token], start: int) -> list[list[Token]]:
    """The tokens of each parameter; `start` is the opening bracket."""
    parts: list[list[Token]] = [[]]
    depth = found[start].depth
    for token in found[start + 1 :]:
        if token.text == ')' and token.depth == depth:
            break
        if token.text == ',' and token.depth == depth + 1:
            parts.append([])
        elif token.kind != 'comment':
            parts[-1].append(token)
    return [part for part in parts if part]


def _parameter(tool: str, part: list[Token]) -> _Parameter:
    is_rest = part[0].text == '...'
    [first, *rest] = part[1:] if is_rest and len(part) > 1 else part
    name = first.text
    if first.kind != 'name' or (rest and rest[0].text != '='):
        msg = f'{tool} must have plain parameters: a name, perhaps with a default'
        raise ForgeError(msg)
    if not name.isidentifier() or keyword.iskeyword(name):
        msg = f'{tool} needs another name for its parameter {name!r}: agents call it from Python'
        raise ForgeError(msg)
    default = ''.join(token.text for token in rest[1:]) if rest else None
    return _Parameter(name=name, default=default, is_rest=is_rest)


def _hinted(given: _Parameter, documented: _Documented) -> str:
    hint = documented.hint
    if given.is_rest:
        return f'*{given.name}: {hint}'
    if given.default is None and not documented.is_optional:
        return f'{given.name}: {hint}'
    default = _literal(given.default or 'null')
    if default is None and hint != 'Any' and 'None' not in hint:
        hint = f'{hint} | None'
    return f'{given.name}: {hint} = {default!r}'


def _literal(text: str) -> object:
    """The default of a parameter; None if it is not a literal that means the same in Python."""
    if text in _LITERALS:
        return _LITERALS[text]
    try:
        value: object = ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return cast('object', value) if isinstance(value, str | int | float | list) else None


def _read_jsdoc(name: str, comment: str) -> tuple[str, dict[str, _Documented], str]:
    """Description, parameters, and the type of the result."""
    body = re.sub(r'^[ \t]*\*?[ \t]?', '', comment[3:-2], flags=re.MULTILINE).strip()
    first = re.search(r'^@', body, re.MULTILINE)
    description = body[: first.start()].strip() if first else body
    if not description:
        msg = f'{name} needs a description in its JSDoc block: its first line is what is searched for'
        raise ForgeError(msg)
    tags = re.split(r'^(?=@)', body[first.start() :], flags=re.MULTILINE) if first else []
    documented: dict[str, _Documented] = {}
    returns = ''
    for tag in tags:
        if found := _PARAM.match(tag):
            kind, rest = _in_braces(tag, found.start(1))
            named = _NAME.match(rest)
            if named is not None:
                is_optional, about = bool(named['bracket']) or kind.endswith('='), ' '.join(named['about'].split())
                documented[named['name']] = _Documented(
                    hint=to_hint(kind.removeprefix('...')), is_optional=is_optional, about=about
                )
        elif found := _RETURNS.match(tag):
            returns = to_hint(_in_braces(tag, found.start(1))[0])
    if not returns:
        msg = f'{name} needs the type of its result in its JSDoc block: @returns {{string}}'
        raise ForgeError(msg)
    return description, documented, returns


def _in_braces(text: str, start: int) -> tuple[str, str]:
    """What is inside the braces that open at `start`, and what follows them."""
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] == '{') - (text[place] == '}')
        if not depth:
            return text[start + 1 : place], text[place + 1 :]
    return text[start + 1 :], ''
