"""What is read from the code of a tool."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.core.errors import ForgeError, HabilisError
from habilis.forge.source import read_source
from tests.cases import each_case

GOOD = '''
from library import other, more
from library.deep import not_a_tool


def half(number: float, /, *rest: int, digits: int = 2, **names: str) -> float:
    """Half of a number,
    rounded.

    The rest is ignored.
    """
    return round(number / 2, digits)
'''


def test_signature_summary_and_uses_are_read() -> None:
    source = read_source('half', GOOD)
    assert source.signature == 'half(number: float, /, *rest: int, digits: int=2, **names: str) -> float'
    assert source.summary == 'Half of a number, rounded.'
    assert source.documentation.endswith('The rest is ignored.')
    assert source.parameters == ('number', 'digits', 'rest', 'names')
    assert source.uses == ('other', 'more')


@each_case(
    ('code', 'reason'),
    [
        ('def half(', 'is not Python'),
        ('x = "\0"', 'is not Python'),
        ('(' * 5000, 'is not Python'),
        ('def other() -> int:\n    """X."""', 'defines 0'),
        ('def half() -> int:\n    """X."""\n' * 2, 'defines 2'),
        ('async def half() -> int:\n    """X."""', 'defines 0'),
        ('def half(a, b: int) -> int:\n    """X."""', 'type hint for a'),
        ('def half(a: int):\n    """X."""', 'type hint for its result'),
        ('def half(a: int) -> int:\n    return a', 'docstring'),
    ],
)
def test_code_that_cannot_be_a_tool_is_refused_with_the_reason(code: str, reason: str) -> None:
    with pytest.raises(ForgeError, match=reason):
        read_source('half', code)


NAMES = '../x|json|print|class||a b|__init__|final_answer|\ufb01x'
TAKEN = 'find_tools|make_tool|search_tools|tool|library|pytest|_half'
LOOK_ALIKE, LONG = 'h\u0430lf', 'x' * 200


@each_case('name', [*NAMES.split('|'), *TAKEN.split('|'), LOOK_ALIKE, LONG])
def test_names_that_would_hide_something_are_refused(name: str) -> None:
    with pytest.raises(HabilisError, match='cannot be the name of a tool'):
        read_source(name, GOOD)


@given(st.text(max_size=40), st.text(max_size=80))
def test_no_text_makes_it_crash(name: str, code: str) -> None:
    try:
        read_source(name, code)
    except HabilisError:
        return
