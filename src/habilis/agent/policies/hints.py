"""What a small model forgets, said in one line when it is forgotten."""

import ast
import re
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import cast

from habilis.agent.context.output import as_text
from habilis.agent.parsing.syntax import statements
from habilis.sandbox.contract import Cell
from habilis.sandbox import ToolCall
from habilis.sandbox.previews import shorten

_UNDEFINED = re.compile(r"name '(\w+)' is not defined")
_NO_MODULE = re.compile(r"No module named '([\w.]+)'")

_NO_DICT = re.compile(r"'(list|str|int|float)' object has no attribute '(?:items|keys|values|get)'")

_NOT_AWAITED = 'That is a coroutine: put `await` before the call.'

UNKNOWN = frozenset({'IndexError', 'KeyError', 'LookupError', 'ValueError'})
"""Errors of tools that tell of their arguments."""

GIVEN = 40
"""Letters of an argument that is told of."""


def hints_for(
    code: str,
    cell: Cell,
    *,
    names: Iterable[str],
    can_stop: bool,
    texts: Sequence[str] = (),
    lost: Collection[str] = (),
    calls: Sequence[ToolCall] = (),
) -> list[str]:
    """What would help with this cell.

    `names` are the tools and variables there are, `texts` those that hold text, `lost` those that a run which was
    resumed could not bring back, `calls` those that the cell has made.
    """
    if cell.error is not None:
        if cell.error.kind == 'time':
            return [_took_long(cell, calls)]
        return _refused_call(cell, calls) or _after_error(code, cell, names, texts, lost)
    shown = cell.stdout.strip() or cell.text
    hints: list[str] = []
    if '<coroutine object' in (shown or '') or 'was never awaited' in cell.stderr:
        hints.append(_NOT_AWAITED)
    elif not shown and (defined := uncalled(code)):
        hints.append(f'You defined {", ".join(defined)} but did not call it. Call it and print the result.')
    elif not shown:
        hints.append('Nothing was printed: print what you need to see.')
    elif can_stop:
        hints.append('If this answers the task, call final_answer(...) with the value. If not, go on.')
    return hints


def _refused_call(cell: Cell, calls: Sequence[ToolCall]) -> list[str]:
    """Nothing is wrong with the code itself: a tool does not know what it was asked about."""
    last = calls[-1] if calls else None
    if last is None or last.ok or cell.error is None or cell.error.type not in UNKNOWN:
        return []
    if not (last.error or '').startswith(f'{cell.error.type}:'):
        return []
    if not any(_is_named(value, cell.error.message) for value in last.arguments.values()):
        return []  # the tool itself is in trouble
    given = ', '.join(shorten(value, GIVEN) for value in last.arguments.values())
    return [f'The tool {last.name} cannot be called with {given}: call it with what it knows.']


def _is_named(value: object, message: str) -> bool:
    """Whether an error tells of this argument, or of something in it."""
    if isinstance(value, list | tuple):
        return any(_is_named(item, message) for item in cast('Sequence[object]', value))
    text = value if isinstance(value, str) else as_text(value, repr)
    return 0 < len(text) <= len(message) and bool(re.search(rf'(?<!\w){re.escape(text)}(?!\w)', message))


def _took_long(cell: Cell, calls: Sequence[ToolCall]) -> str:
    """The code itself was slow, or it waited for a tool."""
    under_way = [call.name for call in calls if call.error == 'CancelledError']
    slowest = max(calls, key=lambda call: call.seconds, default=None)
    if slowest is not None and (under_way or sum(call.seconds for call in calls) > cell.seconds / 2):
        name = under_way[0] if under_way else slowest.name
        return f'It took too long because of the tool {name}: ask it for less at once, or do without it.'
    return 'It took too long: use a loop, or put @functools.cache above a function that calls itself.'


def _after_error(code: str, cell: Cell, names: Iterable[str], texts: Sequence[str], lost: Collection[str]) -> list[str]:
    assert cell.error is not None
    message = cell.error.message
    if cell.error.type == 'NameError' and (found := _UNDEFINED.search(message)):
        if found[1] in lost:
            return [f'{found[1]} was lost when the work was interrupted: it could not be saved. Make it again.']
        near = get_close_matches(found[1], list(names), n=3, cutoff=0.5)
        return [f'There is no {found[1]!r}. Did you mean {" or ".join(near)}?'] if near else []
    if cell.error.type in ('ModuleNotFoundError', 'ImportError') and (found := _NO_MODULE.search(message)):
        return [f'{found[1]} is not installed here: use the standard library.']
    if cell.error.type == 'AttributeError' and (found := _NO_DICT.search(message)):
        return [_no_dict(code, found[1], cell.error.line)]
    if "'coroutine'" in message:
        return [_NOT_AWAITED]
    if cell.error.type == 'FileNotFoundError':
        return _no_such_file(code, message, texts)
    if cell.error.kind == 'syntax':
        return ['The code did not run. Write the whole corrected code again.']
    return []


def _no_dict(code: str, kind: str, line: int | None) -> str:
    """Nested data has more than dicts in it, which a function that goes down into it has to expect."""
    for node in statements(code) or ():
        if kind == 'list' and (mended := _loop_for_both(node, line)):
            return f'Here it is a list. Write the whole code again, with this line instead of the one above:\n{mended}'
        if isinstance(node, ast.FunctionDef) and any(_called(inner) == node.name for inner in ast.walk(node)):
            return (
                f'Here it is a {kind}. Write {node.name} for any value: what it does with a dict, a list, and others.'
            )
    return f'Here it is a {kind}, not a dict: look at the data first.'


def _loop_for_both(node: ast.AST, line: int | None) -> str:
    """The head of the loop over `x.items()` in this line, for a dict and for a list."""
    for loop in ast.walk(node):
        match loop:
            case ast.For(
                iter=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr='items')) as items,
                target=ast.Tuple() as two,
            ) if loop.lineno == line:
                both = f'{ast.unparse(items)} if isinstance({name}, dict) else enumerate({name})'
                names = ast.unparse(two).removeprefix('(').removesuffix(')')
                return f'for {names} in ({both}):'
            case _:
                pass
    return ''


def _no_such_file(code: str, message: str, texts: Sequence[str]) -> list[str]:
    """Text that is in a variable is often taken for the name of a file, or looked for in one."""
    opened = re.search(r'\bopen\((\w+)', code)
    if '\\n' in message and opened:
        return [f'{opened[1]} is the text itself, not the name of a file: read it with io.StringIO({opened[1]}).']
    if texts:
        listed = ', '.join(texts[:3])
        return [f'There is no such file. The text is in a variable ({listed}): read it with io.StringIO({texts[0]}).']
    return ['There is no such file. If the data stands in the task, put it into the code as a string.']


def uncalled(code: str) -> list[str]:
    """The functions a piece of code defines, if defining is all it does."""
    body = statements(code) or []
    idle = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)
    if not all(isinstance(node, idle) or _is_text(node) for node in body):
        return []
    defined = [node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [function.name for function in defined if not _is_called(function, body)]


def _is_called(function: ast.FunctionDef | ast.AsyncFunctionDef, body: Sequence[ast.stmt]) -> bool:
    """By others: what calls itself is not called yet."""
    others = (node for statement in body if statement is not function for node in ast.walk(statement))
    return any(_called(node) == function.name for node in others)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _called(node: ast.AST) -> str | None:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None
