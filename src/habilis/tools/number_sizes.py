"""Refuses numbers that take minutes to convert, before anything converts them.

`int(Decimal('1E+20000000'))` and `Decimal(1 << 3_000_000)` compute for half a minute without releasing the interpreter,
so that no thread and no timeout helps. An integer that stays an integer may have any size.
"""

import math
from collections.abc import Iterable
from decimal import Decimal
from itertools import chain
from typing import cast

MAX_DIGITS = 10_000
"""Maximum number of digits of one number that is converted; the time grows with the square."""

MAX_TOTAL_DIGITS = 200_000
"""The same for all large numbers of a value together."""

_SMALL_DIGITS = 100
_MAX_BITS = int(_SMALL_DIGITS * math.log2(10))
_ATOMS = frozenset({str, bool, float, bytes, type(None)})
_CONTAINERS = (list, tuple, set, frozenset)


def is_too_large(value: object, *, integers: bool) -> bool:
    """Whether plain data has numbers with too many digits to convert.

    Decimals always count. Integers count if there are decimals beside them, or if they may become decimals
    (`integers`).
    """
    decimals, ints = _numbers(value)
    digits = [count for number in decimals if (count := _decimal_digits(number)) > _SMALL_DIGITS]
    if decimals or integers:
        digits += [int(number.bit_length() / math.log2(10)) for number in ints]
    return max(digits, default=0) > MAX_DIGITS or sum(digits) > MAX_TOTAL_DIGITS


def _numbers(value: object) -> tuple[list[Decimal], list[int]]:
    """The decimals and the large integers in plain data, keys included."""
    decimals: list[Decimal] = []
    large: list[int] = []
    pending: list[Iterable[object]] = [(value,)]
    while pending:
        items = pending.pop()
        if set(map(type, items)) <= _ATOMS:  # most of a long list is skipped without a loop in Python
            continue
        for item in items:
            if isinstance(item, int):
                if item.bit_length() > _MAX_BITS:
                    large.append(item)
            elif isinstance(item, Decimal):
                decimals.append(item)
            elif isinstance(item, dict):
                pairs = cast('dict[object, object]', item)
                pending.append(list(chain(pairs, pairs.values())))
            elif isinstance(item, _CONTAINERS):
                pending.append(cast('Iterable[object]', item))
    return decimals, large


def _decimal_digits(number: Decimal) -> int:
    """Digits of the number as an integer or a fraction, zeros of its exponent included."""
    exponent = abs(number.adjusted())
    return exponent if exponent > MAX_DIGITS else max(exponent, len(str(number)))
