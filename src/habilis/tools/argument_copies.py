"""Copies of arguments for gates and records, which must not share them with the tool."""

import copy
from collections.abc import Mapping
from typing import cast

_ATOMS = frozenset({int, str, bool, float, bytes, type(None)})


def copy_arguments(arguments: Mapping[str, object]) -> dict[str, object]:
    """A deep copy of the arguments."""
    return {name: value if type(value) in _ATOMS else _copy(value) for name, value in arguments.items()}


def _copy(value: object) -> object:
    try:
        return _deep_copy(value)
    except Exception:  # it cannot be copied, or contains itself
        return value


def _deep_copy(value: object) -> object:
    """Like `deepcopy`, but several times as fast for lists and dicts."""
    if type(value) is list:
        items = cast('list[object]', value)
        return [item if type(item) in _ATOMS else _deep_copy(item) for item in items]
    if type(value) is dict:
        pairs = cast('dict[object, object]', value).items()
        return {key: item if type(item) in _ATOMS else _deep_copy(item) for key, item in pairs}
    return copy.deepcopy(value)
