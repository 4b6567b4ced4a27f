"""Text of integers of any size, and of values that contain them. Python refuses to print more than 4,300 digits."""

import dataclasses
import decimal
import sys
from collections.abc import Mapping
from typing import cast

from habilis.core.narrowing import is_dict, is_several

PRINTED_DIGITS = 20_000
"""Longer integers are shortened: the time to write them out grows with the square."""

_DIGITS_PER_BIT = 0.30103
_SHOWN = 20
_MAX_DEPTH = 50


def integer_text(value: int) -> str:
    """The decimal digits of an integer, or a short form of a very long one."""
    return short_integer(value) if _is_long(value) else f'{decimal.Decimal(value):f}'


def short_integer(value: int) -> str:
    """The first and the last digits of a long integer, and their number: `10000…00000 (6,001 digits)`."""
    sign, size = '-' if value < 0 else '', abs(value)
    if _is_long(value):  # the first digits and their number are computed, not counted: correct to forty digits
        shift = size.bit_length() - 256
        with decimal.localcontext() as context:
            context.prec, context.Emax = 40, decimal.MAX_EMAX
            start = decimal.Decimal(size >> shift) * decimal.Decimal(2) ** shift
        first, count = ''.join(map(str, start.as_tuple().digits)), start.adjusted() + 1
    else:
        first = f'{decimal.Decimal(size):f}'
        count = len(first)
    return f'{sign}{first[:_SHOWN]}…{size % 10**_SHOWN:0{_SHOWN}} ({count:,} digits)'


def _is_long(value: int) -> bool:
    return value.bit_length() * _DIGITS_PER_BIT > PRINTED_DIGITS


def read_integer(text: str) -> int:
    """Parse decimal digits, more of them than `int` does. Raises `ValueError`."""
    if len(text) <= sys.int_info.default_max_str_digits:
        return int(text)
    if len(text) > PRINTED_DIGITS or not text.removeprefix('-').isdecimal():
        msg = f'an integer of more than {PRINTED_DIGITS:,} digits'
        raise ValueError(msg)
    return int(decimal.Decimal(text))


def safe_repr(value: object) -> str:
    """`repr(value)`, also if it contains long integers, or objects whose `__repr__` fails."""
    try:
        return repr(value)
    except Exception:  # a `__repr__` may do anything
        return repr(_printable(value, 0))


def error_text(error: BaseException) -> str:
    """Class and message of an error. The message may contain a long integer, and its `__str__` may do anything."""
    try:
        text = str(error)
    except Exception:
        text = ', '.join(map(safe_repr, error.args))
    return f'{type(error).__name__}: {text}' if text else type(error).__name__


class _Text:
    """Something with a given `repr`."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _printable(value: object, depth: int) -> object:
    """The value with parts that can be printed."""
    name = type(value).__name__
    if isinstance(value, int):
        return _Text(integer_text(value))
    if depth >= _MAX_DEPTH:
        return _Text('…')
    if is_dict(value):
        return {_printable(key, depth + 1): _printable(item, depth + 1) for key, item in value.items()}
    if is_several(value):
        items = [_printable(item, depth + 1) for item in value]
        if isinstance(value, (set, frozenset)):
            inside = ', '.join(map(repr, items))
            return _Text(f'{{{inside}}}' if name == 'set' else f'{name}({{{inside}}})')
        return items if isinstance(value, list) else tuple(items)
    try:
        return _Text(repr(value))
    except Exception:  # as above
        fields = _fields(value)
        inside = ', '.join(f'{field}={_printable(item, depth + 1)!r}' for field, item in fields.items())
        return _Text(f'{name}({inside})')


def _fields(value: object) -> Mapping[str, object]:
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    return cast('dict[str, object]', getattr(value, '__dict__', {}))
