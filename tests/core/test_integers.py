"""Integers have a text at any size, and so has everything that contains them."""

import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from habilis.core.integers import (
    PRINTED_DIGITS,
    error_text,
    integer_text,
    read_integer,
    safe_repr,
    short_integer,
)
from habilis.core.previews import shorten
from tests.cases import each_case

LONG = 10**6000
HUGE = 7 << int(30e6)


class Model(BaseModel):
    number: int


@dataclass
class Point:
    x: int


@given(st.integers())
def test_the_text_of_an_integer_is_its_digits_and_can_be_read_again(value: int) -> None:
    assert integer_text(value) == str(value)
    assert read_integer(integer_text(value)) == value


@pytest.mark.parametrize('value', [LONG, -LONG, LONG + 12345, 10 ** (PRINTED_DIGITS - 1)], ids=range(4))
def test_more_digits_than_python_prints_are_written_and_read(value: int) -> None:
    text = integer_text(value)
    assert text.lstrip('-').isdecimal()
    assert read_integer(text) == value


def test_a_long_integer_is_shortened_to_its_first_and_last_digits() -> None:
    assert short_integer(LONG + 123) == '10000000000000000000…00000000000000000123 (6,001 digits)'
    assert short_integer(-LONG) == '-10000000000000000000…00000000000000000000 (6,001 digits)'
    assert (
        short_integer(10**100_000)
        == '1000000000000000000000000000000000000000'[:20] + '…' + '0' * 20 + ' (100,001 digits)'
    )
    assert integer_text(HUGE).endswith(' (9,030,901 digits)')


def test_too_many_digits_are_not_read() -> None:
    with pytest.raises(ValueError, match='more than 20,000 digits'):
        read_integer('9' * 1_000_000)


@each_case(
    ('value', 'start'),
    [
        (LONG, '1000'),
        ([1, LONG], '[1, 1000'),
        ({'a': (LONG,)}, "{'a': (1000"),
        ({LONG: 1}, '{1000'),
        ({LONG}, '{1000'),
        (Model(number=LONG), 'Model(number=1000'),
        (Point(LONG), 'Point(x=1000'),
        ([HUGE], '['),
    ],
)
def test_values_with_long_integers_have_a_repr(value: object, start: str) -> None:
    assert safe_repr(value).startswith(start)
    assert len(shorten(value, 100)) <= 100
    assert 'something' not in shorten(value, 100)


def test_errors_with_long_integers_have_a_text() -> None:
    assert error_text(ValueError(LONG)).startswith('ValueError: 1000')
    assert error_text(ValueError('no')) == 'ValueError: no'
    assert error_text(ValueError()) == 'ValueError'


def test_json_with_long_integers_is_read() -> None:
    assert json.loads(f'{{"n": {integer_text(LONG)}}}', parse_int=read_integer) == {'n': LONG}
