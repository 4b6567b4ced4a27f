"""Tells Python from prose that happens to parse, and removes the framing of code."""

import ast
import re
import threading
import warnings
from functools import lru_cache

from habilis.core.syntax import parse_expression, parse_module

_WARNINGS_LOCK = threading.Lock()
"""`warnings.catch_warnings` changes the state of the process."""

_PROMPT = re.compile(r'(?:>>>|\.\.\.|In \[\d+\]:|\.\.\.:)(?: |$)')
_SESSION_START = re.compile(r'\s*(?:>>>|In \[\d+\]:)')
_LEADING_BLANK_LINES = re.compile(r'\A(?:[ \t]*\n)+')
_QUOTE = re.compile(r'#.*|"""|\'\'\'|"(?:\\.|[^"\\])*+(?:"|\\?$)|\'(?:\\.|[^\'\\])*+(?:\'|\\?$)')
_CLOSING_QUOTE = {quote: re.compile(rf'(?:\\.|[^\\])*?{quote}') for quote in ('"""', "'''")}

_COMPOUND = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.AsyncFor, ast.While, ast.If,
    ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match, ast.Import, ast.ImportFrom,
)  # fmt: skip
_ASSIGNMENTS = (ast.Assign, ast.AugAssign, ast.AnnAssign)
_COMPUTING = (ast.Call, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Await, ast.Subscript, ast.Lambda)


@lru_cache(8)  # a step parses its code several times
def statements(code: str) -> tuple[ast.stmt, ...] | None:
    """The statements of the code, not to be changed; None if it is not Python."""
    try:
        # Warnings about the model's code, such as an invalid escape, do not belong on the host's terminal.
        with _WARNINGS_LOCK, warnings.catch_warnings():
            warnings.simplefilter('ignore')
            return tuple(parse_module(code).body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def compiles(code: str) -> bool:
    """Whether the code compiles; top-level `await` is allowed."""
    try:
        with _WARNINGS_LOCK, warnings.catch_warnings():
            warnings.simplefilter('ignore')
            compile(code, '<reply>', 'exec', flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def read_literal(text: str) -> object:
    """The value of a Python literal. Raises `ValueError` for any other text."""
    try:
        with _WARNINGS_LOCK, warnings.catch_warnings():
            warnings.simplefilter('ignore')
            return ast.literal_eval(parse_expression(text.lstrip(' \t')))
    except (SyntaxError, RecursionError, MemoryError, TypeError) as error:
        msg = 'this is not a Python literal'
        raise ValueError(msg) from error


def is_code(code: str) -> bool:
    """Whether a text is Python that does something, not a word, a number or a sentence that happens to parse."""
    return any(_does_something(statement) for statement in _likely_statements(code))


def is_obvious_code(code: str) -> bool:
    """The same for text without a fence or tag: here `x = 4` and `raise prices` count as prose."""
    return any(_is_obvious_code(statement) for statement in _likely_statements(code))


def _likely_statements(code: str) -> tuple[ast.stmt, ...]:
    """The statements of the code. Code that mixes tabs and spaces does not compile, but it is code."""
    found = statements(code)
    return (statements(code.expandtabs(4)) if found is None and '\t' in code else found) or ()


def is_placeholder(code: str) -> bool:
    """Whether the code is empty, or only `...`."""
    found = statements(code)
    return all(_is_ellipsis(statement) for statement in found) if found else not code


def _is_ellipsis(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and value.value is ...


def _does_something(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=value):
            return _is_call(value)
        case ast.AnnAssign(value=None):  # as in `Note: this`
            return False
        case ast.Pass() | ast.Global() | ast.Return() | ast.Raise() | ast.Break() | ast.Continue():
            return False
        case _:
            return True


def _is_obvious_code(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        return _is_call(statement.value)
    if isinstance(statement, _ASSIGNMENTS):
        value = statement.value
        return value is not None and any(isinstance(node, _COMPUTING) for node in ast.walk(value))
    return isinstance(statement, _COMPOUND)


def _is_call(value: ast.expr) -> bool:
    if isinstance(value, ast.Await):
        value = value.value
    return isinstance(value, ast.Call)


def unframe(code: str, margin: str | None = None) -> str:
    """The code without its framing: interpreter prompts, the margin, and blank lines around it.

    The program itself is never changed. Code with errors, such as mixed tabs and spaces, runs as it was written.
    The margin is the indentation of the first line, unless it is given. A session has the margin before its prompts.
    """
    if _SESSION_START.match(code):
        code, margin = _without_prompts(code), None
    code = _LEADING_BLANK_LINES.sub('', code)
    return _dedent(code, margin_of(code) if margin is None else margin).rstrip()


def margin_of(code: str) -> str:
    """The indentation of the first line."""
    return code[: len(code) - len(code.lstrip(' \t'))]


def _without_prompts(session: str) -> str:
    """The input of an interactive session, without prompts and output."""
    lines = (line.lstrip() for line in session.split('\n'))
    return '\n'.join(_PROMPT.sub('', line, count=1) for line in lines if _PROMPT.match(line))


def _dedent(code: str, margin: str) -> str:
    """The code without this margin. (`textwrap.dedent` changes blank lines in strings.)"""
    return '\n'.join(line.removeprefix(margin) for line in code.split('\n')) if margin else code


def open_quote(line: str, quote: str) -> str:
    """The triple quote that is open after a line; `quote` is the one open before it. Empty for none."""
    position = 0
    while True:
        if quote:
            closed = _CLOSING_QUOTE[quote].match(line, position)
            if closed is None:
                return quote
            position = closed.end()
        found = _QUOTE.search(line, position)
        if found is None:
            return ''
        quote = found[0] if found[0] in _CLOSING_QUOTE else ''
        position = found.end()
