"""Wrong variants of a function."""

import ast

import pytest

from habilis.core.syntax import parse_module
from habilis.forge.checks.mutants import mutants
from habilis.forge.library.seed_tools import seeds
from tests.cases import each_case


def changes(body: str) -> set[str]:
    """The lines of a one-line function in its variants."""
    return {variant.code.splitlines()[-1].strip() for variant in mutants(f'def f(a, b):\n    {body}')}


@each_case(
    ('body', 'wrong'),
    [
        ('return a < b', 'return a <= b'),
        ('return a >= b', 'return a > b'),
        ('return a == b', 'return a != b'),
        ('return a in b', 'return a not in b'),
        ('return a is b', 'return a is not b'),
        ('return a + b', 'return a - b'),
        ('return a - b', 'return a + b'),
        ('return a * b', 'return a + b'),
        ('return a / b', 'return a * b'),
        ('return a // b', 'return a / b'),
        ('return a % b', 'return a * b'),
        ('return a ** b', 'return a * b'),
        ('return a & b', 'return a | b'),
        ('return a << b', 'return a >> b'),
        ('a += b', 'a -= b'),
        ('return a and b', 'return a or b'),
        ('return not a', 'return a'),
        ('return -a', 'return a'),
        ('return True', 'return False'),
        ('return 1', 'return 2'),
        ("return 'x'", "return ''"),
        ("return ''", "return 'x'"),
        ('return a if b else 1', 'return a if not b else 1'),
        ('return a', 'return None'),
        ('print(a)', 'pass'),
        ('return [x for x in a if b]', 'return [x for x in a]'),
    ],
)
def test_each_operator_has_its_variant(body: str, wrong: str) -> None:
    assert wrong in changes(body)


@pytest.mark.parametrize(
    ('code', 'wrong'),
    [
        ('if a:\n    b()', 'if not a:'),
        ('while a:\n    break', 'while not a:'),
        ('while a:\n    break', '    continue'),
        ('while a:\n    continue', '    break'),
    ],
)
def test_statements_have_variants_too(code: str, wrong: str) -> None:
    assert any(wrong in variant.code.splitlines() for variant in mutants(code))


UNTOUCHED = '''
"""About 1 < 2."""

import json as data


@decorate(1)
def f(a: 'Literal[1, 2]') -> 'list[3]':
    """Adds 1."""
    total: 'dict[4]' = a
    raise ValueError('not 5')
'''


def test_docstrings_annotations_imports_and_messages_stay_as_they_are() -> None:
    assert mutants(UNTOUCHED) == []


def test_every_variant_of_the_seeds_is_python_and_differs_from_the_code() -> None:
    for seed in list(seeds().values())[:8]:
        unchanged = ast.unparse(parse_module(seed.code))
        made = mutants(seed.code, limit=20)
        assert made, seed.name
        for variant in made:
            ast.parse(variant.code)
            assert variant.code != unchanged
            assert variant.change.startswith('line ')


def test_more_variants_than_the_limit_are_spread_over_the_code() -> None:
    code = 'def f(a):\n' + ''.join(f'    a += {number}\n' for number in range(100))
    lines = [int(variant.change.split()[1].rstrip(':')) for variant in mutants(code, limit=10)]
    assert len(lines) <= 10
    assert max(lines) > 80
