"""Dataclasses as JSON: read by older and newer versions, with values of any plain type."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Literal

import pytest

from habilis.core import codec
from habilis.core.codec import Json
from habilis.core.dataclass_codec import DataclassCodec, pack_or_repr
from habilis.core.errors import NotDurable
from tests.cases import each_case


@dataclass(frozen=True, kw_only=True)
class Part:
    """A nested dataclass."""

    name: str
    size: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Whole:
    """A dataclass with a field of each kind."""

    value: object = None
    parts: tuple[Part, ...] = ()
    by_name: Mapping[str, Part] = field(default_factory=dict[str, Part])
    kind: Literal['a', 'b'] = 'a'
    data: str | bytes = ''
    part: Part | None = None
    at: datetime | None = None


WHOLE = DataclassCodec(Whole)


def again(value: Whole) -> Whole:
    """Encoded, stored as text, and decoded."""
    return WHOLE.decode(codec.parse(codec.dump(WHOLE.encode(value))))


VALUES: list[object] = [
    Decimal('1.50'),
    date(2024, 1, 2),
    b'\xff',
    bytearray(b'x'),
    {1, 2},
    frozenset({1}),
    (1, [2, (3,)]),
    10**5000,
    math.inf,
    1j,
    '\ud800',
    {1: 2, (3, 4): 5},
    {'$': 'tuple', 'v': [1]},
    False,
    0,
    '',
]


@each_case('value', VALUES)
def test_plain_values_are_decoded_exactly(value: object) -> None:
    decoded = again(Whole(value=value)).value
    assert decoded == value
    assert type(decoded) is type(value)


def test_nan_is_decoded() -> None:
    assert math.isnan(float(str(again(Whole(value=math.nan)).value)))


def test_nested_dataclasses_are_decoded() -> None:
    part = Part(name='x', size=1.5)
    whole = Whole(parts=(part, Part(name='y')), by_name={'z': part}, kind='b', data=b'1', part=part)
    assert again(whole) == whole
    assert again(Whole(at=datetime(2024, 1, 1, tzinfo=UTC))).at == datetime(2024, 1, 1, tzinfo=UTC)


def test_defaults_are_not_encoded() -> None:
    assert WHOLE.encode(Whole()) == {}
    assert WHOLE.encode(Whole(part=Part(name='x'))) == {'part': {'name': 'x'}}


def test_unknown_fields_are_ignored_and_absent_ones_have_their_defaults() -> None:
    assert WHOLE.decode({'part': {'name': 'x', 'new': 1}, 'newer': []}) == Whole(part=Part(name='x'))


class Thing:
    """Not plain data."""

    def __repr__(self) -> str:
        return 'a thing'


def test_values_that_are_not_plain_data_become_their_repr() -> None:
    assert again(Whole(value=[Thing(), {'a': (Thing(), 1), Thing(): 2}])).value == [
        'a thing',
        {'a': ('a thing', 1), 'a thing': 2},
    ]
    assert pack_or_repr({'part': Part(name='x'), 'thing': Thing()}) == {
        'part': {'name': 'x', 'size': 0.0},
        'thing': 'a thing',
    }
    assert pack_or_repr(MappingProxyType({'a': 1})) == {'a': 1}


def test_a_list_that_contains_itself_is_packed_as_text_at_some_depth() -> None:
    endless: list[object] = []
    endless.append(endless)
    assert '[[...]]' in codec.dump(pack_or_repr(endless))
    assert isinstance(again(Whole(value=endless)).value, list)


def test_a_value_that_is_too_large_is_refused() -> None:
    with pytest.raises(NotDurable, match=r'this Whole cannot be saved: .*more than 1,000,000 parts'):
        WHOLE.encode(Whole(value=[0] * 1_000_001))


DAMAGED: list[tuple[Json, str]] = [
    (None, 'dictionary'),
    ([1], 'dictionary'),
    ({'$': 'tuple', 'v': 5}, 'expected a list'),
    ({'$': 'odd', 'v': 5}, 'unknown tag'),
    ({'parts': 5}, 'parts: '),
    ({'parts': [{'name': 5}]}, 'parts.0.name: '),
    ({'kind': 'c'}, 'kind: '),
    ({'part': {}}, 'part.name: Field required'),
]


@each_case(('written', 'reason'), DAMAGED)
def test_damaged_data_is_refused_with_the_place(written: Json, reason: str) -> None:
    with pytest.raises(NotDurable, match=f'saved Whole cannot be read.*{reason}'):
        WHOLE.decode(written)
