"""Cells tell the host which statement begins, so that the host can say where it had to stop one."""

import ast

REPORT = ' report'
"""The builtin that is called with the first and the last line. Not an identifier, so no cell can have it as a name."""

MAX_REPORTS = 100
"""A cell with more statements tells of several at once: each message takes some 60 microseconds."""

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def report_positions(tree: ast.Module, code: str) -> None:
    """Put a report before each statement of the module that may take long. One inside a loop would cost too much."""
    step = len(tree.body) // MAX_REPORTS + 1
    lines = code.split('\n')
    body: list[ast.stmt] = []
    for start in range(0, len(tree.body), step):
        group = tree.body[start : start + step]
        if any(_may_take_long(statement, lines) for statement in group) and not _must_be_first(group[0]):
            body.append(_report(group))
        body += group
    tree.body = body


def _may_take_long(statement: ast.stmt, lines: list[str]) -> bool:
    """Whether it may call, await or repeat something, by its text: a walk through its nodes takes longer than it."""
    if isinstance(statement, _LOOPS + _DEFINITIONS):
        return isinstance(statement, _LOOPS)
    text = lines[statement.lineno - 1 : statement.end_lineno]
    return any('(' in line or 'await' in line or ' for ' in line for line in text)


def _must_be_first(statement: ast.stmt) -> bool:
    """Whether it is, or may be, a docstring or an import from `__future__`. Neither takes any time."""
    if isinstance(statement, ast.ImportFrom):
        return statement.module == '__future__'
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _report(group: list[ast.stmt]) -> ast.Expr:
    first, last = group[0], group[-1]
    line = min([first.lineno, *(decorator.lineno for decorator in getattr(first, 'decorator_list', ()))])
    place = {'lineno': line, 'col_offset': first.col_offset, 'end_lineno': line, 'end_col_offset': first.col_offset}
    lines: list[ast.expr] = [ast.Constant(value=number, kind=None, **place) for number in (line, last.end_lineno)]
    return ast.Expr(ast.Call(ast.Name(REPORT, ast.Load(), **place), lines, [], **place), **place)
