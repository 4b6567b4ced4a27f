"""Cells tell the host which statement begins, so that the host can say where it had to stop one."""

import ast

REPORT = ' report'
"""The builtin that is called with the first and the last line. Not an identifier, so no cell can have it as a name."""

MAX_REPORTS = 100
"""A cell with more statements tells of several at once: each message takes some microseconds."""


def report_positions(tree: ast.Module) -> None:
    """Put a report before each statement of the module. One inside a loop would cost too much."""
    step = len(tree.body) // MAX_REPORTS + 1
    body: list[ast.stmt] = []
    for start in range(0, len(tree.body), step):
        group = tree.body[start : start + step]
        if not _must_be_first(group[0]):
            body.append(_report(group))
        body += group
    tree.body = body


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
