"""Copies of arguments, for those who only look at a call: what they do to them reaches nobody else."""

import copy
from collections.abc import Mapping
from typing import cast

_ATOMS = frozenset({int, str, bool, float, bytes, type(None)})


def copy_arguments(arguments: Mapping[str, object]) -> dict[str, object]:
    """The same arguments, and nothing in them is shared."""
    return {name: value if type(value) in _ATOMS else _copy(value) for name, value in arguments.items()}


def _copy(value: object) -> object:
    try:
        return _inside(value)
    except Exception:  # an object of the host that cannot be copied, or a list that contains itself
        return value


def _inside(value: object) -> object:
    """As `deepcopy`, which takes several times as long for the lists and dicts that most arguments are."""
    if type(value) is list:
        items = cast('list[object]', value)
        return [item if type(item) in _ATOMS else _inside(item) for item in items]
    if type(value) is dict:
        pairs = cast('dict[object, object]', value).items()
        return {key: item if type(item) in _ATOMS else _inside(item) for key, item in pairs}
    return copy.deepcopy(value)
