"""Examples of the user."""

import re

import pytest

from habilis.core.errors import ForgeError
from habilis.forge.build.examples import check_signature, wanted_parameters
from tests.cases import each_case


@each_case(
    ('definition', 'problem'),
    [
        ('def f(a: int) -> int: ...', ''),
        ('def f(a: float, *more: int) -> float: ...', ''),
        ('def f(a) -> object: ...', ''),
        ('def f() -> int: ...', 'f(2) must be a possible call: too many positional arguments'),
        ('def f(a: int, b: int) -> int: ...', "f(2) must be a possible call: missing a required argument: 'b'"),
        ('def f(a: str) -> int: ...', 'f(2) must be a possible call: a: 2 does not fit its type hint'),
        ('def f(a: int) -> list[int]: ...', 'f(2) == 4 must be possible: 4 does not fit its type hint'),
    ],
)
def test_a_signature_must_admit_the_examples(definition: str, problem: str) -> None:
    if not problem:
        check_signature(definition, ['f(2) == 4'])
        return
    with pytest.raises(ForgeError, match=re.escape(problem)):
        check_signature(definition, ['assert f(2) == 4'])


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
