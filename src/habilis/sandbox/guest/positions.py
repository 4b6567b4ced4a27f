"""Cells tell the host which statement begins, so that the host can say where it had to stop one."""

import ast
import functools

REPORT = ' report'
"""The builtin that is called with the first and the last line, as one text. Not an identifier: no cell can name it."""

MAX_REPORTS = 100
"""A cell with more statements tells of several at once: each message takes some 60 microseconds."""

MAX_KEPT = 200
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_LOOPS_AND_FUNCTIONS = (*_LOOPS, ast.FunctionDef, ast.AsyncFunctionDef)


def report_positions(tree: ast.Module, code: str) -> None:
    """Put a report before each statement of the module that may take long. One inside a loop would cost too much."""
    step = len(tree.body) // MAX_REPORTS + 1
    lines = code.split('\n')
    body: list[ast.stmt] = []
    for start in range(0, len(tree.body), step):
        group = tree.body[start : start + step]
        if any(_may_take_long(statement, lines) for statement in group) and not _must_be_first(group[0]):
            body.append(_report(*_lines_of(group)))
        body += group
    tree.body = body


def _may_take_long(statement: ast.stmt, lines: list[str]) -> bool:
    """Whether it may call, await or repeat something, by its text: a walk through its nodes takes longer than it."""
    if isinstance(statement, _LOOPS_AND_FUNCTIONS):
        return isinstance(statement, _LOOPS)
    text = '\n'.join(lines[statement.lineno - 1 : statement.end_lineno])
    return '(' in text or 'await' in text or ' for ' in text


def _must_be_first(statement: ast.stmt) -> bool:
    """Whether it is, or may be, a docstring or an import from `__future__`. Neither takes any time."""
    if isinstance(statement, ast.ImportFrom):
        return statement.module == '__future__'
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _lines_of(group: list[ast.stmt]) -> tuple[int, int]:
    first, last = group[0], group[-1]
    line = min([first.lineno, *(decorator.lineno for decorator in getattr(first, 'decorator_list', ()))])
    return line, last.end_lineno or line


@functools.lru_cache(MAX_KEPT)
def _report(first: int, last: int) -> ast.Expr:
    """Kept, as cells report the same few lines, and of one constant: each node takes longer to make than to compile."""
    place = {'lineno': first, 'col_offset': 0, 'end_lineno': first, 'end_col_offset': 0}
    lines = ast.Constant(value=f'{first} {last}', kind=None, **place)
    return ast.Expr(ast.Call(ast.Name(REPORT, ast.Load(), **place), [lines], [], **place), **place)
