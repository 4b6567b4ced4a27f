"""Texts of values: the `repr`, truncated, and short descriptions."""

import math
import reprlib
import sys
import types
from typing import Any

from habilis.core.codec import Json

MAX_CHARACTERS = 100_000
MAX_DECIMAL_BITS = 1_000_000
MAX_DIGITS = 10_000
MAX_SHORT = 60
MAX_SHORT_ITEMS = 8
_INT64 = 1 << 63
_ATOMS = frozenset({int, float, bool, str, type(None)})
_CONTAINERS = frozenset({list, tuple, dict, set})
PLAIN: frozenset[type] = _ATOMS | _CONTAINERS | {bytes, complex, frozenset, types.FunctionType, types.ModuleType}
"""Types whose values are described without running code of the user."""


class _Bounded(reprlib.Repr):
    """For values that are too large: a few items of each level."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 4
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = self.maxdeque = 20
        self.maxstring = self.maxother = self.maxlong = 1000

    def repr_int(self, x: int, level: int) -> str:
        """The decimal digits, unless there are too many."""
        bits = x.bit_length()
        return repr(x) if bits < MAX_DIGITS else f'<int of about {round(bits * math.log10(2)):,} digits>'


_bounded = _Bounded()


def text_of(value: object, whole: bool) -> str:
    """`repr(value)`, truncated; `whole=False` for values known to be huge, of which only a part is formatted."""
    if type(value) is int:
        text = repr(value) if value.bit_length() < MAX_DECIMAL_BITS else hex(value)
    else:
        text = _text_of(value, whole)
    if len(text) <= MAX_CHARACTERS:
        return text
    return f'{text[:MAX_CHARACTERS]}… ({len(text) - MAX_CHARACTERS:,} characters more)'


def limit_digits(limit: int) -> int:
    """Set the limit on the digits of integers in texts. Returns the former one; 0, where Python has none."""
    if not hasattr(sys, 'set_int_max_str_digits'):  # a Python that gets no security updates
        return 0
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(limit)
    return before


def _text_of(value: object, whole: bool) -> str:
    limit = limit_digits(MAX_DIGITS)  # a huge integer inside would take minutes
    try:
        return _plain_repr(value) if whole else _bounded.repr(value)
    except ValueError as error:
        if 'digits' not in str(error):
            return _failed_repr(value, error)
    except Exception as error:
        return _failed_repr(value, error)
    finally:
        limit_digits(limit)
    return _bounded.repr(value)


def _plain_repr(value: object) -> str:
    text = repr(value)
    return text if type(text) is str else str.__str__(text)


def _failed_repr(value: object, error: Exception) -> str:
    return f'<{type(value).__name__} object whose __repr__ raised {type(error).__name__}>'


def descriptions(values: dict[str, object]) -> dict[str, Json]:
    """Type, size and short text of each variable."""
    return {
        name: ['type' if isinstance(value, type) else type(value).__qualname__, _size_of(value), _short_of(value)]
        for name, value in values.items()
        if not isinstance(value, types.ModuleType)
    }


def _size_of(value: object) -> str:
    """The size in the unit of the type; empty if the type has none."""
    try:
        if isinstance(value, (str, bytes)):
            return f'{len(value):,} {"characters" if isinstance(value, str) else "bytes"}'
        if isinstance(value, (list, tuple, dict, set, frozenset)):
            return f'{len(value):,} {"item" if len(value) == 1 else "items"}'  # pyright: ignore[reportUnknownArgumentType]
        shape: object = getattr(value, 'shape', None)
        return repr(shape)[:100] if type(shape) is tuple else ''  # pyright: ignore[reportUnknownArgumentType]
    except Exception:  # a subclass may do anything
        return ''


def _short_of(value: Any) -> str:
    """The `repr` of a small plain value; empty otherwise. Runs no code of the user."""
    kind: object = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind not in _ATOMS and not (kind in _CONTAINERS and len(value) <= MAX_SHORT_ITEMS):
        return ''
    parts: list[Any] = [value] if kind in _ATOMS else [*value, *(value.values() if kind is dict else ())]
    if not all(type(part) in _ATOMS and _is_short(part) for part in parts):
        return ''
    text = repr(value)
    return text if len(text) <= MAX_SHORT else ''


def _is_short(value: object) -> bool:
    if type(value) is int:
        return -_INT64 < value < _INT64
    return type(value) is not str or len(value) <= MAX_SHORT
