"""Code with `return` outside of functions, which FastMCP's code mode tells models to write."""

import ast
from collections.abc import Iterator

from habilis.core.syntax import parse_module

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def call_for_return(code: str, function: str) -> str:
    """The code with a call of the function for each such `return`, on the same line.

    The code could be made the body of a function instead, but then its variables would end with it.
    """
    try:
        returns = list(_returns(parse_module(code)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the sandbox reports it
        return code
    lines = code.encode().splitlines(keepends=True)
    for node in reversed(returns):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        _replace(lines, node.end_lineno, node.end_col_offset, '', '))')
        _replace(lines, node.lineno, node.col_offset, 'return', f'{function}((' if node.value else f'{function}((None')
    return b''.join(lines).decode()


def _replace(lines: list[bytes], number: int, column: int, old: str, new: str) -> None:
    line = lines[number - 1]
    lines[number - 1] = line[:column] + new.encode() + line[column + len(old) :]


def _returns(node: ast.AST) -> Iterator[ast.Return]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return):
            yield child
        elif not isinstance(child, _SCOPES):
            yield from _returns(child)
