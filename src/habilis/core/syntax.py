"""Parse Python in a program that has other threads and finalizers."""

import ast


def parse_module(source: str) -> ast.Module:
    """`ast.parse` of statements.

    CPython 3.11 raises `SystemError` if the garbage collector runs a finalizer meanwhile that parses something, too, as
    anything that formats a traceback does. Nothing is wrong with the source then, so it is parsed again.
    """
    try:
        return ast.parse(source)
    except SystemError:
        return ast.parse(source)


def parse_expression(source: str) -> ast.Expression:
    """`ast.parse` of one expression; see `parse_module`."""
    try:
        return ast.parse(source, mode='eval')
    except SystemError:
        return ast.parse(source, mode='eval')
