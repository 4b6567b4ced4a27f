"""What Python looks like: whether a text is code, whether it only happens to parse, and where its strings end."""

import ast
import re
import threading
import warnings

_ONE_AT_A_TIME = threading.Lock()
_PROMPT = re.compile(r'(?:>>>|\.\.\.|In \[\d+\]:|\.\.\.:)(?: |$)')
_SESSION = re.compile(r'\s*(?:>>>|In \[\d+\]:)')
_LEADING = re.compile(r'\A(?:[ \t]*\n)+')
_QUOTE = re.compile(r'#.*|"""|\'\'\'|"(?:\\.|[^"\\])*+(?:"|\\?$)|\'(?:\\.|[^\'\\])*+(?:\'|\\?$)')
_CLOSING_QUOTE = {quote: re.compile(rf'(?:\\.|[^\\])*?{quote}') for quote in ('"""', "'''")}

_COMPOUND = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.AsyncFor, ast.While, ast.If,
    ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match, ast.Import, ast.ImportFrom,
)  # fmt: skip
_ASSIGNING = (ast.Assign, ast.AugAssign, ast.AnnAssign)
_WORKING = (ast.Call, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Await, ast.Subscript, ast.Lambda)


def statements(code: str) -> list[ast.stmt] | None:
    """What the code consists of; None if it is not Python."""
    try:
        # Warnings about what a model wrote (an invalid escape, say) are for the model, not for the host's terminal.
        with _ONE_AT_A_TIME, warnings.catch_warnings():
            warnings.simplefilter('ignore')
            return ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def compiles(code: str) -> bool:
    """Whether it would run, top-level `await` included."""
    try:
        with _ONE_AT_A_TIME, warnings.catch_warnings():
            warnings.simplefilter('ignore')
            compile(code, '<reply>', 'exec', flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def read_literal(text: str) -> object:
    """The number, text, list, … that a piece of Python writes out. Raises `ValueError` if it is anything else."""
    try:
        with _ONE_AT_A_TIME, warnings.catch_warnings():
            warnings.simplefilter('ignore')
            return ast.literal_eval(text)
    except (SyntaxError, RecursionError, MemoryError, TypeError) as error:
        msg = 'this is not a Python literal'
        raise ValueError(msg) from error


def reads_as_code(code: str) -> bool:
    """Python that does something. A word, a number or a sentence that happens to parse is not."""
    return any(_does_something(statement) for statement in statements(code) or ())


def acts(code: str) -> bool:
    """The same with no fence or tag to vouch for it: `x = 4` and `raise prices` may well be words."""
    return any(_acts(statement) for statement in statements(code) or ())


def is_placeholder(code: str) -> bool:
    """Nothing, or nothing but `...`."""
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


def _acts(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        return _is_call(statement.value)
    if isinstance(statement, _ASSIGNING):
        value = statement.value
        return value is not None and any(isinstance(node, _WORKING) for node in ast.walk(value))
    return isinstance(statement, _COMPOUND)


def _is_call(value: ast.expr) -> bool:
    if isinstance(value, ast.Await):
        value = value.value
    return isinstance(value, ast.Call)


def clean(code: str) -> str:
    """Without the marks of a prompt, common indentation, and empty lines around. All else stays as it was written."""
    if _SESSION.match(code):
        code = _without_prompts(code)
    code = _dedent(_LEADING.sub('', code)).rstrip()
    if '\t' in code and statements(code) is None and statements(spaced := code.expandtabs(4)) is not None:
        return spaced  # tabs and spaces were mixed
    return code


def _without_prompts(session: str) -> str:
    """An interactive session: its input, without what it answered."""
    lines = (line.strip() for line in session.split('\n'))
    return '\n'.join(_PROMPT.sub('', line, count=1) for line in lines if _PROMPT.match(line))


def _dedent(code: str) -> str:
    """Without the first line's indentation. (`textwrap.dedent` would change blank lines inside strings.)"""
    margin = code[: len(code) - len(code.lstrip(' \t'))]
    return '\n'.join(line.removeprefix(margin) for line in code.split('\n')) if margin else code


def open_quote(line: str, quote: str) -> str:
    """The triple quote that is open after a line, if `quote` ('' for none) was open before it."""
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
