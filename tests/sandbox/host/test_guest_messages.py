"""Parsing messages of a guest: the same values as JSON, within bounds, and without holding up other threads."""

import json
import threading
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.core import codec
from habilis.core.codec import CodecError, Json
from habilis.sandbox.host import guest_messages
from habilis.sandbox.host.guest_messages import parse_answer, parse_message

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=40,
)


@given(value=JSON, piece=st.integers(min_value=24, max_value=60), indent=st.sampled_from([None, 1]))
def test_a_text_parsed_in_pieces_is_what_json_makes_of_it(value: Json, piece: int, indent: int | None) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guest_messages, 'PARSED_AT_ONCE', max(piece, longest_number(value) + 2))
        assert parse_message(json.dumps(value, indent=indent)) == value


def longest_number(value: Json) -> int:
    if isinstance(value, dict):
        return max(map(longest_number, value.values()), default=0)
    if isinstance(value, list):
        return max(map(longest_number, value), default=0)
    return 0 if isinstance(value, str) else len(json.dumps(value))


@given(
    value=JSON,
    piece=st.integers(min_value=4, max_value=40),
    cut=st.integers(0, 200),
    put=st.text('[]{},:"\\1 ', max_size=3),
)
def test_a_damaged_text_is_refused_or_what_json_makes_of_it(value: Json, piece: int, cut: int, put: str) -> None:
    text = json.dumps(value)
    text = text[:cut] + put + text[cut + 1 :]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guest_messages, 'PARSED_AT_ONCE', piece)
        try:
            parsed = parse_message(text)
        except CodecError:
            return
    assert parsed == json.loads(text)


MILLION = 1_000_000
FORGED: dict[str, Callable[[], str]] = {
    'tagged values': lambda: '{"value":[' + '{"$":"decimal","v":"1"},' * 1_300_000 + '1]}',
    'tuples': lambda: '{"value":[' + '{"$":"tuple","v":[]},' * 400_000 + '1]}',
    'keys': lambda: '{"value":{' + ','.join(f'"{number}":1' for number in range(400_000)) + '}}',
    'the same key': lambda: '{"value":{' + '"k":[],' * 400_000 + '"k":1}}',
    'a huge key': lambda: '{"value":{"' + 'k' * (60 << 20) + '":1}}',
    'lists': lambda: '{"value":[' + '[],' * 900_000 + '1]}',
    'nested lists': lambda: '{"value":' + '[' * 150 + '[1],' * MILLION + '1' + ']' * 150 + '}',
    'deep and long again and again': lambda: (
        '{"value":[' + ('[' * 150 + '1,' * 33_000 + '1' + ']' * 150 + ',') * 30 + '1]}'
    ),
    'very deep': lambda: '{"value":' + '[' * 10 * MILLION + '}',
    'numbers of 4,000 digits': lambda: '{"value":[' + ('9' * 4000 + ',') * 2000 + '1]}',
    'a number of a million digits': lambda: '{"value":' + '9' * MILLION + '}',
    'a float of a million digits': lambda: '{"value":1.' + '9' * MILLION + '}',
    'an exponent of a million digits': lambda: '{"value":1e' + '9' * MILLION + '}',
    'not a number': lambda: '{"value":[' + 'NaN,' * MILLION + '1]}',
    'escapes': lambda: '{"value":"' + '\\u00e9' * (10 * MILLION) + '"}',
    'a long string': lambda: '{"value":"' + 'x' * (60 << 20) + '"}',
    'too long': lambda: '{"value":"' + 'x' * (70 << 20) + '"}',
    'too many parts': lambda: '{"value":[' + '[],' * (10 * MILLION) + '1]}',
    'brackets in strings': lambda: '{"value":["' + '[' * (30 * MILLION) + '","' + ',' * (30 * MILLION) + '"]}',
    'spaces': lambda: '{"value":[1,' + ' ' * (60 << 20) + '1]}',
    'an unfinished string': lambda: '{"value":"' + '\\"' * (20 * MILLION),
    'hexadecimal': lambda: '{"value":{"$":"int","v":"' + 'f' * (60 << 20) + '"}}',
    'a decimal': lambda: '{"value":{"$":"decimal","v":"' + '9' * (30 << 20) + '"}}',
    'a real number as text': lambda: '{"value":{"$":"float","v":"' + '9' * (30 << 20) + '"}}',
    'a date': lambda: '{"value":{"$":"date","v":"' + '9' * (30 << 20) + '"}}',
    'an id': lambda: '{"value":{"$":"uuid","v":"' + '{' * (30 << 20) + '"}}',
}


@pytest.mark.parametrize('name', FORGED)
def test_a_forged_answer_does_not_hold_up_other_threads(name: str) -> None:
    """It is parsed by one thread; another one counts how long it got no turn."""
    text = FORGED[name]()
    done = threading.Event()
    longest = 0.0

    def parse() -> None:
        try:
            codec.unpack(parse_answer(text)['value'])
        except CodecError:
            pass
        finally:
            done.set()

    thread = threading.Thread(target=parse)
    thread.start()
    while not done.is_set():
        before = thread_clock()
        done.wait(0.001)
        longest = max(longest, thread_clock() - before)
    thread.join()
    assert longest < 1.5


def thread_clock() -> float:
    """Seconds of computing by this process: what other processes take does not count."""
    return time.process_time()


@pytest.mark.parametrize(
    ('name', 'limit'),
    [('too long', 'more than the 67,108,864 allowed'), ('too many parts', 'more than 4,000,000 parts')],
)
def test_the_error_names_the_limit(name: str, limit: str) -> None:
    with pytest.raises(CodecError, match=limit):
        parse_answer(FORGED[name]())


def test_a_value_of_too_many_parts_is_refused() -> None:
    with pytest.raises(CodecError, match='a value of more than 1,000,000 parts'):
        codec.unpack(parse_answer(FORGED['tagged values']())['value'])


def test_the_largest_values_of_every_kind_come_back() -> None:
    items: list[object] = [1, (), {}, {1: 2}, 1j, [], 'é"[,']
    for item in items:
        value = [item] * (codec.MAX_NODES // 20)
        text = codec.encode(value)
        codec.check_size(text)
        assert codec.unpack(parse_message(text)) == value


def test_the_deepest_long_values_come_back() -> None:
    wraps: list[Callable[[object], object]] = [
        lambda inner: [inner, 'x' * 800],
        lambda inner: (inner, 'x' * 800),
        lambda inner: {1: inner, 2: 'x' * 800},
    ]
    for wrap in wraps:
        value: object = 'core'
        for _ in range(95):
            value = wrap(value)
        text = codec.encode([value, value])
        assert len(text) > guest_messages.PARSED_AT_ONCE
        assert codec.unpack(parse_message(text)) == [value, value]
