"""Plain data of every kind, for tests with random values, and how to compare it exactly."""

import datetime
from typing import cast

from hypothesis import strategies as st

any_text = st.text(st.characters(exclude_categories=()), max_size=20)  # lone surrogates too
seconds = st.integers(-86_399, 86_399).map(lambda number: datetime.timedelta(seconds=number))
zones = st.none() | seconds.map(datetime.timezone)  # Python misreads offsets of less than a second
keys = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers().map(lambda number: number << 20_000),
    st.floats(),
    any_text,
    st.just('$'),
    st.binary(max_size=20),
    st.complex_numbers(allow_nan=False),
    st.datetimes(timezones=zones),
    st.dates(),
    st.times(timezones=zones),
    st.timedeltas(),
    st.decimals().filter(lambda value: not value.is_snan()),  # that one cannot be hashed
    st.fractions(),
    st.uuids(),
)
frozen = st.recursive(
    keys, lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3), max_leaves=6
)
plain = st.recursive(
    keys | st.binary(max_size=20).map(bytearray) | st.sets(frozen, max_size=3) | frozen,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(frozen, inner, max_size=4),
        st.dictionaries(any_text, inner, max_size=4),
    ),
    max_leaves=20,
)


def shape(value: object) -> object:
    """Type and content all the way down, so that `1`, `True` and `1.0`, or `0.0` and `-0.0`, are told apart."""
    kind = type(value).__name__
    if isinstance(value, (list, tuple)):
        return kind, [shape(item) for item in cast('list[object]', value)]
    if isinstance(value, (set, frozenset)):
        return kind, sorted(repr(shape(item)) for item in cast('set[object]', value))
    if isinstance(value, dict):
        return kind, [(shape(key), shape(item)) for key, item in cast('dict[object, object]', value).items()]
    return kind, hex(value) if isinstance(value, int) else repr(value)
