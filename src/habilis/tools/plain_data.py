"""Converts results of tools to plain data, which is all that can go into a sandbox."""

import dataclasses
import datetime
import decimal
import enum
import fractions
import uuid
from collections import deque
from collections.abc import Iterable, KeysView, Mapping, Set, ValuesView
from pathlib import PurePath
from typing import cast

from habilis.core.integers import safe_repr
from habilis.core.narrowing import is_mapping, is_tuple

MAX_DEPTH = 150

_ATOMS = frozenset({int, str, bool, float, type(None)})
_LEAVES = (
    str,
    int,
    float,
    bytes,
    bytearray,
    complex,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    decimal.Decimal,
    fractions.Fraction,
    uuid.UUID,
)
_LISTS: tuple[type, ...] = (list, deque, range, KeysView, ValuesView)


class NotConvertible(TypeError):
    """A value that cannot be converted. `path` is its place in the result."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f'{path or "it"} {reason}')
        self.path = path
        self.reason = reason


def to_plain(value: object, depth: int = 0) -> object:
    """Convert a value: dataclasses and models to dicts, enum members to their values, paths to strings."""
    if type(value) in _ATOMS:
        return value
    if depth > MAX_DEPTH:
        raise NotConvertible('', f'is nested deeper than {MAX_DEPTH} levels (or contains itself)')
    if isinstance(value, enum.Enum):
        return to_plain(value.value, depth + 1)
    if isinstance(value, _LEAVES):
        return value
    if isinstance(value, PurePath):
        return str(value)
    if is_mapping(value):
        return _mapping(value, depth)
    if is_tuple(value):
        return tuple(_items(value, depth))
    if isinstance(value, _LISTS):
        return _items(cast('Iterable[object]', value), depth)
    if isinstance(value, Set):
        return _set(cast('Set[object]', value), depth)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields: dict[object, object] = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return _mapping(fields, depth)
    dump = getattr(value, 'model_dump', None)
    if callable(dump) and not isinstance(value, type):
        return to_plain(dump(by_alias=True), depth + 1)
    raise NotConvertible('', f'is {_describe(value)}')


def _describe(value: object) -> str:
    name = type(value).__name__
    if name in {'generator', 'async_generator'}:
        return f'{_article(name.replace("_", " "))}: return a list instead'
    if name == 'coroutine':
        return 'a coroutine that was not awaited: make the tool an `async def` that awaits it'
    return f'not plain data but {_article(name)}: return numbers, text, lists, dicts, dataclasses or pydantic models'


def _article(name: str) -> str:
    return f'an {name}' if name[:1].lower() in 'aeiou' else f'a {name}'


def _items(values: Iterable[object], depth: int) -> list[object]:
    plain: list[object] = []
    for index, item in enumerate(values):
        try:
            plain.append(to_plain(item, depth + 1))
        except NotConvertible as error:
            raise NotConvertible(f'[{index}]{error.path}', error.reason) from None
    return plain


def _mapping(values: Mapping[object, object], depth: int) -> dict[object, object]:
    plain: dict[object, object] = {}
    for key, item in values.items():
        try:
            plain[to_plain(key, depth + 1)] = to_plain(item, depth + 1)
        except NotConvertible as error:
            raise NotConvertible(f'[{safe_repr(key)}]{error.path}', error.reason) from None
    return plain


def _set(values: Set[object], depth: int) -> object:
    items = _items(values, depth)
    try:
        return frozenset(items) if isinstance(values, frozenset) else set(items)
    except TypeError:  # items that became dicts cannot be in a set
        return items
