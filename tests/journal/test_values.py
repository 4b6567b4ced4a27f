"""Values: written as JSON and read again exactly, told apart by digests, and refused with a way out."""

import array
import asyncio
import datetime
import decimal
import enum
import math
import os
import pathlib
import subprocess
import sys
import types
import uuid
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from habilis.core.codec import Json, dump, parse
from habilis.core.errors import NotDurable
from habilis.journal.values import PLAIN, Codec, fingerprint, plain_value
from tests.cases import each_case
from tests.core.plain import any_text, plain, shape


class Colour(enum.Enum):
    """Not a plain value."""

    RED = 'r'
    BLUE = 'b'


class Size(enum.StrEnum):
    """A plain value with a class."""

    BIG = 'big'


class Pair(NamedTuple):
    """Another."""

    left: int
    right: str


@dataclass
class Part:
    """With fields of many types."""

    number: float = 0.0
    when: datetime.datetime | None = None
    amount: decimal.Decimal = decimal.Decimal(0)
    tags: set[str] = field(default_factory=set[str])
    pair: tuple[int, str] = (0, '')
    data: bytes = b''
    inner: 'list[Part]' = field(default_factory=list['Part'])


class Strict(BaseModel):
    """That takes no other type for its own."""

    model_config = ConfigDict(strict=True)
    when: datetime.datetime
    colour: Colour


@dataclass
class Cat:
    """An animal."""

    name: str


@dataclass
class Dog:
    """One with the same fields."""

    name: str


class Client:
    """What is no data."""


def _again(codec: Codec[Any], value: object) -> object:
    return codec.read(parse(dump(codec.write(value))))


# Plain ----------------------------------------------------------------------------------------------------------------


@given(plain)
def test_plain_values_come_back_exactly(value: object) -> None:
    assert shape(_again(PLAIN, value)) == shape(value)


@given(plain)
def test_a_value_is_kept_as_a_replay_gives_it(value: object) -> None:
    assert shape(PLAIN.as_replayed(value, PLAIN.write(value))) == shape(value)


@each_case('value', [Size.BIG, Pair(1, 'x'), Counter('aab'), defaultdict(int, x=1), [Pair(1, 'y')]])
def test_a_subclass_of_a_plain_type_is_that_type_the_first_time_already(value: object) -> None:
    written = PLAIN.write(value)
    kept, read = PLAIN.as_replayed(value, written), PLAIN.read(written)
    assert kept == read == value
    assert shape(kept) == shape(read)


@pytest.mark.parametrize(('kind', 'value'), [(Size, Size.BIG), (Pair, Pair(1, 'x')), (Counter[str], Counter('aab'))])
def test_a_subclass_of_a_plain_type_comes_back_if_it_is_named(kind: object, value: object) -> None:
    codec = Codec[object](kind)
    assert type(_again(codec, value)) is type(value)
    assert type(codec.as_replayed(value, codec.write(value))) is type(value)


# With a type ----------------------------------------------------------------------------------------------------------


@given(
    st.floats(allow_nan=False),
    st.none() | st.datetimes(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.sets(any_text.filter(lambda text: text.isprintable()), max_size=3),
    st.binary(max_size=5).filter(lambda data: data.isascii()),
)
def test_dataclasses_come_back(
    number: float, when: datetime.datetime | None, amount: decimal.Decimal, tags: set[str], data: bytes
) -> None:
    part = Part(number, when, amount, tags, (1, 'x'), data, [Part(number)])
    assert _again(Codec[object](Part), part) == part


def test_a_field_that_is_not_a_number_comes_back() -> None:
    part = _again(Codec[object](Part), Part(math.nan))
    assert isinstance(part, Part)
    assert math.isnan(part.number)


def test_strict_models_come_back() -> None:
    value = Strict(when=datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC), colour=Colour.BLUE)
    assert _again(Codec[object](Strict), value) == value


@each_case('kind', [None, Any, type(None), Annotated[dict[str, int], {'not': 'hashable'}], 'Undefined'])
def test_plain_values_need_no_type_that_says_anything(kind: object) -> None:
    assert _again(Codec[object](kind), {'x': 1}) == {'x': 1}


def test_a_value_is_read_after_its_type_has_got_a_field_with_a_default() -> None:
    assert Codec[object](Part).read({'t': {'number': 2.0}}) == Part(2.0)


# Refused --------------------------------------------------------------------------------------------------------------


@each_case(
    ('kind', 'value', 'why'),
    [
        (None, Client(), 'Client .*not plain data'),
        (None, [1, {'x': Client()}], r"list \(\[1\]\['x'\] is not plain data but a Client"),
        (None, Colour.RED, 'Colour'),
        (Client, Client(), 'Client .* cannot be used'),
        ('Undefined', Client(), 'Client .* cannot be used'),
        (Part, Client(), 'Client'),
        (int, Client(), 'Client'),
        (int, 'many', 'str .*valid integer'),
        (Part, None, 'NoneType'),
        (Cat | Dog, Dog('Rex'), 'Dog .*decoded as Cat'),
        (Part, Part(data=b'\xff\xfe'), 'Part .*utf-8'),
        (list[Part], [Part(), Client()], 'list'),
    ],
)
def test_what_cannot_be_saved_says_why_and_what_to_do(kind: object, value: object, why: str) -> None:
    with pytest.raises(NotDurable, match=f'the answer of f cannot be saved, because its type is {why}') as refused:
        Codec[object](kind, what='the answer of f').write(value)
    assert 'return plain data, or a dataclass or pydantic model with a' in str(refused.value)


@each_case(
    ('kind', 'written', 'why'),
    [
        (int, {'p': 'many'}, 'no longer matches its type'),
        (Part, {'t': {'number': 'x'}}, 'no longer matches its type'),
        (None, {'t': {'number': 1}}, 'add it again'),
        (None, {'p': {'$': 'unknown', 'v': 1}}, 'unknown tag'),
        (None, None, 'not saved by'),
        (None, [], 'not saved by'),
        (None, {}, 'not saved by'),
        (int, 'p', 'not saved by'),
    ],
)
def test_what_cannot_be_read_any_more_says_why(kind: object, written: Json, why: str) -> None:
    with pytest.raises(NotDurable, match=why):
        Codec[object](kind).read(written)


# Digests --------------------------------------------------------------------------------------------------------------

DIFFERENT: list[object] = [
    None,
    0,
    0.0,
    False,
    '',
    [],
    (),
    {},
    set[int](),
    b'',
    'a',
    ['a'],
    ('a',),
    {'a'},
    {'a': None},
    {'a': 1, 'b': 2},
    [1, 2],
    [2, 1],
    {1: 'x'},
    {'1': 'x'},
    Colour.RED,
    Colour.BLUE,
    Cat('x'),
    Dog('x'),
    Cat('y'),
    [Cat('x')],
    (Cat('x'),),
    {'a': Cat('x')},
    {'a': Cat('y')},
    Part(1),
    Part(2),
    Strict(when=datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), colour=Colour.RED),
    Strict(when=datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), colour=Colour.BLUE),
    {Colour.RED},
    {Colour.BLUE},
    frozenset({Colour.BLUE}),
    pathlib.PurePosixPath('a'),
    pathlib.PurePosixPath('b'),
    deque([Client(), 1]),
    deque([Client(), 2]),
    range(3),
    range(4),
    types.MappingProxyType({'a': 1}),
    types.MappingProxyType({'a': 2}),
    array.array('i', [1, 2]),
    array.array('i', [2, 1]),
    array.array('h', [1, 2]),
    memoryview(b'abc'),
    memoryview(b'abd'),
    Client(),
    Client,
    Part,
    len,
    asyncio.sleep,
    math.nan,
    10**5000,
    10**5000 + 1,
    '\ud800',
]


def test_different_inputs_have_different_digests() -> None:
    digests = [fingerprint(value) for value in DIFFERENT]
    for number, digest in enumerate(digests):
        assert digests.index(digest) == number, (DIFFERENT[number], DIFFERENT[digests.index(digest)])
        assert digest.isalnum()
        assert len(digest) == 16


@given(plain, plain)
def test_plain_inputs_that_differ_have_different_digests(one: object, other: object) -> None:
    same = fingerprint(one) == fingerprint(other)
    assert same or shape(one) != shape(other)
    assert fingerprint(one) != fingerprint(one, one)


@given(st.dictionaries(any_text | st.integers(), st.integers(), max_size=6), st.randoms())
def test_the_order_of_a_dict_means_nothing(value: dict[str | int, int], random: Random) -> None:
    items = list(value.items())
    random.shuffle(items)
    assert fingerprint(dict(items)) == fingerprint(value)
    assert fingerprint(types.MappingProxyType(dict(items))) == fingerprint(types.MappingProxyType(value))


def test_what_is_no_data_counts_by_its_type_and_not_by_its_address() -> None:
    assert fingerprint(Client()) == fingerprint(Client())
    assert fingerprint([Client(), 1]) == fingerprint([Client(), 1])
    assert fingerprint(lambda: 1) == fingerprint(lambda: 2)


def test_what_is_in_itself_has_a_digest() -> None:
    loop: list[object] = []
    loop.append(loop)
    assert fingerprint(loop)


SHOW = """
import sys, datetime, enum
from dataclasses import dataclass
from habilis.journal import fingerprint

class Colour(enum.Enum):
    RED = 1
    BLUE = 2
    GREEN = 3

@dataclass(frozen=True)
class Name:
    text: str
    tags: frozenset

names = ['x', 'y', 'z', 'w', 'käse']
names_in_any_order = set(names)
print(fingerprint(
    names_in_any_order, {1: names_in_any_order}, [frozenset(names), ()], {(n, 1) for n in names},
    {n: n for n in names_in_any_order}, {(n,): n for n in names_in_any_order},
    {Name(n, frozenset(names)) for n in names}, set(Colour), {c: 1 for c in set(Colour)}, object(), print, b'x',
    datetime.datetime(2020, 1, 1),
))
"""


def test_digests_are_the_same_in_every_process() -> None:
    digests = {
        subprocess.run(
            [sys.executable, '-c', SHOW], env=os.environ | {'PYTHONHASHSEED': seed}, capture_output=True, check=True
        ).stdout
        for seed in ('1', '2', '3', '4')
    }
    assert len(digests) == 1


def test_digests_of_recorded_runs_do_not_change_with_this_program() -> None:
    value = [1, 'x', (2.5, None), {'b': b'x', 'a': {3}}, uuid.UUID(int=7)]
    assert fingerprint(value, 'second') == 'a1c780f1fab97bd4'


def test_a_value_is_read_without_its_type_for_people_who_look_at_it() -> None:
    @dataclass
    class City:
        name: str
        price: decimal.Decimal

    assert plain_value(PLAIN.write((1, decimal.Decimal('2.50')))) == (1, decimal.Decimal('2.50'))
    assert plain_value(Codec[City](City).write(City('Oslo', decimal.Decimal('2.50')))) == {
        'name': 'Oslo',
        'price': '2.50',
    }
    others: list[Json] = [None, 5, {'code': 'x'}]
    for other in others:
        with pytest.raises(NotDurable):
            plain_value(other)
