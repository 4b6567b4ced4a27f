"""The codec: every plain value comes back as it was, and no text can do harm."""

import datetime
import decimal
import enum
import json
import math
import uuid
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.core.codec import (
    MAX_DEPTH,
    MAX_NODES,
    CodecError,
    Json,
    NotPlain,
    TooLarge,
    decode,
    dump,
    dump_with,
    encode,
    pack,
    parse_with,
    unpack,
)
from tests.cases import each_case
from tests.core.plain import any_text, plain, shape

# What comes back ------------------------------------------------------------------------------------------------------


@given(plain)
def test_every_plain_value_comes_back_with_its_exact_types(value: object) -> None:
    assert shape(decode(encode(value))) == shape(value)


@given(plain)
def test_a_message_is_plain_ascii_json(value: object) -> None:
    text = encode(value)
    assert text.isascii()
    assert json.loads(text, parse_constant=_no_constants) == pack(value)


def _no_constants(name: str) -> object:
    raise AssertionError(f'{name} is not JSON')


@each_case(
    'value',
    [
        -0.0,
        math.nan,
        complex(-0.0, math.inf),
        math.inf,
        10**5000,
        -(10**5000),
        1 << 4096,
        (1 << 4096) - 1,
        '\ud800',
        'a\0b\u2028\U0001f600',
        {},
        (),
        set[int](),
        frozenset[int](),
        b'',
        bytearray(),
        '',
        {'$': 'tuple', 'v': [1]},
        {'$': 1},
        {'v': 1},
        {1: 'int', '1': 'str', 1.5: 'float', (1, 2): 'tuple', None: 'none'},
        {'a': {'$': {'$': {}}}},
        datetime.datetime.max,  # noqa: DTZ901
        datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),
        datetime.timedelta.min,
        decimal.Decimal('-0.00'),
        decimal.Decimal('sNaN123'),
        decimal.Decimal('1E+999999'),
        Fraction(-1, 3),
        uuid.UUID(int=0),
    ],
)
def test_the_awkward_values_come_back(value: object) -> None:
    assert shape(decode(encode(value))) == shape(value)


# Subclasses -----------------------------------------------------------------------------------------------------------


class Colour(enum.IntEnum):
    RED = 1


class Word(enum.StrEnum):
    YES = 'yes'


class Point(NamedTuple):
    x: int
    y: float


class HostileText(str):
    def __str__(self) -> str:
        return 'lie'

    def __repr__(self) -> str:
        raise RuntimeError

    def encode(self, encoding: str = '', errors: str = '') -> bytes:
        return b'lie'


class HostileInt(int):
    def __int__(self) -> int:
        return 666

    def __index__(self) -> int:
        return 666

    def __repr__(self) -> str:
        return '1]}'

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


class HostileFloat(float):
    def __repr__(self) -> str:
        return '1]}'

    def __float__(self) -> float:
        return 666.0


def _tally() -> defaultdict[str, list[int]]:
    tally = defaultdict[str, list[int]](list)
    tally['a'].append(1)
    return tally


@each_case(
    ('value', 'plain_value'),
    [
        (Colour.RED, 1),
        (Word.YES, 'yes'),
        (Point(1, 2.0), (1, 2.0)),
        (_tally(), {'a': [1]}),
        (Counter('aab'), {'a': 2, 'b': 1}),
        (OrderedDict[str, int](b=1, a=2), {'b': 1, 'a': 2}),
        (HostileText('truth'), 'truth'),
        ([HostileInt(7)], [7]),
        ({HostileText('k'): HostileFloat(1.5)}, {'k': 1.5}),
        ({Colour.RED: 1, Word.YES: 2}, {1: 1, 'yes': 2}),
        (HostileInt(1 << 5000), 1 << 5000),
        (HostileFloat(math.inf), math.inf),
    ],
)
def test_a_subclass_travels_as_the_plain_value_it_is(value: object, plain_value: object) -> None:
    assert shape(decode(encode(value))) == shape(plain_value)


def test_a_default_dict_is_not_changed_by_looking_at_it() -> None:
    tally = _tally()
    encode(tally)
    assert list(tally) == ['a']


# What is refused ------------------------------------------------------------------------------------------------------


class Thing:
    pass


@pytest.mark.parametrize(
    ('value', 'path'),
    [
        (Thing(), ''),
        ([1, Thing()], '[1]'),
        ({'a': [0, (1, {'b': Thing()})]}, "['a'][1][1]['b']"),
        ({1: Thing()}, '[1]'),
        ({('x', 1): {2.5: Thing()}}, "[('x', 1)][2.5]"),
        ({'$': [Thing()]}, "['$'][0]"),
    ],
    ids=['itself', 'list', 'nested', 'int key', 'tuple key', 'dollar key'],
)
def test_what_is_not_plain_is_named_with_its_place(value: object, path: str) -> None:
    with pytest.raises(NotPlain, match='is not plain data but a Thing') as caught:
        encode(value)
    assert caught.value.path == path
    assert str(caught.value).startswith(path or 'the value')


def test_a_key_that_is_not_plain_is_distinguished_from_a_value() -> None:
    with pytest.raises(NotPlain, match=r"\['a'\] has a key that is not plain data but a Thing"):
        encode({'a': {Thing(): 1}})


@each_case('value', [print, object(), Thing, range(3), memoryview(b''), iter([]), (1).__add__, ...])
def test_what_only_looks_like_data_is_refused(value: object) -> None:
    with pytest.raises(NotPlain):
        encode({'a': value})


def nest(levels: int, wrap: Callable[[object], object]) -> object:
    value: object = 1
    for _ in range(levels):
        value = wrap(value)
    return value


WRAPS: dict[str, Callable[[object], object]] = {
    'list': lambda value: [value],
    'tuple': lambda value: (value,),
    'dict': lambda value: {'a': value},
    'frozenset': lambda value: frozenset([value]),
}


@pytest.mark.parametrize('wrap', WRAPS.values(), ids=WRAPS.keys())
def test_depth_is_bounded_and_what_is_within_the_bound_comes_back(wrap: Callable[[object], object]) -> None:
    deepest = nest(MAX_DEPTH, wrap)
    assert decode(encode(deepest)) == deepest
    with pytest.raises(NotPlain, match='nested deeper than 200 levels'):
        encode(wrap(deepest))


def test_what_contains_itself_is_refused() -> None:
    around: list[object] = []
    around.append({'again': around})
    with pytest.raises(NotPlain, match='nested deeper'):
        encode(around)


def test_a_billion_laughs_are_refused_before_they_are_written_out() -> None:
    laughs: object = ['ha'] * 10
    for _ in range(9):
        laughs = [laughs] * 10
    with pytest.raises(NotPlain, match='has more than 1,000,000 parts'):
        encode(laughs)
    assert len(cast('list[object]', decode(encode([0] * (MAX_NODES - 1))))) == MAX_NODES - 1


# What arrives ---------------------------------------------------------------------------------------------------------

TAGS = ('tuple set frozenset dict int float bytes bytearray complex datetime date time timedelta '
        'decimal fraction uuid').split()  # fmt: skip
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(any_text, inner, max_size=3)
        | st.fixed_dictionaries({'$': st.sampled_from(TAGS) | inner, 'v': inner})
    ),
    max_leaves=20,
)


@given(anything)
def test_unpacking_anything_gives_a_value_or_a_codec_error(message: Any) -> None:
    try:
        value = unpack(cast('Json', message))
    except CodecError:
        return
    assert shape(decode(encode(value))) == shape(value)


@given(st.text() | anything.map(json.dumps))
def test_decoding_anything_gives_a_value_or_a_codec_error(text: str) -> None:
    try:
        value = decode(text)
    except CodecError:
        return
    encode(value)


def tagged(tag: str, content: str) -> str:
    return f'{{"$":"{tag}","v":{content}}}'


@each_case(
    'text',
    [
        '',
        ' ',
        'nul',
        '1 2',
        '[1',
        '"\x00',
        '{"a":1,}',
        '[' * 100_000,
        '{"a":' * 100_000,
        '9' * 5000,
        tagged('os.system', '"id"'),
        tagged('builtins.eval', '"1"'),
        '{"$":"tuple"}',
        '{"$":"tuple","v":[],"w":1}',
        '{"$":["tuple"],"v":[]}',
        '{"$":null,"v":[]}',
        tagged('tuple', '{}'),
        tagged('set', '[[1]]'),
        tagged('frozenset', '[{}]'),
        tagged('dict', '[1]'),
        tagged('dict', '["ab"]'),
        tagged('dict', '[[1,2]]'),
        tagged('dict', '[{"$":"tuple","v":[[],1]}]'),
        tagged('int', '1'),
        tagged('int', '"0xg"'),
        tagged('float', '"one"'),
        tagged('bytes', '"a"'),
        tagged('bytes', '"é"'),
        tagged('complex', '["1"]'),
        tagged('datetime', '"yesterday"'),
        tagged('date', '"2024-13-01"'),
        tagged('time', '"25:00"'),
        tagged('timedelta', '[1e400,0,0]'),
        tagged('timedelta', '[99999999999,0,0]'),
        tagged('timedelta', '[1,2]'),
        tagged('decimal', '"1,5"'),
        tagged('fraction', '["0x1","0x0"]'),
        tagged('fraction', '["1"]'),
        tagged('uuid', '"0"'),
        tagged('uuid', '"{}"'),
    ],
)
def test_a_hostile_text_is_refused(text: str) -> None:
    with pytest.raises(CodecError):
        decode(text)


@pytest.mark.parametrize('wrap', ['{}', '{{"$":"tuple","v":[{},0]}}'], ids=['set', 'dict'])
def test_keys_chosen_to_collide_are_refused_at_once(wrap: str) -> None:
    same_hash = ','.join(wrap.format(number * ((1 << 61) - 1)) for number in range(100_000))
    with pytest.raises(CodecError, match='same hash'):
        decode(tagged('set' if wrap == '{}' else 'dict', f'[{same_hash}]'))


@pytest.mark.parametrize('wrap', ['{}', '{{"$":"tuple","v":[{},0]}}'], ids=['number', 'tuple'])
def test_keys_that_take_minutes_to_compare_are_refused_at_once(wrap: str) -> None:
    number = (1 << 3_300_000) + 1
    same = decimal.Decimal(hash(number))
    assert hash(same) == hash(number)
    keys = (tagged('int', f'"{number:#x}"'), tagged('decimal', f'"{same}"'))
    with pytest.raises(CodecError, match='a very long integer and a Decimal'):
        decode(tagged('set', f'[{",".join(wrap.format(key) for key in keys)}]'))
    assert decode(tagged('set', f'[{keys[0]}]')) == {number}


def test_a_fraction_that_would_take_minutes_to_make_is_refused_on_both_sides() -> None:
    with pytest.raises(CodecError, match='too many digits'):
        decode(tagged('fraction', f'["0x{"f" * 500_000}","0x{"d" * 500_001}"]'))
    with pytest.raises(NotPlain, match='more than 4,096 digits'):
        encode(Fraction(1, 3**20_000))


@pytest.mark.parametrize('tag', ['tuple', 'set', 'dict'])
def test_deep_tags_are_refused_and_do_not_overflow_the_stack(tag: str) -> None:
    deep = '[]'
    for _ in range(5000):
        deep = tagged(tag, f'[{deep}]')
    with pytest.raises(CodecError):
        decode(deep)


@given(st.dictionaries(st.text(), st.integers()), st.text())
def test_a_long_text_that_follows_the_message_comes_back_with_it(message: dict[str, int], long: str) -> None:
    whole: dict[str, Json] = {**message, 'state': long}
    assert parse_with(dump_with(whole, 'state'), 'state') == whole


def test_a_message_without_its_long_text_is_plain_json() -> None:
    assert dump_with({'a': 1}, 'state') == dump({'a': 1})
    assert parse_with('{"a":1}', 'state') == {'a': 1}
    assert parse_with('[1]\x1fx', 'state') == [1]


class Counterparts:
    """Its name has a word of the messages about size."""


def test_what_is_too_large_is_told_by_its_type_and_not_by_its_message() -> None:
    nested: list[object] = []
    for _ in range(MAX_DEPTH + 1):
        nested = [nested]
    with pytest.raises(TooLarge):
        pack({'a': nested})
    with pytest.raises(TooLarge):
        pack({(1, 2): nested})
    with pytest.raises(NotPlain) as other:
        pack([{'parts': Counterparts()}])
    assert not isinstance(other.value, TooLarge)
