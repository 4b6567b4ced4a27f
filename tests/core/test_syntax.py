"""Parsing is not disturbed by finalizers that parse, too."""

import ast
import gc
from collections.abc import Generator

import pytest

from habilis.core.syntax import parse_expression, parse_module

SOURCE = '\n'.join(f'def function_{number}(a, b):\n    return a + {number} * b' for number in range(300))


class Parsing:
    """Garbage whose finalizer parses, as a traceback that is formatted does."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        ast.parse('(1 + 2) * 3')


@pytest.fixture
def _often() -> Generator[None]:  # pyright: ignore[reportUnusedFunction]
    """Let the garbage collector run all the time."""
    before = gc.get_threshold()
    gc.set_threshold(50)
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures('_often')
def test_a_finalizer_that_parses_meanwhile_is_no_error() -> None:
    expected = ast.dump(parse_module(SOURCE))
    for _ in range(20):
        Parsing()
        assert ast.dump(parse_module(SOURCE)) == expected


@pytest.mark.usefixtures('_often')
def test_expressions_too() -> None:
    source = ' + '.join(f'f({number}, [a, b])' for number in range(300))
    for _ in range(20):
        Parsing()
        assert isinstance(parse_expression(source).body, ast.BinOp)
