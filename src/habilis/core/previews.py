"""Short texts of values, for records, messages and the `repr` of what users print."""

import dataclasses
import reprlib
from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar, Protocol

from habilis.core.integers import short_integer

MAX_DECIMAL_BITS = 2000
"""Larger integers are shortened: Python may refuse to print more than 640 digits, and takes quadratic time for them."""

FIELD_LENGTH = 60
"""Max characters of a field in the `repr` of a dataclass."""

RESULT_LENGTH = 200
"""Max characters of a result in the record of a call."""


class _Repr(reprlib.Repr):
    def repr_dict(self, x: dict[object, object], level: int) -> str:
        """In the order that it has, not sorted."""
        if level <= 0:
            return '{...}'
        pairs = [f'{self.repr1(key, level - 1)}: {self.repr1(x[key], level - 1)}' for key in islice(x, self.maxdict)]
        return f'{{{", ".join([*pairs, "..."] if len(x) > self.maxdict else pairs)}}}'

    def repr_int(self, x: int, level: int) -> str:
        """In decimal unless that takes long, or Python refuses it."""
        if x.bit_length() <= MAX_DECIMAL_BITS:
            return repr(x)
        return short_integer(x)


_repr = _Repr()
_repr.maxstring = _repr.maxother = 200
_repr.maxlist = _repr.maxtuple = _repr.maxdict = _repr.maxset = 20
_repr.maxlevel = 4


def shorten(value: object, length: int) -> str:
    """The start of a value's `repr`, on one line. A large value is not formatted as a whole."""
    try:
        text = ' '.join(_repr.repr(value).split())
    except Exception:  # a `__repr__` may do anything
        text = f'something ({type(value).__name__})'
    return text if len(text) <= length else f'{text[: length - 1]}…'


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


def short_repr(value: _Dataclass, length: int = FIELD_LENGTH) -> str:
    """A dataclass on one line: the fields that differ from their defaults, each shortened."""
    fields = (f'{name}={shorten(item, length)}' for name, item in _changed_fields(value))
    return f'{type(value).__name__}({", ".join(fields)})'


def _changed_fields(value: _Dataclass) -> Iterator[tuple[str, object]]:
    for field in dataclasses.fields(value):
        item: object = getattr(value, field.name)
        if isinstance(item, float):
            item = float(f'{item:.4g}')
        factory = field.default_factory
        default: object = field.default if factory is dataclasses.MISSING else factory()
        if field.repr and (item is not default and item != default):
            yield field.name, item


def format_size(count: int) -> str:
    """A number of bytes: 1.1 GB, 491 MB, 9.2 kB, 30 bytes."""
    if count >= 1_000_000_000:
        return f'{count / 1e9:.1f} GB'
    if count >= 1_000_000:
        return f'{count / 1e6:.0f} MB'
    return f'{count / 1e3:.1f} kB' if count >= 1000 else f'{count} bytes'
