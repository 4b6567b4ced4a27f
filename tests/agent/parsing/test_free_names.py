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
        ('rows = rows()', {'rows'}),
        ('rows, x = [n for n in rows(1)], 2', {'rows'}),
        ('rows = 1\nrows = rows()', set[str]()),
        ('def rows(): ...\nrows = rows()', set[str]()),
        ('rows = tools.rows() + tools.more.other', {'tools', 'rows', 'more'}),
        ('tools = 1\ntools.rows', set[str]()),
    ],
)
def test_names_without_a_definition_are_found(code: str, expected: set[str]) -> None:
    assert free_names(code) == expected


def test_variables_are_not_free_but_a_tool_of_that_name_is() -> None:
    assert free_names('rows + other', {'rows': 1}) == {'other'}
    assert free_names('rows + tools.rows()', {'rows': 1}) == {'tools', 'rows'}
    assert free_names('tools.rows', {'tools': 1}) == set()


@given(st.text())
def test_any_text_is_accepted(code: str) -> None:
    assert free_names(code) is not None
