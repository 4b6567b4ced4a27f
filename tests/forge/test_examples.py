"""Examples of the user."""

import re

import pytest

from habilis.core.errors import ForgeError
from habilis.forge.examples import check_signature, number_of_arguments


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    ('examples', 'count'),
    [
        (['assert f([1], 1, b=[2], m=1)'], 4),
        (['f(1) == f(2)', 'sorted(f(3)) == [3, len(x, y)]'], 1),
        (['f() == 1'], 0),
        (['f(1) == 1', 'f(1, 2) == 2'], None),
        (['f(*a) == 1', 'g(1) == 2'], None),
        ([], None),
    ],
)
def test_examples_tell_the_number_of_arguments(examples: list[str], count: int | None) -> None:
    assert number_of_arguments(examples, 'f') == count
