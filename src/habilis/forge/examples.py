"""Turns examples of the user into tests, which no stage may change: `assert f('ab') == 'ba'`, or without `assert`."""

import ast
import builtins
from collections.abc import Mapping, Sequence

from habilis.core.errors import ForgeError
from habilis.forge.contract import TESTED_MODULE

EXAMPLE_TEST = 'test_example_'
"""Start of the names of these tests."""


def read_example(text: str) -> ast.expr:
    """The condition of an example. Raises `ForgeError` if it is not one."""
    try:
        body = ast.parse(text.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        msg = f'not an example: {text.strip()[:200]!r}; write it as a condition, such as f(2) == 4'
        raise ForgeError(msg) from error
    match body:
        case [ast.Assert(test=test)]:
            return test
        case [ast.Expr(value=ast.Compare() | ast.Call() as test)]:
            return test
        case _:
            msg = f'not an example: {text.strip()[:200]!r}; write it as one condition, such as f(2) == 4'
            raise ForgeError(msg)


def called_name(examples: Sequence[str]) -> str:
    """The function that all examples call; empty if there is none, or more than one."""
    found = [
        {
            node.func.id
            for node in ast.walk(read_example(text))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not hasattr(builtins, node.func.id)
        }
        for text in examples
    ]
    common = set[str].intersection(*found) if found else set[str]()
    return common.pop() if len(common) == 1 else ''


def example_tests(examples: Sequence[str]) -> str:
    """The examples as test functions."""
    return '\n\n\n'.join(_functions(examples).values()) + '\n'


def module_with_tests(name: str, tests: Mapping[str, str], examples: Sequence[str] = ()) -> str:
    """The module of these tests of a function, and of the user's examples, which no test replaces."""
    sources = {**tests, **_functions(examples)}
    return f'from {TESTED_MODULE} import {name}\n\n\n' + '\n\n\n'.join(sources.values()) + '\n'


def _functions(examples: Sequence[str]) -> dict[str, str]:
    conditions = {f'{EXAMPLE_TEST}{number}': read_example(text) for number, text in enumerate(examples, start=1)}
    return {name: f'def {name}() -> None:\n    assert {ast.unparse(test)}' for name, test in conditions.items()}
