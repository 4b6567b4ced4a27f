"""Examples of the user."""

import re

import pytest

from habilis.core.errors import ForgeError
from habilis.forge.build.examples import fitted_signature, wanted_parameters
from tests.cases import each_case


@each_case(
    ('definition', 'problem'),
    [
        ('def f() -> int: ...', 'f(2) must be a possible call: too many positional arguments'),
        ('def f(a: int, b: int) -> int: ...', "f(2) must be a possible call: missing a required argument: 'b'"),
    ],
)
def test_a_signature_must_admit_the_examples(definition: str, problem: str) -> None:
    with pytest.raises(ForgeError, match=re.escape(problem)):
        fitted_signature(definition, ['assert f(2) == 4'])


@each_case(
    ('head', 'examples', 'fitted'),
    [
        ('(a: int) -> int', ['f(2) == 4'], '(a: int) -> int'),
        ('(a: float, *more: int) -> float', ['f(2) == 4', 'f(1, 2, 3) == 5'], '(a: float, *more: int) -> float'),
        ('(a) -> object', ['f(2) == 4'], '(a) -> object'),
        ('(a: str) -> bool', ["f('x') == 'Found'", "f('y') == 'None'"], '(a: str) -> str'),
        ('(a: str) -> int', ["f([1, 2], b='x') == [['a'], []]"], '(a: list[int], b: str) -> list'),
        ('(a: int) -> list[int]', ['f(1) == None', 'f(2) == {3}', 'g(2) == 4'], '(a: int) -> None | set[int]'),
    ],
)
def test_types_that_contradict_the_examples_are_taken_from_them(head: str, examples: list[str], fitted: str) -> None:
    definition = f'def f{head}: ...'.replace('(a: str) -> int', '(a: str, b: int) -> int')
    assert fitted_signature(definition, examples).startswith(f'def f{fitted}:')


@each_case(
    ('examples', 'parameters'),
    [
        (["assert f([1], 'a', b={2: 3}, m=None)"], '<name>: list, <name>: str, b: dict, m: <type>'),
        (['f(1) == f(2)', 'sorted(f(3.5)) == [3, len(x, y)]'], '<name>: <int or float>'),
        (['f(g(1)) == 1'], '<name>: <type>'),
        (['f(1) == 1', 'f(1, 2) == 2'], ''),
        (['f(*a) == 1', 'g(1) == 2'], ''),
        ([], ''),
    ],
)
def test_examples_show_the_parameters(examples: list[str], parameters: str) -> None:
    assert wanted_parameters(examples, 'f') == parameters
