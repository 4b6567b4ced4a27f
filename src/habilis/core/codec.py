"""Lossless JSON codec for plain data: keeps tuples, key types, bytes and dates.

JSON's own types are encoded as they are; other values are objects with the keys `$` (tag) and `v` (value). The same
file runs on the host and inside the sandbox. The host treats its input as hostile: an invalid message raises
`CodecError`, and no class is ever looked up by name.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import decimal
import fractions
import json
import json.encoder
import math
import re
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, Union, cast

Json = Union[None, bool, int, float, str, list['Json'], dict[str, 'Json']]  # noqa: UP007 - for Python 3.9

MAX_DEPTH = 200
MAX_NODES = 1_000_000
MAX_CHARACTERS = 64 << 20  # of a message from the sandbox, without the saved variables
MAX_PARTS = 4 * MAX_NODES  # opening brackets and commas of a message; no value takes more than four per node
MAX_FRACTION_DIGITS = 4096  # hexadecimal; creating a fraction takes quadratic time
MAX_SAME_HASH = 100
MAX_COMPARED_BITS = 40_000  # comparing a longer integer with a Decimal takes quadratic time
MAX_LABEL = 200
_LARGE_INT = 1 << 2048  # larger ones are hexadecimal: Python may refuse 640 decimal digits, which take quadratic time


def _make_writer() -> Callable[[Json, int], Iterable[str]] | None:
    """The C encoder, created once: `JSONEncoder.encode` creates one per call, which costs more than the encoding."""
    make = getattr(json.encoder, 'c_make_encoder', None)
    if make is None:
        return None
    quote = json.encoder.encode_basestring_ascii
    return cast(
        'Callable[[Json, int], Iterable[str]]', make(None, _encoder.default, quote, None, ':', ',', False, False, False)
    )


_encoder = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(',', ':'), check_circular=False)
scan = cast('Callable[[str, int], tuple[Json, int]]', cast('Any', json.JSONDecoder()).scan_once)
_write = _make_writer()
_SEPARATOR = '\x1f'
"""Separates JSON from the text after it; JSON escapes this character."""

_REPEAT = '*+' if sys.version_info >= (3, 11) else '*'  # the guest may have an older Python; this is faster
_STRING = re.compile(rf'"[^"\\]{_REPEAT}(?:\\.[^"\\]{_REPEAT}){_REPEAT}"', re.DOTALL)
_COUNTED = 1 << 20
_FEW = 100
_ATOMS = frozenset({int, str, bool, float, type(None)})


class NotPlain(TypeError):
    """A value is not plain data. `path` is the position inside the value, `reason` the cause."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f'{path or "the value"} {reason}')
        self.path = path
        self.reason = reason


class TooLarge(NotPlain):
    """A value has too many parts, or is nested too deeply."""


class CodecError(ValueError):
    """The text is not a valid message of this codec."""


def encode(value: object) -> str:
    """Encode plain data as JSON text. Raises `NotPlain`."""
    return dump(pack(value))


def decode(text: str) -> object:
    """Decode the text of `encode`. Raises `CodecError` for any other text."""
    return unpack(parse(text))


def dump(message: Json) -> str:
    """Serialize JSON types (a message that contains packed values)."""
    if _write is None:
        return _encoder.encode(message)
    return ''.join(_write(message, 0))


def dump_with(message: dict[str, Json], field: str) -> str:
    """Serialize a message; its `field`, a long text, is appended verbatim after the JSON."""
    if field not in message:
        return dump(message)
    return f'{dump({name: value for name, value in message.items() if name != field})}{_SEPARATOR}{message[field]}'


def parse_with(text: str, field: str, parse_head: Callable[[str], Json] | None = None) -> Json:
    """Parse the text of `dump_with`; `parse_head` parses the JSON, `parse` if it is not given."""
    head, separator, tail = text.partition(_SEPARATOR)
    message = (parse_head or parse)(head)
    if separator and isinstance(message, dict):
        message[field] = tail
    return message


def parse(text: str) -> Json:
    """Parse JSON text. Raises `CodecError`. The sandbox limits the size of hostile text before it is parsed."""
    try:
        message, end = scan(text, 0)
    except (ValueError, RecursionError, StopIteration) as error:
        msg = f'not JSON: {type(error).__name__}: {str(error)[:100]}'
        raise CodecError(msg) from None
    if end != len(text):
        msg = 'not JSON: extra text after the value'
        raise CodecError(msg)
    return message


def check_size(text: str) -> None:
    """Raise `CodecError` if a message of the sandbox is too large for the host; it names the limit."""
    if len(text) > MAX_CHARACTERS:
        msg = f'takes {len(text):,} characters as JSON, more than the {MAX_CHARACTERS:,} allowed'
        raise CodecError(msg)
    if _separators(text) > MAX_PARTS and _has_too_many_parts(text):
        msg = f'takes more than {MAX_PARTS:,} parts as JSON'
        raise CodecError(msg)


def _separators(text: str) -> int:
    return text.count('[') + text.count('{') + text.count(',')


def _has_too_many_parts(text: str) -> bool:
    """Whether too many separators are outside of strings."""
    parts = start = 0
    while start < len(text) and parts <= MAX_PARTS:
        piece = text[start : start + _COUNTED]
        outside = _STRING.sub('', piece)
        opened = outside.find('"')
        if opened < 0:
            start += len(piece)
        elif opened or len(outside) < len(piece):  # the piece ends within a string: the next one starts with it
            start += len(piece) - (len(outside) - opened)
            outside = outside[:opened]
        else:
            longer = _STRING.match(text, start)
            start, outside = longer.end() if longer else len(text), ''
        parts += _separators(outside)
    return parts > MAX_PARTS


def pack(value: object) -> Json:
    """Convert plain data to JSON types. Raises `NotPlain` with the position of the first other value."""
    return _pack_atom(value) if type(value) in _ATOMS else _Packer().pack(value, 0)


class _Packer:
    def __init__(self) -> None:
        self.nodes = 0

    def pack(self, value: object, depth: int) -> Json:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise TooLarge('', f'has more than {MAX_NODES:,} parts')
        if type(value) in _ATOMS:
            return _pack_atom(value)
        if depth >= MAX_DEPTH:
            raise TooLarge('', f'is nested deeper than {MAX_DEPTH} levels')
        if isinstance(value, list):
            return self.items(cast('list[object]', value), depth + 1)
        if isinstance(value, dict):
            return self.mapping(cast('dict[object, object]', value), depth + 1)
        for types, tag in _COLLECTIONS:
            if isinstance(value, types):
                return {'$': tag, 'v': self.items(cast('Iterable[object]', value), depth + 1)}
        for base in (str, int, float):  # subclasses, such as the members of an enum
            if isinstance(value, base):
                return _pack_atom(_plain(value, base))
        for scalar, tag, to_text in _SCALARS:
            if isinstance(value, scalar):
                text = to_text(value)
                self.nodes += len(text) if isinstance(text, list) else 0
                return {'$': tag, 'v': text}
        raise NotPlain('', f'is not plain data but {_article(type(value).__name__)}')

    def items(self, values: Iterable[object], depth: int) -> list[Json]:
        packed: list[Json] = []
        for index, item in enumerate(values):
            try:
                packed.append(self.pack(item, depth))
            except NotPlain as error:
                raise type(error)(f'[{index}]{error.path}', error.reason) from None
        return packed

    def mapping(self, value: dict[object, object], depth: int) -> Json:
        if '$' in value or not all(type(key) is str for key in value):
            return {'$': 'dict', 'v': [self.pair(key, item, depth + 1) for key, item in value.items()]}
        packed: dict[str, Json] = {}
        for key, item in value.items():
            try:
                packed[cast('str', key)] = self.pack(item, depth)
            except NotPlain as error:
                raise type(error)(f'[{_label(key)}]{error.path}', error.reason) from None
        return packed

    def pair(self, key: object, item: object, depth: int) -> Json:
        self.nodes += 1
        try:
            packed_key = self.pack(key, depth)
        except NotPlain as error:
            raise type(error)('', f'has a key that {error.reason}') from None
        try:
            return {'$': 'tuple', 'v': [packed_key, self.pack(item, depth)]}
        except NotPlain as error:
            raise type(error)(f'[{_label(unpack(packed_key))}]{error.path}', error.reason) from None


def _plain(value: str | int | float, base: type[str | int | float]) -> str | int | float:
    """Convert an instance of a subclass to its base type, without calling its own methods."""
    return str.__str__(value) if isinstance(value, str) else base.__pos__(value)  # type: ignore[attr-defined]


def _pack_atom(value: object) -> Json:
    if isinstance(value, float) and not math.isfinite(value):
        return {'$': 'float', 'v': repr(value)}
    if isinstance(value, int) and not -_LARGE_INT < value < _LARGE_INT:
        return {'$': 'int', 'v': hex(value)}
    return value  # type: ignore[return-value]


def _label(key: object) -> str:
    try:
        return repr(key)[:MAX_LABEL]
    except ValueError:  # an integer with too many digits
        return f'<{type(key).__name__}>'


def _article(name: str) -> str:
    return f'an {name}' if name[:1].lower() in 'aeiou' else f'a {name}'


def _fraction_text(value: fractions.Fraction) -> Json:
    parts = [hex(value.numerator), hex(value.denominator)]
    if max(map(len, parts)) > MAX_FRACTION_DIGITS:
        raise NotPlain('', f'is a fraction with more than {MAX_FRACTION_DIGITS:,} digits')
    return cast('Json', parts)


def _datetime_text(value: datetime.datetime | datetime.time) -> Json:
    """ISO text, inside a list if `fold` is set."""
    return [value.isoformat()] if value.fold else value.isoformat()


_COLLECTIONS: tuple[tuple[type, str], ...] = ((tuple, 'tuple'), (set, 'set'), (frozenset, 'frozenset'))
_SCALARS: tuple[tuple[type, str, Callable[[Any], Json]], ...] = (
    (bytes, 'bytes', lambda value: base64.b64encode(value).decode('ascii')),
    (bytearray, 'bytearray', lambda value: base64.b64encode(value).decode('ascii')),
    (complex, 'complex', lambda value: [repr(value.real), repr(value.imag)]),
    (datetime.datetime, 'datetime', _datetime_text),
    (datetime.date, 'date', lambda value: value.isoformat()),
    (datetime.time, 'time', _datetime_text),
    (datetime.timedelta, 'timedelta', lambda value: [value.days, value.seconds, value.microseconds]),
    (decimal.Decimal, 'decimal', str),
    (fractions.Fraction, 'fraction', _fraction_text),
    (uuid.UUID, 'uuid', str),
)


def unpack(message: Json) -> object:
    """Convert packed JSON types back to the value. Raises `CodecError`."""
    if type(message) in _ATOMS:
        return message
    if (
        type(message) is dict
        and len(message) < _FEW
        and '$' not in message
        and _ATOMS.issuperset(map(type, message.values()))
    ):
        return dict(message)  # most recorded values
    try:
        return _Unpacker().value(message)
    except CodecError:
        raise
    except (ValueError, TypeError, ArithmeticError, binascii.Error, RecursionError) as error:
        msg = f'malformed value: {type(error).__name__}: {str(error)[:100]}'
        raise CodecError(msg) from None


class _Unpacker:
    """Counts the nodes as `_Packer` does."""

    def __init__(self) -> None:
        self.nodes = 0

    def value(self, message: Json) -> object:
        if isinstance(message, list):
            return self.items(message)
        if not isinstance(message, dict):
            return message
        if '$' not in message:
            self.count(message)
            return {key: item if type(item) in _ATOMS else self.value(item) for key, item in message.items()}
        tag = message['$']
        if not isinstance(tag, str) or message.keys() != {'$', 'v'}:
            msg = f'unknown tag {str(tag)[:40]!r}'
            raise CodecError(msg)
        if make := _COLLECTION_READERS.get(tag):
            return make(self.items(_list(message['v'])))
        if tag not in _READERS:
            msg = f'unknown tag {tag[:40]!r}'
            raise CodecError(msg)
        return _READERS[tag](message['v'])

    def count(self, parts: Sized) -> None:
        self.nodes += len(parts)
        if self.nodes > MAX_NODES:
            msg = f'a value of more than {MAX_NODES:,} parts'
            raise CodecError(msg)

    def items(self, values: list[Json]) -> list[object]:
        self.count(values)
        return [item if type(item) in _ATOMS else self.value(item) for item in values]


def _text(value: Json) -> str:
    if not isinstance(value, str):
        msg = 'expected text'
        raise CodecError(msg)
    return value


def _texts(value: Json, count: int) -> list[str]:
    if not isinstance(value, list) or len(value) != count:
        msg = f'expected {count} parts'
        raise CodecError(msg)
    return [_text(item) for item in value]


def _list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        msg = 'expected a list'
        raise CodecError(msg)
    return value


def _keys(keys: list[object]) -> list[object]:
    """Check keys of a dict or set for hash collisions, which would make insertion quadratic, or slow to compare."""
    numbers = list(_numbers(keys))
    if any(isinstance(number, decimal.Decimal) for number in numbers) and any(
        isinstance(number, int) and number.bit_length() > MAX_COMPARED_BITS for number in numbers
    ):
        msg = 'a very long integer and a Decimal as keys of the same dict or set'
        raise CodecError(msg)
    if len(keys) > MAX_SAME_HASH and max(Counter(map(hash, keys)).values()) > MAX_SAME_HASH:
        msg = f'more than {MAX_SAME_HASH} keys with the same hash'
        raise CodecError(msg)
    return keys


def _numbers(keys: Iterable[object]) -> Iterator[object]:
    """The numbers that are compared when these keys are. Only tuples are compared item by item on equal hashes."""
    for key in keys:
        if isinstance(key, tuple):
            yield from _numbers(cast('tuple[object, ...]', key))
        elif isinstance(key, (int, decimal.Decimal)):
            yield key


def _read_dict(pairs: list[object]) -> dict[object, object]:
    if not all(isinstance(pair, tuple) and len(cast('tuple[object, ...]', pair)) == 2 for pair in pairs):
        msg = 'expected pairs'
        raise CodecError(msg)
    items = cast('list[tuple[object, object]]', pairs)
    _keys([key for key, _ in items])
    return dict(items)


def _read_bytes(value: Json) -> bytes:
    return base64.b64decode(_text(value), validate=True)


def _read_complex(value: Json) -> complex:
    real, imag = _texts(value, 2)
    return complex(float(real), float(imag))


def _read_fraction(value: Json) -> fractions.Fraction:
    numerator, denominator = _texts(value, 2)
    if max(len(numerator), len(denominator)) > MAX_FRACTION_DIGITS:
        msg = 'a fraction with too many digits'
        raise CodecError(msg)
    return fractions.Fraction(int(numerator, 16), int(denominator, 16))


def _read_datetime(value: Json, kind: type[datetime.datetime | datetime.time]) -> datetime.datetime | datetime.time:
    if isinstance(value, list):
        return kind.fromisoformat(*_texts(value, 1)).replace(fold=1)
    return kind.fromisoformat(_text(value))


def _read_timedelta(value: Json) -> datetime.timedelta:
    days, seconds, microseconds = _list(value)
    if not (isinstance(days, int) and isinstance(seconds, int) and isinstance(microseconds, int)):
        msg = 'expected whole numbers'
        raise CodecError(msg)
    return datetime.timedelta(days, seconds, microseconds)


_COLLECTION_READERS: dict[str, Callable[[list[object]], object]] = {
    'tuple': tuple,
    'set': lambda items: set(_keys(items)),
    'frozenset': lambda items: frozenset(_keys(items)),
    'dict': _read_dict,
}
_READERS: dict[str, Callable[[Json], object]] = {
    'int': lambda value: int(_text(value), 16),
    'float': lambda value: float(_text(value)),
    'bytes': _read_bytes,
    'bytearray': lambda value: bytearray(_read_bytes(value)),
    'complex': _read_complex,
    'datetime': lambda value: _read_datetime(value, datetime.datetime),
    'date': lambda value: datetime.date.fromisoformat(_text(value)),
    'time': lambda value: _read_datetime(value, datetime.time),
    'timedelta': _read_timedelta,
    'decimal': lambda value: decimal.Decimal(_text(value)),
    'fraction': _read_fraction,
    'uuid': lambda value: uuid.UUID(_text(value)),
}
