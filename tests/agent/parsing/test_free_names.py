"""Names that code uses without a definition of its own."""

from hypothesis import given
from hypothesis import strategies as st

from habilis.agent.parsing.free_names import free_names
from tests.cases import each_case


@each_case(
    ('code', 'expected'),
    [
        ('math.sqrt(2)', {'math'}),
        ('import math\nmath.sqrt(2)', set[str]()),
        ('import math as m\nm.sqrt(2) + math.pi', {'math'}),
        ('from collections import Counter\nCounter("abc")', set[str]()),
        ('def f(string):\n    return string.upper()', set[str]()),
        ('for time in []:\n    time.hour', set[str]()),
        ('class Path: ...\nPath()', set[str]()),
        ('print("math.sqrt")', set[str]()),
        ('with open("x") as io:\n    io.read()', set[str]()),
        ('this is not Python (', set[str]()),
        ('', set[str]()),
    ],
)
def test_names_without_a_definition_are_found(code: str, expected: set[str]) -> None:
    assert free_names(code) == expected


@given(st.text())
def test_any_text_is_accepted(code: str) -> None:
    assert free_names(code) is not None
