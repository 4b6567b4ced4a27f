"""How a value that is not plain data becomes it: `.tolist()` of an array, `.to_dict('records')` of a table."""

import dataclasses
import inspect
from collections.abc import Iterator
from typing import cast

from habilis.core.codec import NotPlain, pack
from habilis.core.narrowing import is_mapping, is_several

_METHODS = ('tolist', 'to_dicts', 'to_dict', 'model_dump', '_asdict')
"""In this order: a column of a table has both of the first kinds."""


def conversion(value: object, expression: str) -> str:
    """Code that converts the first part of `value` that is not plain data; empty if none is known.

    Args:
        value: what cannot be packed.
        expression: code for that part, such as `rows[0]`.
    """
    part = _first_not_plain(value)
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        return f'dataclasses.asdict({expression})'
    for name in _METHODS:
        if not isinstance(part, type) and callable(method := getattr(part, name, None)):
            argument = "'records'" if _takes_orient(method) else ''
            return f'{expression}.{name}({argument})'
    return ''


def _first_not_plain(value: object) -> object:
    """The part that `pack` refuses."""
    for part in _parts(value):
        try:
            pack(part)
        except NotPlain:
            return _first_not_plain(part)
    return value


def _parts(value: object) -> Iterator[object]:
    if is_mapping(value):
        yield from value.values()
    elif is_several(value):
        yield from value


def _takes_orient(method: object) -> bool:
    """Whether it is the method of a table, whose default form is one dict per column."""
    try:
        return 'orient' in inspect.signature(cast('type', method)).parameters
    except (TypeError, ValueError):
        return False
