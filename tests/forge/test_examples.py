"""Examples of the user."""

import re

import pytest

from habilis.core.errors import ForgeError
from habilis.forge.examples import check_signature


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
